//! Sealed segments into object storage, and back where a query wants them.
//!
//! ```text
//! PostgreSQL  offload_list, segment_image ─► offload ─► put, durable ─► store (SlateDB) ─► S3 or a directory
//!             offload_commit ◄───────────────┘                             │
//!             recall_next ─────────────────► recall ─► get ◄───────────────┤
//!             recall_supply, recall_fail ◄───┘                             │
//!             remote_keys ─────────────────► orphans ─► keys, delete ──────┘
//! ```
//!
//! | what | module | noun |
//! |---|---|---|
//! | what the database is asked | [`source`] | the SQL contract, as a trait: tests have their own |
//! | over what | [`postgres`], [`session`] | three sessions: work under the claim, waiting, answers |
//! | what is kept | [`store`] | images under keys, as a trait |
//! | by what | [`slate`], [`slate_settings`] | SlateDB and its settings, each with its reason |
//! | where | [`location`], [`observed`] | a directory or a bucket; every request to it counted |
//! | away | [`offload`] | whole parts: put, durable, committed |
//! | back | [`recall`] | several segments at once |
//! | left over | [`orphans`] | keys that no part names |
//! | what else is kept | [`record`] | documents from which alone a database can be made again |
//! | what is acknowledged at level `object` | [`log`] | batches, until all their rows are in segments |
//! | whose | [`owner`] | one database of all that there are, and its heirs |
//! | read beside that one | [`reader`] | by restore, and by gateways of standbys and copies |
//! | by whom | [`term`], [`state`] | one gateway of all that there are; what it says of itself |
//! | how much waits, and what follows | [`backlog`] | more than a limit: writes are refused |
//! | on what | [`run`] | a thread with a runtime of its own: none of this is on the way of a request |
//!
//! # Who may write
//! A store is one database's: [`owner`] tells which, and a gateway of another one only reads. Among the gateways of
//! that database there are two locks, because there are two things to guard:
//! - SlateDB's epoch guards the store. Whoever opens it last is its writer; the one before is *fenced*: its next write, and within a second
//!   its look at the manifest, fails. So a gateway that is started takes over, be the other one hung or far away.
//! - An advisory lock, held by the very session that commits and reads `remote_keys`, guards the catalogue: the *claim*. The fenced gateway
//!   gives it up by closing its session; until then the new one only recalls. A commit that is still running holds its session, and so
//!   the claim: who has the claim knows that all commits of others are decided.
//!
//! A fenced gateway goes on with everything else. It opens the store again only once it has got the claim, which it does not even
//! ask for until [`term::Pauses::standby`] has passed: it comes back when the other one is gone, and two of them never fence each other in turns.
//!
//! # Why a crash loses nothing
//! A part's rows are given up by the transaction of `offload_commit` alone, and that is called once every segment of the part is durable.
//!
//! | dies after | then |
//! |---|---|
//! | some segments are put | the part is still local and due: it is put again, the same bytes under the same keys |
//! | all are durable, before the commit | the same |
//! | the commit, its answer lost | the part is not listed again, and nothing is deleted: only an answer `false` allows that |
//! | an answer `false`, before the objects are deleted | they are orphans |
//!
//! # Why no orphan stays for ever
//! Whatever is in the store and not in `remote_keys` is an orphan, whichever way it became one: by a crash, or because its table was dropped or
//! its rows aged out. Offloading and collecting are one task, so nothing is on its way while that is asked; others are kept out by
//! the claim, and if that is lost in between, whoever could have got it has opened the store first, which fails the delete.
//! Only keys that begin as this database's do (`<system id>/<database>/`) are touched, and only once they have been seen to be orphans for
//! [`run::ObjectSettings::orphan_age`]: queries that began before a table was dropped still read it, and a database restored to a moment
//! before finds what it names if that moment is no further back.
//!
//! A deletion alone frees nothing: SlateDB drops the bytes when it rewrites the tables that hold them, which it does as
//! more is written. So the store is rewritten as a whole once a fifth of its keys are deleted ([`orphans`]), and what
//! it leaves behind is deleted within half an hour ([`slate_settings`]).
//!
//! # Failure cases
//! | what | then |
//! |---|---|
//! | the object store is away or refuses | SlateDB repeats every request for ever; puts wait, rows stay local and the lag grows; recalls fail after [`slate::GET_TIMEOUT`]; once more waits than [`backlog`] allows, writes are answered 503 |
//! | the extension has none of the functions | nothing is opened; asked again every [`term::Pauses::unsupported`] |
//! | PostgreSQL is away | the claim is lost with the session and taken anew; the store stays open |
//! | a segment cannot be read | its part is left out and tried again later; the others go on |

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
mod test_support;

pub use backlog::BacklogLimit;
pub use log::{LogWriter, ObjectLog};
pub use run::{ObjectSettings, Objects};
pub use source::{DueSegment, PostgresSource, Source, SourceError};
pub use store::{Location, Opener, SlateOpener, SlateStore, Store, StoreError};
