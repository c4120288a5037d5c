//! The table of all settings.

/// A setting: `section.key` in TOML, `--section-key` as a flag, `LANES_GATEWAY_SECTION_KEY` in the
/// environment.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The TOML table.
    pub section: &'static str,
    /// The key in the TOML table.
    pub key: &'static str,
    /// The form of the value, as shown by `--help`.
    pub kind: &'static str,
    /// The value if no source contains one.
    pub default: &'static str,
    /// The help text, one line.
    pub help: &'static str,
}

impl Setting {
    /// The name in TOML: `section.key`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.section, self.key)
    }

    /// The long flag: `section-key`.
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

/// All settings.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    setting("listen", "address", "ADDRESS", "127.0.0.1:9201", "Address and port to listen on"),
    setting("listen", "hosts", "NAMES", "", "Comma-separated host names (header Host) that are served in addition to addresses and localhost; * for any"),
    setting("listen", "web_config", "PATH", "", "File with users and certificates, in the format of Prometheus's web configuration; read again when it changes. Without it there is neither TLS nor authentication"),
    setting("listen", "insecure", "true|false", "false", "Whether an address other than loopback may be served without TLS and credentials, because something else protects it"),
    setting("listen", "connections_max", "COUNT", "16384", "Maximum number of open HTTP connections; further connections wait to be accepted"),
    setting("listen", "workers", "COUNT", "0", "Threads that serve requests, each with its own sessions; 0 for one per processor"),
    setting("listen", "handshake_timeout", "DURATION", "10s", "Timeout for a TLS handshake"),
    setting("listen", "header_timeout", "DURATION", "60s", "Timeout for the head of a request, and for idle connections"),
    setting("listen", "body_timeout", "DURATION", "30s", "Timeout for the body of a request; the answer is then 503"),
    setting("listen", "write_timeout", "DURATION", "30s", "Time after which the connection of a client that does not read its answers is closed"),
    setting("listen", "shutdown_timeout", "DURATION", "30s", "Time for requests in flight to complete on shutdown"),

    setting("receive", "body_bytes_max", "SIZE", "32MiB", "Maximum bytes of a request as sent; longer requests are answered with 400"),
    setting("receive", "decompressed_bytes_max", "SIZE", "64MiB", "Maximum bytes of a request after decompression; longer requests are answered with 400"),
    setting("receive", "samples_max", "COUNT", "1000000", "Maximum number of samples in a request; larger requests are answered with 400"),
    setting("receive", "labels_max", "COUNT", "128", "Maximum number of labels of a series, including __name__; series with more are refused"),
    setting("receive", "label_name_bytes_max", "SIZE", "1KiB", "Maximum bytes of a label's name; series with longer names are refused"),
    setting("receive", "label_value_bytes_max", "SIZE", "8KiB", "Maximum bytes of a label's value; series with longer values are refused. Metric names have at most 1 KiB"),
    setting("receive", "label_order", "refuse|sort", "refuse", "Whether series with unsorted labels are refused or their labels sorted (for vmagent without -sortLabels)"),
    setting("receive", "pending_bytes_max", "SIZE", "256MiB", "Maximum memory of all requests in flight; further requests wait, and are then answered with 503"),
    setting("receive", "pending_wait", "DURATION", "2s", "How long a request waits for memory before it is read; the answer is then 503"),

    setting("events", "schema", "NAME", "public", "Schema of tables that requests name without one"),
    setting("events", "create_tables", "off|logged|unlogged", "off", "Whether the first request for a missing table creates it as a lanes table"),
    setting("events", "rows_max", "COUNT", "1000000", "Maximum number of rows in a request with events; larger requests are answered with 400"),

    setting("users", "samples_per_second", "COUNT", "0", "Samples and events that a user may write in a second, in \
        the mean of a minute; beyond it requests are answered with 429; 0 for no limit. The file listen.web_config \
        may give a user another limit, here and below"),
    setting("users", "series_max", "COUNT", "0", "Series that a user may write in a day; beyond it series that are \
        not registered yet are refused; 0 for no limit"),
    setting("users", "new_series_per_minute", "COUNT", "0", "Series that a user may register in a minute; further \
        ones are refused; 0 for no limit"),
    setting("users", "metric_names_max", "COUNT", "0", "Metric names that a user may write; beyond it series with \
        another name are refused unless they are registered; 0 for no limit"),

    setting("batch", "rows_max", "COUNT", "65536", "Number of rows from which on no more requests are added to a batch"),
    setting("batch", "age_max", "DURATION", "5ms", "How long the first request of a batch waits for others while another batch is in flight; a lone request never waits"),

    setting("ack", "level", "memory|wal|replica|object", "wal", "Promise of the answer 204, unless the request chooses one in its header X-Lanes-Ack; object requires objects.url"),
    setting("ack", "timeout", "DURATION", "15s", "How long a request waits for PostgreSQL, including retries; the answer is then 503"),

    setting("postgres", "connection", "STRING", "host=127.0.0.1 port=5432 user=lanes_gateway dbname=lanes",
        "Connection string or URL of the database, with sslmode, sslrootcert, sslcert and sslkey as in libpq; never \
        logged"),
    setting("postgres", "password_file", "PATH", "", "File with the password; otherwise it is taken from the connection string, PGPASSWORD, PGPASSFILE or ~/.pgpass"),
    setting("postgres", "table", "NAME", "lanes.samples", "Table of samples, with its schema"),
    setting("postgres", "sessions", "COUNT", "2", "Maximum batches in flight, and so sessions, of each worker and level in use: this number for samples, and one more for events, which their tables share"),
    setting("postgres", "connect_timeout", "DURATION", "5s", "Timeout for opening a session"),
    setting("postgres", "statement_timeout", "DURATION", "10s", "Timeout for a call"),

    setting("query", "connection", "STRING", "", "Connection string or URL by which the HTTP query API reads, as a role that lanes.grant_reader was called for; never logged; the API is off if empty"),
    setting("query", "password_file", "PATH", "", "File with the password of query.connection; otherwise it is taken from the connection string, PGPASSWORD, PGPASSFILE or ~/.pgpass"),
    setting("query", "sessions", "COUNT", "0", "Maximum number of sessions for queries, and so of queries that run; \
        all workers share them; 0 for two per processor, from 4 to 32"),
    setting("query", "queue", "COUNT", "32", "Maximum number of queries that wait for a session; further ones are answered with 503"),
    setting("query", "queue_wait", "DURATION", "10s", "How long a query waits for a session; the answer is then 503"),
    setting("query", "timeout", "DURATION", "2m", "Maximum time of a query; a request may ask for less by its parameter timeout"),
    setting("query", "lookback_delta", "DURATION", "5m", "Age up to which a sample counts, unless the request says otherwise"),
    setting("query", "read_samples_max", "COUNT", "50000000", "Maximum number of samples of an answer to a remote \
        read of type SAMPLES; larger ones are answered with 400"),
    setting("query", "read_bytes_max", "SIZE", "256MiB", "Maximum memory of all answers to remote reads of type \
        SAMPLES, which are complete before they are sent"),
    setting("query", "admin_api", "true|false", "false", "Whether samples can be deleted by \
        /api/v1/admin/tsdb/delete_series, as a role that was granted DELETE on lanes.samples"),

    setting("requests", "window", "DURATION", "24h", "How long digests are kept; a request repeated within this time is applied once"),

    setting("series", "cache_bytes_max", "SIZE", "256MiB", "Maximum memory of the cache of series ids, and of the index of all series"),

    setting("objects", "url", "DIRECTORY|URL", "", "Object storage for sealed segments older than their table's `hot`: a directory (such as .lanes/objects), or s3://bucket/prefix with the usual AWS_ variables; one for each database; off if empty"),
    setting("objects", "interval", "DURATION", "10s", "How often the database is queried for segments to offload"),
    setting("objects", "recalls_at_once", "COUNT", "8", "Maximum number of segments fetched for queries at the same time, and so held in memory"),
    setting("objects", "orphan_age", "DURATION", "10m", "How long an object is kept after no table refers to it; choose the retention time of backups if these are to be restored to any point in time"),
    setting("objects", "backlog_bytes_max", "SIZE", "64GiB", "Maximum bytes of segments that wait in the database while the store is unavailable or slow; beyond it writes are answered with 503; 0 for no limit"),
    setting("objects", "cache_bytes_max", "SIZE", "64MiB", "Maximum memory for the store's indexes and filters"),

    setting("self_scrape", "interval", "DURATION", "5s", "How often the gateway stores its own metrics; 0 to disable"),
    setting("self_scrape", "instance", "STRING", "", "Label `instance` of the gateway's own metrics; the listening address if empty"),

    setting("log", "level", "FILTER", "info,slatedb=off", "Comma-separated list of off, error, warn, info, debug, trace, or part=level; the gateway itself logs errors of the store"),
    setting("log", "format", "text|json", "text", "Format of log lines, which are written to standard error"),
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
        assert_eq!(SETTINGS[11].flag(), "receive-body-bytes-max");
        assert_eq!(
            SETTINGS[11].variable(),
            "LANES_GATEWAY_RECEIVE_BODY_BYTES_MAX"
        );
    }
}
