//! Keeps the table definitions in the store up to date, so that a restore creates tables as they
//! were last, with the same protection.
//!
//! Definitions are put together with what requires them: entries of the log, and parts. In
//! addition, all changed definitions are put again after each round of offloading, because nothing
//! may ever require them. For example, a table whose owner has just enabled row-level security
//! accepts no more rows from a gateway.

use super::log::ObjectLog;
use super::model::record;
use super::source::{Source, SourceError};
use super::store::{RoundError, Store};

/// Puts the definitions of all tables that have changed since they were put. Returns their number.
///
/// # Errors
/// Returns an error if the session or the store is lost, or if the store refuses.
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
        // The extension is older. What was put remains as it is.
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
                tracing::warn!(target, "could not put the definition of a table: {reason}");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Puts the definition of a table unless the store has this version.
///
/// # Errors
/// Returns an error if the database or the store fails.
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
