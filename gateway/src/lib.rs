//! The gateway: Prometheus remote write in, batches for `lanes.append` out. An ordinary PostgreSQL client; it can die at any moment
//! without losing what it acknowledged, because it acknowledges only what is committed.
//!
//! ```text
//! HTTP ─► http ─► app ─► receive ─► batch ─► deliver ─► PostgreSQL
//!                   └──► events ─────┘          └─────► objects ─► object storage
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`model`], [`clock`] | what the parts exchange; the source of time |
//! | [`metrics`] | the registry that each part adds its metrics to |
//! | [`series`] | label sets and series ids |
//! | [`http`] | connections, bodies and refusals |
//! | [`receive`] | a remote write request, from bytes to rows |
//! | [`events`] | batches of events in three formats, for any table |
//! | [`batch`] | registration of new series; requests joined into batches |
//! | [`deliver`] | batches into PostgreSQL until their outcome is known |
//! | [`objects`] | sealed segments into object storage and back; the log of level `object` |
//! | [`restore`] | a database restored from object storage alone |
//! | [`observe`] | supervision, status and self-scrape |
//! | [`app`] | routes, workers, and all parts put together |
//! | [`config`] | every setting once: flag, environment variable, TOML key, default, help |
//! | [`program`] | the program: settings, logs and signals |
//!
//! # Invariants
//! - An answer 204 means: the rows are committed at the level asked for, and with them the request's digest if it has one. Remote write
//!   always has, events with an `Idempotency-Key` have.
//! - A request with a digest is applied at most once while that is kept (`requests.window`), however often it is repeated. Events without
//!   a key are applied each time that they are sent, and each time at most once.
//! - A series id is used only for the registry that gave it.
//! - Whatever clients send, memory stays within `receive.pending_bytes_max`, twice `series.cache_bytes_max`, 4 MiB a worker thread,
//!   36 KiB a connection (24 of what it is being sent, [`http::server::CONNECTION_BYTES_MAX`], the rest its own), and 32 MiB of what is kept from batch to batch
//!   ([`batch::accumulate::JOINERS_BYTES_MAX`]). One request that alone can take more than all of the budget comes on top: see
//!   [`model::budget`]. So do two copies of each batch on its way, as encoded and as handed to its session: `postgres.sessions` of samples
//!   and one more of events, for each worker and level in use; and 64 bytes for each column of a request with events.
//!
//! # Failure cases
//! | what | then |
//! |---|---|
//! | PostgreSQL away | requests wait until `ack.timeout`, then 503 with Retry-After; not ready; sessions are reopened |
//! | session lost while committing | the batch is repeated; digests decide whether it had been applied |
//! | gateway killed | nothing acknowledged is lost; senders repeat what was not |
//! | database replaced or failed over | cached series ids are forgotten; requests on their way get 503 and are resolved anew |
//! | overload | requests wait before they are read, then 503; those that were let in are stored |
//! | a client that sends or reads too slowly | its connection is closed in time; what it holds is little until then |

#![forbid(unsafe_code)]

pub mod clock;
pub mod model;

pub mod metrics;
pub mod series;

pub mod http;

pub mod receive;

pub mod events;

pub mod batch;

pub mod deliver;

pub mod objects;

pub mod restore;

pub mod observe;

pub mod app;

pub mod config;
pub mod program;
