//! The settings of the two ways to the database: that of writes, and that of queries.

use std::path::Path;
use std::time::Duration;

use super::settings::{Reader, SettingError};
use crate::connect::{Connector, password};
use crate::deliver::postgres::PostgresSettings;
use crate::query::QuerySettings;

/// The least timeout of a session or a statement.
const LEAST: Duration = Duration::from_millis(100);

pub(super) fn postgres(reader: &Reader<'_>) -> Result<PostgresSettings, SettingError> {
    let connection = connector(reader, "postgres", "lanes-gateway")?;
    let table = reader.get("postgres.table", |text| match text.split_once('.') {
        Some((schema, table)) if !schema.is_empty() && !table.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is not schema.table")),
    })?;
    Ok(PostgresSettings {
        connection,
        table,
        connect_timeout: reader.duration("postgres.connect_timeout", LEAST)?,
        statement_timeout: reader.duration("postgres.statement_timeout", LEAST)?,
    })
}

pub(super) fn query(reader: &Reader<'_>) -> Result<QuerySettings, SettingError> {
    let connection = match reader.sources.value("query.connection").0 {
        "" => None,
        _ => Some(connector(reader, "query", "lanes-gateway query")?),
    };
    Ok(QuerySettings {
        connection,
        connect_timeout: reader.duration("postgres.connect_timeout", LEAST)?,
        sessions: match reader.count("query.sessions", 0, 1000)? {
            // More queries at a time would only slow each other down.
            0 => std::thread::available_parallelism()
                .map_or(4, |processors| (2 * processors.get()).clamp(4, 32)),
            sessions => sessions,
        },
        queue: reader.count("query.queue", 0, 1 << 20)?,
        queue_wait: reader.duration("query.queue_wait", Duration::ZERO)?,
        timeout: reader.duration("query.timeout", LEAST)?,
        lookback_delta: reader.duration("query.lookback_delta", Duration::from_millis(1))?,
        read_samples_max: reader.count("query.read_samples_max", 1, 1 << 30)?,
        read_bytes_max: reader.size("query.read_bytes_max", 1 << 20, 1 << 40)?,
        admin_api: reader.flag("query.admin_api")?,
    })
}

/// Reads the connection of a section, with a password from its file, and names its application.
fn connector(
    reader: &Reader<'_>,
    section: &str,
    application: &str,
) -> Result<Connector, SettingError> {
    let password_file = format!("{section}.password_file");
    let password = reader.get(&password_file, |file| match file {
        "" => Ok(None),
        file => match password::read_file(Path::new(file)) {
            Ok(password) => Ok(Some(password)),
            Err(error) => Err(error.to_string()),
        },
    })?;
    let connector = reader.get(&format!("{section}.connection"), |text| {
        Connector::new(text, password)
    })?;
    Ok(connector.named_by_default(application))
}
