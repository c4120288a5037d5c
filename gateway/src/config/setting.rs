//! Every setting, once.

/// One setting: `section.key` in TOML, `--section-key` as a flag, `LANES_GATEWAY_SECTION_KEY` in the environment.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// TOML table.
    pub section: &'static str,
    /// Key in the table.
    pub key: &'static str,
    /// What the value is: shown in `--help`.
    pub kind: &'static str,
    /// Used when no source gives one.
    pub default: &'static str,
    /// One line for people.
    pub help: &'static str,
}

impl Setting {
    /// `section.key`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.section, self.key)
    }

    /// `section-key`, the long flag.
    pub fn flag(&self) -> String {
        self.name().replace(['.', '_'], "-")
    }

    /// The environment variable.
    pub fn variable(&self) -> String {
        format!(
            "LANES_GATEWAY_{}",
            self.name().replace('.', "_").to_uppercase()
        )
    }
}

const fn setting(
    section: &'static str,
    key: &'static str,
    kind: &'static str,
    default: &'static str,
    help: &'static str,
) -> Setting {
    Setting {
        section,
        key,
        kind,
        default,
        help,
    }
}

/// The table.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    setting("listen", "address", "ADDRESS", "127.0.0.1:9201", "Where HTTP is served; loopback unless told otherwise"),
    setting("listen", "hosts", "NAMES", "", "Names under which requests may ask for it (header Host), with commas between; addresses and localhost always may; * for any"),
    setting("listen", "connections_max", "COUNT", "16384", "HTTP connections open at once; more wait to be accepted"),
    setting("listen", "workers", "COUNT", "0", "Threads that serve requests, each with sessions of its own; 0 for one a processor"),
    setting("listen", "header_timeout", "DURATION", "60s", "Time for the head of a request, and for idling between requests"),
    setting("listen", "body_timeout", "DURATION", "30s", "Time for the body of a request; then 503"),
    setting("listen", "write_timeout", "DURATION", "30s", "Time for a client to read some of its answers; then its connection is closed"),
    setting("listen", "shutdown_timeout", "DURATION", "30s", "Time for requests on their way when the gateway is told to stop"),

    setting("receive", "body_bytes_max", "SIZE", "32MiB", "Bytes of a request as sent; more is 400"),
    setting("receive", "decompressed_bytes_max", "SIZE", "64MiB", "Bytes that a request may declare once decompressed; more is 400"),
    setting("receive", "samples_max", "COUNT", "1000000", "Samples of a request; more is 400"),
    setting("receive", "labels_max", "COUNT", "128", "Labels of a series, __name__ included; more refuses the series"),
    setting("receive", "label_name_bytes_max", "SIZE", "1KiB", "Bytes of a label's name; more refuses the series"),
    setting("receive", "label_value_bytes_max", "SIZE", "8KiB", "Bytes of a label's value; more refuses the series. Metric names: 1 KiB at most"),
    setting("receive", "label_order", "refuse|sort", "refuse", "Labels not sorted by name: refuse the series, or sort them (vmagent without -sortLabels)"),
    setting("receive", "pending_bytes_max", "SIZE", "256MiB", "Memory of all requests not answered yet; who finds it used up waits, then 503"),
    setting("receive", "pending_wait", "DURATION", "2s", "How long a request waits for that memory, before it is read; then 503"),

    setting("events", "schema", "NAME", "public", "Schema of tables that events name without one"),
    setting("events", "create_tables", "off|logged|unlogged", "off", "Whether the first request for a table that does not exist creates it, as a lanes table"),
    setting("events", "rows_max", "COUNT", "1000000", "Rows of a request with events; more is 400"),

    setting("batch", "rows_max", "COUNT", "65536", "Rows after which a batch takes no more requests"),
    setting("batch", "age_max", "DURATION", "5ms", "How long the first request of a batch waits for others while a batch is on its way; a lone request never waits"),

    setting("ack", "level", "memory|wal|replica|object", "wal", "What 204 promises, unless a request's header X-Lanes-Ack chooses; object wants objects.url"),
    setting("ack", "timeout", "DURATION", "15s", "How long a request waits for PostgreSQL, retries included; then 503"),

    setting("postgres", "connection", "STRING", "host=127.0.0.1 port=5432 user=lanes_gateway dbname=lanes", "Connection string or URL; never logged"),
    setting("postgres", "password_file", "PATH", "", "File with the password; else connection, PGPASSWORD, PGPASSFILE or ~/.pgpass"),
    setting("postgres", "table", "NAME", "lanes.samples", "Table of samples, with its schema"),
    setting("postgres", "sessions", "COUNT", "2", "Batches on their way at once, and so sessions, for each worker and level in use: so many for samples, and one more for tables of events, of which each leaves half of what others have left"),
    setting("postgres", "connect_timeout", "DURATION", "5s", "Time to open a session"),
    setting("postgres", "statement_timeout", "DURATION", "10s", "Time for one call"),

    setting("requests", "window", "DURATION", "24h", "How long digests are kept: a request repeated within it is applied once"),

    setting("series", "cache_bytes_max", "SIZE", "256MiB", "Memory for series whose id is known without asking"),

    setting("objects", "url", "DIRECTORY|URL", "", "Where sealed segments go that are older than their table's `hot`: a directory (.lanes/objects), or s3://bucket/prefix with the usual AWS_ variables; one for each database, nowhere if empty"),
    setting("objects", "interval", "DURATION", "10s", "How often the database is asked for segments to put there"),
    setting("objects", "recalls_at_once", "COUNT", "8", "Segments fetched for queries at once, and so in memory"),
    setting("objects", "orphan_age", "DURATION", "10m", "How long an object is kept that no table names any more; as long as backups are kept, if those are to be restored to any moment"),
    setting("objects", "backlog_bytes_max", "SIZE", "64GiB", "Bytes of segments that may wait in the database while the store is away or slow; above it writes are 503. 0 for no limit"),
    setting("objects", "cache_bytes_max", "SIZE", "64MiB", "Memory for the store's indexes and filters"),

    setting("self_scrape", "interval", "DURATION", "5s", "How often the gateway stores its own metrics; 0 for never"),
    setting("self_scrape", "instance", "STRING", "", "Label instance of its own metrics; the listening address if empty"),

    setting("log", "level", "FILTER", "info,slatedb=off", "off, error, warn, info, debug, trace, or part=level; several with commas between. The gateway itself tells what goes wrong in the store"),
    setting("log", "format", "text|json", "text", "Form of log lines, which go to standard error"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_in_every_form() {
        for form in [Setting::name, Setting::flag, Setting::variable] {
            let mut names: Vec<String> = SETTINGS.iter().map(form).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), SETTINGS.len());
        }
        assert_eq!(SETTINGS[8].flag(), "receive-body-bytes-max");
        assert_eq!(
            SETTINGS[8].variable(),
            "LANES_GATEWAY_RECEIVE_BODY_BYTES_MAX"
        );
    }
}
