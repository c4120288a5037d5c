//! Object storage: sealed segments are offloaded to it, and recalled when a query needs them.
//!
//! ```text
//! PostgreSQL  offload_list, segment_image ─► offload ─► put, durable ─► store (SlateDB) ─► S3 or a directory
//!             offload_commit ◄───────────────┘                             │
//!             recall_next ─────────────────► recall ─► get ◄───────────────┤
//!             recall_supply, recall_fail ◄───┘                             │
//!             remote_keys ─────────────────► orphans ─► keys, delete ──────┘
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`model`] | records of the store, states and metrics |
//! | [`source`] | the database, as a trait and over three sessions: work under the claim, waiting, answers |
//! | [`store`] | the store, as a trait and as SlateDB in a directory or a bucket |
//! | [`log`] | batches acknowledged at level `object`, until all their rows are in segments |
//! | [`offload`] | due parts are put, made durable and committed |
//! | [`recall`] | segments for queries, several at once |
//! | [`orphans`] | keys that no part names are deleted |
//! | [`definitions`] | definitions of tables are kept up to date |
//! | [`owner`], [`adopt`] | the one database whose gateways may write to the store |
//! | [`term`] | the time for which a gateway is the one that writes |
//! | [`backlog`] | refusal of writes while too much waits to be offloaded |
//! | [`run`] | a thread with its own runtime, so that requests are not affected |
//! | [`fuzz`] | the fuzzing entry |
//!
//! # Who may write
//! A store belongs to one database. [`owner`] decides which, and gateways of other databases only
//! read. Among the gateways of this database there are two locks, because two things have to be
//! protected:
//! - SlateDB's epoch protects the store. The gateway that opens it last is its writer. The previous
//!   one is *fenced*: its next write fails, and within a second its next look at the manifest. A
//!   gateway that starts therefore takes over, even if the other one hangs or is unreachable.
//! - The *claim* protects the catalogue. It is an advisory lock, held by the session that commits
//!   and reads `remote_keys`. The fenced gateway releases it by closing its session; until then the
//!   new one only recalls. A running commit keeps its session, and so the claim. A gateway with the
//!   claim therefore knows that all commits of others are decided.
//!
//! A fenced gateway continues with all its other work. It opens the store again only after it has
//! acquired the claim, which it first tries after [`model::Pauses::standby`]. It therefore returns
//! when the other gateway has ended, and two gateways never fence each other in turns.
//!
//! # Why a crash loses nothing
//! The rows of a part are given up only by the transaction of `offload_commit`, which is called
//! after every segment of the part is durable.
//!
//! | crash after | consequence |
//! |---|---|
//! | some segments are put | the part is still local and due: it is put again, with the same bytes under the same keys |
//! | all segments are durable, before the commit | the part is put again, likewise |
//! | the commit, before its answer | the part is not listed again. Nothing is deleted, because only the answer `false` allows that |
//! | the answer `false`, before the objects are deleted | the objects are orphans |
//!
//! # Why orphans do not stay
//! Every object that is in the store and not in `remote_keys` is an orphan, whether because of a
//! crash, a dropped table or expired rows. Offloading and collecting run in the same task, so no
//! part is being offloaded while keys are compared. Other gateways are kept out by the claim. If
//! the claim is lost in between, whoever could acquire it has opened the store first, which makes
//! the deletion fail. Only keys with the prefix of this database (`<system id>/<database>/`) are
//! deleted, and only after they have been orphans for [`run::ObjectSettings::orphan_age`]. Queries
//! that began before a table was dropped can still read it, and a database restored to an earlier
//! point in time finds its objects if that point is no further back.
//!
//! A deletion alone frees no bytes: SlateDB drops them when it rewrites the tables that contain
//! them, which happens as more is written. The store is therefore rewritten as a whole once a fifth
//! of its keys are deleted ([`orphans`]), and the old files are deleted within half an hour
//! ([`store::slate_settings`]).
//!
//! # Failure cases
//! | case | effect |
//! |---|---|
//! | the object store is unavailable or refuses | SlateDB repeats every request forever; puts wait, rows stay local and the lag grows; recalls fail after [`store::slate::GET_TIMEOUT`]; beyond the limit of [`backlog`], writes are answered with 503 |
//! | the extension lacks the functions | nothing is opened; the gateway checks again after [`model::Pauses::unsupported`] |
//! | PostgreSQL is unavailable | the claim is lost with the session and acquired again; the store stays open |
//! | a segment cannot be read | its part is skipped and tried again later; other parts are offloaded |

pub mod model;

pub mod source;

pub mod store;

pub mod log;

pub mod adopt;
pub mod backlog;
pub mod definitions;
pub mod fuzz;
pub mod offload;
pub mod orphans;
pub mod owner;
pub mod recall;
pub mod run;
pub mod term;

#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod offload_tests;
#[cfg(test)]
mod term_tests;
#[cfg(test)]
mod test_store;
#[cfg(test)]
mod test_support;

pub use backlog::BacklogLimit;
pub use log::{LogWriter, ObjectLog};
pub use run::{ObjectSettings, Objects};
pub use source::{DueSegment, PostgresSource, Source, SourceError};
pub use store::{Location, Opener, SlateOpener, SlateStore, Store, StoreError};
