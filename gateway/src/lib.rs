//! The gateway receives Prometheus remote write and events, and appends them to PostgreSQL tables
//! in batches. It is an ordinary PostgreSQL client. It may crash at any moment without losing what
//! it acknowledged, because it acknowledges only what is committed.
//!
//! ```text
//! HTTP ─► http ─► app ─► receive ─► batch ─► deliver ─► PostgreSQL
//!                   ├──► events ─────┘          └─────► objects ─► object storage
//!                   ├──► page
//!                   └──► query ◄──────────────────────► PostgreSQL, as a role that reads
//! ```
//!
//! From the ground floor upwards: a module uses only modules that stand above it, or in its line.
//!
//! | module | contents |
//! |---|---|
//! | [`model`], [`clock`], [`stamp`] | what the parts exchange; the source of time; whether files have changed |
//! | [`connect`] | sessions with PostgreSQL: address, role, password, TLS |
//! | [`metrics`] | the registry that each part adds its metrics to |
//! | [`series`] | label sets and series ids |
//! | [`http`] | connections, bodies and refusals |
//! | [`quota`] | what a user may write: samples a second, series, names of metrics |
//! | [`objects`] | offloading of sealed segments to object storage and their recall; the log of level `object` |
//! | [`deliver`] | batches into PostgreSQL until their outcome is known |
//! | [`access`] | users, certificates, and the PostgreSQL role of a request |
//! | [`batch`] | registration of new series; requests joined into batches |
//! | [`receive`] | a remote write request, from bytes to rows |
//! | [`events`] | batches of events in three formats, for any table |
//! | [`restore`] | a database restored from object storage alone |
//! | [`query`] | Prometheus's HTTP query API: PromQL, labels and remote read, answered by PostgreSQL |
//! | [`page`] | the web page at `/`: queries, an explorer of metrics, the status |
//! | [`observe`] | supervision, status and self-scrape |
//! | [`app`] | routes, workers, and all parts put together |
//! | [`config`] | all settings: flag, environment variable, TOML key, default and help |
//! | [`program`] | the program: settings, logs and signals |
//!
//! # Invariants
//! - The answer 204 means that the rows are committed at the requested level, together with the
//!   request's digest if it has one. Remote write requests always have a digest, events have one
//!   with an `Idempotency-Key`.
//! - A request with a digest is applied at most once while the digest is kept (`requests.window`),
//!   however often it is repeated. Events without a key are applied at most once each time that
//!   they are sent.
//! - A series id is used only for the registry that assigned it.
//! - Whatever clients send, the memory is bounded by the sum of these:
//!
//! | memory | limit |
//! |---|---|
//! | requests | `receive.pending_bytes_max`; a single request that could take more than the whole budget may exceed it, see [`model::budget`] |
//! | series | twice `series.cache_bytes_max` |
//! | worker threads | 4 MiB each |
//! | connections | 36 KiB each: 24 KiB for received bytes ([`http::server::CONNECTION_BYTES_MAX`]), the rest for the connection itself |
//! | TLS | 64 KiB more for each connection ([`http::server::TLS_BYTES_MAX`]) |
//! | credentials | the file, 1 MiB at most, and 2,048 headers of 40 bytes each that were checked ([`access::accounts`]) |
//! | limits of users | 12 bytes for each series and 20 for each name that a user with such limits may have ([`quota`]) |
//! | joiners kept from batch to batch | 32 MiB ([`batch::accumulate::JOINERS_BYTES_MAX`]) |
//! | batches in flight | two copies each, one encoded and one in its session: `postgres.sessions` batches of samples and one more of events, for each worker and level in use |
//! | events | 64 bytes for each column of a request |
//! | answers to queries | a few pieces of 64 KiB for each of `query.sessions`; the longest item of a piece is one series of labels, one series of 11,001 points, or one frame of 1 MiB |
//! | answers to remote reads of type `SAMPLES` | `query.read_bytes_max` |
//!
//! # Failure cases
//! | case | effect |
//! |---|---|
//! | PostgreSQL is unavailable | requests wait until `ack.timeout`, then 503 with Retry-After; the gateway is not ready; sessions are reopened |
//! | a session is lost during a commit | the batch is repeated; digests decide whether it was applied |
//! | the gateway is killed | nothing acknowledged is lost; senders repeat the rest |
//! | the database is replaced or fails over | cached series ids are dropped; requests in flight get 503 and are resolved again when repeated |
//! | PostgreSQL cannot answer queries | 503 with Retry-After for queries only; writes have sessions of their own |
//! | overload | requests wait before they are read, then 503; admitted requests are stored |
//! | credentials are missing or wrong | 401 before the body is read |
//! | a user exceeds its rate of samples | 429 with Retry-After; nothing of the request is stored |
//! | a user exceeds a limit of series | 400; the new series are refused, the rest is stored |
//! | the file of users cannot be used | it changes nothing; at the start the gateway ends |
//! | a client sends or reads too slowly | its connection is closed after a timeout; until then it holds little memory |

#![forbid(unsafe_code)]

pub mod clock;
pub mod stamp;

pub mod model;

pub mod connect;

pub mod metrics;

pub mod series;

pub mod http;

pub mod quota;

pub mod objects;

pub mod deliver;

pub mod access;

pub mod batch;

pub mod receive;

pub mod events;

pub mod restore;

pub mod query;

pub mod page;

pub mod observe;

pub mod app;

pub mod config;
pub mod program;
