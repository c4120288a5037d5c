//! Definitions of tables in the store follow the tables: what a restore makes is as it was lately, and as closed.
//!
//! They go with what needs them, entries of the log and parts; and after each round of offloading all that changed since are put
//! again, as nothing may ever need them: a table whose owner has just enabled row-level security takes no more rows from a gateway.

use super::log::ObjectLog;
use super::record::{self, Change};
use super::source::{Source, SourceError};
use super::store::{RoundError, Store};

/// Puts the definitions of all tables again that changed since they were put; how many.
///
/// # Errors
/// The database or the store fails.
pub async fn round<S: Source, T: Store>(
    source: &S,
    store: &T,
    log: &ObjectLog,
) -> Result<usize, RoundError> {
    let mut done = 0;
    for table in log.tables(&source.scope().await?) {
        match put(source, store, log, &[table]).await {
            Ok(puts) => done += puts,
            Err(RoundError::Source(SourceError::Failed(reason))) => {
                tracing::warn!(table, "a table's definition cannot be put: {reason}");
            }
            // Of an extension that is older; what was put stays as it is.
            Err(RoundError::Source(SourceError::Unsupported(_))) => return Ok(done),
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Puts the definitions of these tables, if the store does not have them as they are; how many.
///
/// # Errors
/// The database or the store fails.
pub async fn put<S: Source, T: Store>(
    source: &S,
    store: &T,
    log: &ObjectLog,
    tables: &[u32],
) -> Result<usize, RoundError> {
    if tables.is_empty() {
        return Ok(0);
    }
    let scope = source.scope().await?;
    let mut done = 0;
    for (target, version) in source.definition_versions(tables).await? {
        if log.knows_table(&scope, target, version) {
            continue;
        }
        let _defining = log.defining().await;
        let Some(definition) = source.definition(target).await? else {
            continue;
        };
        let name = record::table_name(&scope, target);
        store
            .write(vec![Change::put(name, definition.json)])
            .await?;
        log.learn_table(&scope, target, definition.version);
        done += 1;
    }
    Ok(done)
}
