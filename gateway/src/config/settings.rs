//! Typed settings, checked individually and against each other.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::database;
use super::source::{Origin, Sources};
use super::value;
use crate::access::AccessSettings;
use crate::access::settings::Demand;
use crate::app::{AppSettings, SelfScrape};
use crate::batch::accumulate::BatchLimits;
use crate::deliver::NO_LOG;
use crate::deliver::postgres::PostgresSettings;
use crate::events::{CreateTables, EventSettings};
use crate::http::Hosts;
use crate::http::server::ServerLimits;
use crate::model::AckLevel;
use crate::objects::{BacklogLimit, ObjectSettings};
use crate::quota::Limits;
use crate::receive::{ReceiveLimits, RequestLimits};
use crate::series::{LabelLimits, LabelOrder, SampleRows};

/// An invalid setting.
#[derive(Debug, Error)]
#[error("{name} ({origin}): {reason}")]
pub struct SettingError {
    name: String,
    origin: Origin,
    reason: String,
}

/// All settings of a gateway.
pub struct Settings {
    /// The address to listen on.
    pub address: SocketAddr,
    /// Settings of requests, batches and levels.
    pub app: AppSettings,
    /// The database.
    pub postgres: PostgresSettings,
    /// Object storage, if it is configured.
    pub objects: Option<ObjectSettings>,
    /// The maximum memory for known series.
    pub cache_bytes_max: usize,
    /// Which log lines are written.
    pub log_filter: EnvFilter,
    /// Whether log lines are JSON.
    pub is_log_json: bool,
}

/// Reads settings from sources, and names them in errors.
pub(super) struct Reader<'a> {
    pub(super) sources: &'a Sources,
}

impl Reader<'_> {
    pub(super) fn get<T>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, SettingError> {
        let (text, origin) = self.sources.value(name);
        read(text).map_err(|reason| SettingError {
            name: name.to_owned(),
            origin,
            reason,
        })
    }

    pub(super) fn size(
        &self,
        name: &str,
        least: usize,
        most: usize,
    ) -> Result<usize, SettingError> {
        self.get(name, |text| within(value::size(text)?, least, most))
    }

    pub(super) fn count(
        &self,
        name: &str,
        least: usize,
        most: usize,
    ) -> Result<usize, SettingError> {
        self.get(name, |text| within(value::count(text)?, least, most))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, SettingError> {
        self.get(name, |text| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(format!("{other:?} is neither true nor false")),
        })
    }

    pub(super) fn duration(&self, name: &str, least: Duration) -> Result<Duration, SettingError> {
        self.get(name, |text| match value::duration(text)? {
            duration if duration < least => Err(format!("must be at least {least:?}")),
            duration => Ok(duration),
        })
    }

    pub(super) fn wrong(&self, name: &str, reason: String) -> SettingError {
        SettingError {
            name: name.to_owned(),
            origin: self.sources.value(name).1,
            reason,
        }
    }
}

fn within(number: usize, least: usize, most: usize) -> Result<usize, String> {
    if number < least {
        Err(format!("must be at least {least}"))
    } else if number > most {
        Err(format!("must be at most {most}"))
    } else {
        Ok(number)
    }
}

impl Settings {
    /// Reads and checks all settings, including a password file.
    ///
    /// # Errors
    /// Returns the first invalid setting. The message never contains a connection string.
    pub fn read(sources: &Sources) -> Result<Self, SettingError> {
        let reader = Reader { sources };
        let address: SocketAddr = reader.get("listen.address", |text| {
            text.parse()
                .map_err(|_| format!("{text:?} is not an address such as 127.0.0.1:9201"))
        })?;
        let app = app(&reader, address)?;
        let is_log_json = reader.get("log.format", |text| match text {
            "text" => Ok(false),
            "json" => Ok(true),
            other => Err(format!("{other:?} is neither text nor json")),
        })?;
        Ok(Self {
            address,
            app,
            postgres: database::postgres(&reader)?,
            objects: objects(&reader)?,
            cache_bytes_max: reader.size("series.cache_bytes_max", 1 << 20, 1 << 40)?,
            log_filter: reader.get("log.level", log_filter)?,
            is_log_json,
        })
    }
}

/// Parses a level, or several for parts of the program. The filter's own parser would accept any
/// word, even a misspelt level, as the name of a part.
fn log_filter(text: &str) -> Result<EnvFilter, String> {
    let is_part = |directive: &str| directive.contains(['=', '[', ':']);
    let words = text.split(',').map(str::trim);
    for word in words.filter(|word| !is_part(word)) {
        word.parse::<LevelFilter>().map_err(|_| {
            format!("{word:?} is not one of off, error, warn, info, debug, trace; for a part of the program, write part=level")
        })?;
    }
    text.parse().map_err(|error| format!("{error}"))
}

fn app(reader: &Reader<'_>, address: SocketAddr) -> Result<AppSettings, SettingError> {
    let server = server(reader)?;
    let receive = receive(reader)?;
    let batch = BatchLimits {
        rows_max: reader.count("batch.rows_max", 1, lanes_wire::limits::ROWS_MAX / 2)?,
        age_max: reader.duration("batch.age_max", Duration::ZERO)?,
        in_flight_max: reader.count("postgres.sessions", 1, 64)?,
    };
    let pending_bytes_max = reader.size("receive.pending_bytes_max", 1 << 20, 1 << 40)?;
    let events = events(reader)?;
    let user_limits = user_limits(reader)?;
    for (name, rows_max) in [
        ("receive.samples_max", receive.request.samples_max),
        ("events.rows_max", events.rows_max),
    ] {
        if batch.rows_max + rows_max > lanes_wire::limits::ROWS_MAX {
            let reason = format!(
                "with batch.rows_max a batch could have more than {} rows",
                lanes_wire::limits::ROWS_MAX
            );
            return Err(reader.wrong(name, reason));
        }
    }
    let largest_request_bytes = receive
        .body_bytes_max
        .max(receive.request.samples_max * SampleRows::ROW_BYTES);
    if pending_bytes_max < largest_request_bytes {
        let reason = format!(
            "must be at least {largest_request_bytes} bytes, which the largest allowed request takes"
        );
        return Err(reader.wrong("receive.pending_bytes_max", reason));
    }
    let default_level = reader.get("ack.level", |text| text.parse::<AckLevel>())?;
    let has_objects = !reader.sources.value("objects.url").0.is_empty();
    if default_level == AckLevel::Object && !has_objects {
        return Err(reader.wrong("ack.level", NO_LOG.to_owned()));
    }
    Ok(AppSettings {
        server,
        hosts: reader.get("listen.hosts", Hosts::parse)?,
        access: access(reader, address)?,
        receive,
        events,
        user_limits,
        query: database::query(reader)?,
        pending_bytes_max,
        pending_wait: reader.duration("receive.pending_wait", Duration::ZERO)?,
        batch,
        default_level,
        has_objects,
        request_window: reader.duration("requests.window", Duration::from_secs(60))?,
        self_scrape: self_scrape(reader, address)?,
    })
}

/// Loads the users and certificates, and checks that the address may be served with them.
fn access(reader: &Reader<'_>, address: SocketAddr) -> Result<AccessSettings, SettingError> {
    let is_insecure = reader.flag("listen.insecure")?;
    let demand = match address.ip().is_loopback() || is_insecure {
        true => Demand::Nothing,
        false => Demand::Protection,
    };
    let (path, _) = reader.sources.value("listen.web_config");
    let path = (!path.is_empty()).then(|| PathBuf::from(path));
    let name = match path {
        Some(_) => "listen.web_config",
        None => "listen.address",
    };
    AccessSettings::load(path, demand).map_err(|error| reader.wrong(name, error.to_string()))
}

fn server(reader: &Reader<'_>) -> Result<ServerLimits, SettingError> {
    let second = Duration::from_secs(1);
    Ok(ServerLimits {
        connections_max: reader.count("listen.connections_max", 1, 1 << 20)?,
        workers: match reader.count("listen.workers", 0, 256)? {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        },
        handshake_timeout: reader.duration("listen.handshake_timeout", second)?,
        header_timeout: reader.duration("listen.header_timeout", second)?,
        write_timeout: reader.duration("listen.write_timeout", second)?,
        shutdown_timeout: reader.duration("listen.shutdown_timeout", Duration::ZERO)?,
    })
}

fn receive(reader: &Reader<'_>) -> Result<ReceiveLimits, SettingError> {
    let second = Duration::from_secs(1);
    let label = LabelLimits {
        labels_max: reader.count("receive.labels_max", 1, 10_000)?,
        name_bytes_max: reader.size("receive.label_name_bytes_max", 8, 1 << 20)?,
        value_bytes_max: reader.size("receive.label_value_bytes_max", 1, 1 << 20)?,
        order: reader.get("receive.label_order", |text| match text {
            "refuse" => Ok(LabelOrder::Refuse),
            "sort" => Ok(LabelOrder::Sort),
            other => Err(format!("{other:?} is neither refuse nor sort")),
        })?,
    };
    Ok(ReceiveLimits {
        body_bytes_max: reader.size("receive.body_bytes_max", 1 << 10, 1 << 30)?,
        decompressed_bytes_max: reader.size("receive.decompressed_bytes_max", 1 << 10, 1 << 30)?,
        body_timeout: reader.duration("listen.body_timeout", second)?,
        ack_timeout: reader.duration("ack.timeout", second)?,
        request: RequestLimits {
            samples_max: reader.count("receive.samples_max", 1, lanes_wire::limits::ROWS_MAX)?,
            label,
        },
    })
}

fn user_limits(reader: &Reader<'_>) -> Result<Limits, SettingError> {
    Limits::of(|limit| {
        let most = usize::try_from(limit.most()).unwrap_or(usize::MAX);
        let value = reader.count(&format!("users.{}", limit.name()), 0, most)?;
        Ok(value as u64)
    })
}

fn events(reader: &Reader<'_>) -> Result<EventSettings, SettingError> {
    Ok(EventSettings {
        schema: reader.get("events.schema", |text| match text {
            "" => Err("the schema must not be empty".to_owned()),
            name if name.contains('.') => Err(format!(
                "{name:?} contains a dot, which separates schema and table"
            )),
            name => Ok(name.to_owned()),
        })?,
        create_tables: reader.get("events.create_tables", |text| match text {
            "off" => Ok(CreateTables::Off),
            "logged" => Ok(CreateTables::Logged),
            "unlogged" => Ok(CreateTables::Unlogged),
            other => Err(format!("{other:?} is none of off, logged and unlogged")),
        })?,
        samples_table: reader.get("postgres.table", |text| Ok(text.to_owned()))?,
        rows_max: reader.count("events.rows_max", 1, lanes_wire::limits::ROWS_MAX)?,
    })
}

fn self_scrape(
    reader: &Reader<'_>,
    address: SocketAddr,
) -> Result<Option<SelfScrape>, SettingError> {
    let interval = reader.duration("self_scrape.interval", Duration::ZERO)?;
    if interval.is_zero() {
        return Ok(None);
    }
    if interval < Duration::from_millis(100) {
        return Err(reader.wrong("self_scrape.interval", "must be at least 100ms".to_owned()));
    }
    let (instance, _) = reader.sources.value("self_scrape.instance");
    let instance = if instance.is_empty() {
        address.to_string()
    } else {
        instance.to_owned()
    };
    Ok(Some(SelfScrape { interval, instance }))
}

fn objects(reader: &Reader<'_>) -> Result<Option<ObjectSettings>, SettingError> {
    let location = reader.get("objects.url", |text| match text {
        "" => Ok(None),
        text => text.parse().map(Some),
    })?;
    let second = Duration::from_secs(1);
    let interval = reader.duration("objects.interval", Duration::from_millis(100))?;
    let recalls_at_once = reader.count("objects.recalls_at_once", 1, 256)?;
    let orphan_age = reader.duration("objects.orphan_age", 60 * second)?;
    let cache_bytes_max = reader.size("objects.cache_bytes_max", 1 << 20, 1 << 40)?;
    let bytes_max = reader.size("objects.backlog_bytes_max", 0, 1 << 60)? as u64;
    Ok(location.map(|location| ObjectSettings {
        location,
        interval,
        recalls_at_once,
        orphan_age,
        backlog: BacklogLimit { bytes_max },
        cache_bytes_max,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::command;
    use crate::objects::Location;

    fn read(flags: &[&str]) -> Result<Settings, String> {
        let matches = command()
            .try_get_matches_from(["lanes-gateway"].iter().chain(flags))
            .unwrap();
        Settings::read(&Sources::gather(&matches).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_are_valid_and_bind_loopback() {
        let settings = read(&[]).unwrap();
        assert!(settings.address.ip().is_loopback());
        assert_eq!(settings.app.default_level, AckLevel::Wal);
        assert_eq!(settings.app.self_scrape.unwrap().instance, "127.0.0.1:9201");
        assert_eq!(
            settings.postgres.connection.config().get_application_name(),
            Some("lanes-gateway")
        );
    }

    #[test]
    fn values_out_of_bounds_are_named() {
        for (flags, expected) in [
            (
                &["--batch-rows-max", "0"][..],
                "batch.rows_max (flag): must be at least 1",
            ),
            (&["--ack-level", "object"], "set objects.url"),
            (&["--postgres-table", "samples"], "not schema.table"),
            (
                &["--postgres-connection", "host=a sslmode=on"],
                "postgres.connection (flag): sslmode is none of disable",
            ),
            (
                &["--receive-pending-bytes-max", "2MiB"],
                "largest allowed request",
            ),
            (&["--receive-samples-max", "16777216"], "batch.rows_max"),
            (&["--requests-window", "5s"], "must be at least 60s"),
            (&["--events-rows-max", "16777216"], "batch.rows_max"),
            (&["--events-schema", "a.b"], "contains a dot"),
            (
                &["--events-create-tables", "yes"],
                "is none of off, logged and unlogged",
            ),
            (&["--listen-workers", "1000"], "must be at most 256"),
            (&["--listen-address", "localhost"], "is not an address"),
            (&["--listen-hosts", "http://a"], "without scheme and port"),
            (&["--listen-insecure", "yes"], "is neither true nor false"),
            (
                &["--listen-address", "0.0.0.0:9201"],
                "listen.address (flag): an address other than loopback needs TLS and credentials: set listen.web_config",
            ),
            (
                &["--listen-address", "[::]:9201"],
                "needs TLS and credentials",
            ),
            (
                &["--listen-web-config", "/nonexistent/web.yml"],
                "listen.web_config (flag): \"/nonexistent/web.yml\": No such file",
            ),
            (&["--log-level", "loud"], "not one of off, error"),
            (&["--log-level", "info,hyper"], "write part=level"),
            (&["--log-level", "info,hyper=loud"], "log.level"),
            (
                &["--postgres-connection", "host=a port=1,2"],
                "2 ports for 1 hosts",
            ),
            (&["--objects-url", "s3:/bucket"], "is neither a directory"),
            (&["--log-format", "xml"], "log.format"),
            (
                &["--objects-url", "ftp://a"],
                "objects.url (flag): \"ftp://a\" is neither a directory",
            ),
            (&["--objects-orphan-age", "5s"], "must be at least 60s"),
            (&["--receive-label-order", "any"], "receive.label_order"),
            (&["--query-sessions", "1001"], "must be at most 1000"),
            (
                &["--query-connection", "host=a sslrootcert=/nonexistent"],
                "query.connection (flag): sslrootcert \"/nonexistent\": the gateway cannot read it: No such file",
            ),
            (&["--query-timeout", "0"], "query.timeout"),
        ] {
            let error = read(flags)
                .err()
                .unwrap_or_else(|| panic!("{flags:?} is taken"));
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_bad_connection_string_is_not_repeated() {
        for flag in ["--postgres-connection", "--query-connection"] {
            let error = read(&[flag, "password=secret port=x"]).err().unwrap();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn object_storage_is_off_by_default() {
        assert!(read(&[]).unwrap().objects.is_none());
        let settings = read(&["--objects-url", ".lanes/objects"]).unwrap();
        let location = settings.objects.unwrap().location;
        assert_eq!(location, Location::Directory(".lanes/objects".into()));
    }

    #[test]
    fn queries_are_off_by_default() {
        assert!(read(&[]).unwrap().app.query.connection.is_none());
        let settings = read(&["--query-connection", "host=a user=r"]).unwrap();
        let connection = settings.app.query.connection.unwrap();
        assert_eq!(
            connection.config().get_application_name(),
            Some("lanes-gateway query")
        );
    }

    #[test]
    fn an_explicit_word_serves_any_address() {
        let flags = [
            "--listen-address",
            "0.0.0.0:9201",
            "--listen-insecure",
            "true",
        ];
        assert!(read(&flags).is_ok());
    }

    #[test]
    fn self_scrape_can_be_disabled() {
        assert!(
            read(&["--self-scrape-interval", "0"])
                .unwrap()
                .app
                .self_scrape
                .is_none()
        );
    }
}
