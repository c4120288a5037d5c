//! The settings of the two ways to the database: that of writes, and that of queries.

use std::path::Path;
use std::time::Duration;

use tokio_postgres::config::SslMode;

use super::settings::{Reader, SettingError};
use crate::deliver::password;
use crate::deliver::postgres::PostgresSettings;
use crate::query::QuerySettings;

/// The least timeout of a session or a statement.
const LEAST: Duration = Duration::from_millis(100);

pub(super) fn postgres(reader: &Reader<'_>) -> Result<PostgresSettings, SettingError> {
    let connection = reader.get("postgres.connection", parse)?;
    let connection = checked(reader, "postgres", connection, "lanes-gateway")?;
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
    let connection = reader.get("query.connection", |text| match text {
        "" => Ok(None),
        text => parse(text).map(Some),
    })?;
    let connection = match connection {
        None => None,
        Some(connection) => Some(checked(reader, "query", connection, "lanes-gateway query")?),
    };
    Ok(QuerySettings {
        connection,
        connect_timeout: reader.duration("postgres.connect_timeout", LEAST)?,
        sessions: reader.count("query.sessions", 1, 1000)?,
        queue: reader.count("query.queue", 0, 1 << 20)?,
        queue_wait: reader.duration("query.queue_wait", Duration::ZERO)?,
        timeout: reader.duration("query.timeout", LEAST)?,
        lookback_delta: reader.duration("query.lookback_delta", Duration::from_millis(1))?,
        read_samples_max: reader.count("query.read_samples_max", 1, 1 << 30)?,
        read_bytes_max: reader.size("query.read_bytes_max", 1 << 20, 1 << 40)?,
        admin_api: reader.flag("query.admin_api")?,
    })
}

fn parse(text: &str) -> Result<tokio_postgres::Config, String> {
    // The parser's own message may repeat its input.
    text.parse()
        .map_err(|_| "not a PostgreSQL connection string or URL".to_owned())
}

/// Checks the connection of a section, and completes it with a name and a password.
fn checked(
    reader: &Reader<'_>,
    section: &str,
    mut connection: tokio_postgres::Config,
    application: &str,
) -> Result<tokio_postgres::Config, SettingError> {
    let name = format!("{section}.connection");
    if connection.get_ssl_mode() == SslMode::Require {
        // A clear message at startup is better than a failed handshake at each attempt.
        let reason = "sslmode=require: TLS to PostgreSQL is not supported".to_owned();
        return Err(reader.wrong(&name, reason));
    }
    let hosts = connection.get_hosts().len();
    let ports = connection.get_ports().len();
    if ports > 1 && ports != hosts.max(connection.get_hostaddrs().len()) {
        let reason =
            format!("{ports} ports for {hosts} hosts; specify one for all, or one for each");
        return Err(reader.wrong(&name, reason));
    }
    if connection.get_application_name().is_none() {
        connection.application_name(application);
    }
    let password_file = format!("{section}.password_file");
    let (file, _) = reader.sources.value(&password_file);
    if !file.is_empty() {
        let password = password::read_file(Path::new(file))
            .map_err(|error| reader.wrong(&password_file, error.to_string()))?;
        connection.password(password);
    }
    Ok(password::completed(connection))
}
