//! The gateway: Prometheus remote write in, batches for `lanes.append` out. An ordinary PostgreSQL client; it can die at any moment
//! without losing what it acknowledged, because it acknowledges only what is committed.
//!
//! ```text
//! HTTP -> server -> service, router -> receive            -> batch                 -> deliver            -> PostgreSQL
//!         limits    routes             body, snappy,         series ids, memory      sessions, retries,
//!                                      protobuf, labels      budget, coalescing      exactly once
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`config`] | every setting once: flag, environment, TOML, default, help |
//! | [`server`], [`service`], [`router`], [`error`] | connections and their bounds; the short way of events; routes; the answers other than success |
//! | [`receive`] | a request from bytes to rows |
//! | [`events`] | batches of events in three formats, for any table |
//! | [`batch`] | series ids, the memory budget, requests coalesced into batches |
//! | [`deliver`] | batches into PostgreSQL until their outcome is known |
//! | [`objects`] | sealed segments into object storage and back; the log of what is acknowledged at level `object` |
//! | [`restore`] | a database again, from object storage alone |
//! | [`observe`] | metrics, status, readiness, self-scrape |
//! | [`worker`] | what each thread that serves requests has for itself |
//! | [`app`] | all of it put together, started and stopped |
//! | [`program`] | the program: settings, logs, signals |
//! | [`clock`] | the one source of time |
//!
//! # Invariants
//! - An answer 204 means: the rows are committed at the level asked for, and with them the request's digest if it has one. Remote write
//!   always has, events with an `Idempotency-Key` have.
//! - A request with a digest is applied at most once while that is kept (`requests.window`), however often it is repeated. Events without
//!   a key are applied each time that they are sent, and each time at most once.
//! - A series id is used only for the registry that gave it.
//! - Whatever clients send, memory stays within `receive.pending_bytes_max`, twice `series.cache_bytes_max`, 4 MiB a worker thread,
//!   36 KiB a connection (24 of what it is being sent, [`server::CONNECTION_BYTES_MAX`], the rest its own), and 32 MiB of what is kept from batch to batch
//!   ([`batch::payload::JOINERS_BYTES_MAX`]). One request that alone can take more than all of the budget comes on top: see
//!   [`batch::budget`]. So do two copies of each batch on its way, as encoded and as handed to its session: `postgres.sessions` of samples
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
pub mod config;

pub mod error;
pub mod router;
pub mod server;
pub mod service;

pub mod receive;

pub mod events;
pub mod hosts;

pub mod batch;

pub mod deliver;

pub mod objects;

pub mod restore;

pub mod observe;

pub mod worker;

pub mod app;

pub mod program;
