//! Definitions of tables in the store follow the tables: what a restore makes is as it was lately, and as closed.
//!
//! They go with what needs them, entries of the log and parts; and after each round of offloading all that changed since are put
//! again, as nothing may ever need them: a table whose owner has just enabled row-level security takes no more rows from a gateway.

use super::log::ObjectLog;
use super::model::record;
use super::source::{Source, SourceError};
use super::store::{RoundError, Store};

/// Puts the definitions of all tables again that changed since they were put; how many.
///
/// # Errors
/// The session or the store is lost, or the store refuses.
pub async fn round<S: Source, T: Store>(
    source: &S,
    store: &T,
    log: &ObjectLog,
) -> Result<usize, RoundError> {
    let scope = source.scope().await?;
    let tables = log.tables(&scope);
    if tables.is_empty() {
        return Ok(0);
    }
    let versions = match source.definition_versions(&tables).await {
        // Of an extension that is older; what was put stays as it is.
        Err(SourceError::Unsupported(_)) => return Ok(0),
        versions => versions?,
    };
    let mut done = 0;
    for (target, version) in versions {
        if log.knows_table(&scope, target, version) {
            continue;
        }
        match read_and_put(source, store, log, &scope, target).await {
            Ok(()) => done += 1,
            Err(RoundError::Source(SourceError::Failed(reason))) => {
                tracing::warn!(target, "a table's definition cannot be put: {reason}");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Puts the definition of a table, if the store does not have it as it is.
///
/// # Errors
/// The database or the store fails.
pub async fn put<S: Source, T: Store>(
    source: &S,
    store: &T,
    log: &ObjectLog,
    target: u32,
) -> Result<(), RoundError> {
    let scope = source.scope().await?;
    let versions = source.definition_versions(&[target]).await?;
    let is_known = |&(target, version): &(u32, i64)| log.knows_table(&scope, target, version);
    if versions.iter().all(is_known) {
        return Ok(());
    }
    read_and_put(source, store, log, &scope, target).await
}

async fn read_and_put<S: Source, T: Store>(
    source: &S,
    store: &T,
    log: &ObjectLog,
    scope: &str,
    target: u32,
) -> Result<(), RoundError> {
    let _defining = log.defining(scope, target).await;
    let Some(definition) = source.definition(target).await? else {
        return Ok(());
    };
    let changes = record::definition_changes(scope, target, definition.json);
    store.write(changes).await?;
    log.learn_table(scope, target, definition.version);
    Ok(())
}
