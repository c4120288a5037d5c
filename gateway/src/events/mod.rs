//! Batches of events for any table: `POST /api/v1/events/{table}`.
//!
//! ```text
//! body ─ flatbuffers ─ verified as it is ──┐
//!      ─ json ──────── typed by the table ─┼─► batch of lanes-wire ─► checked against the table ─► joined ─► lanes.append
//!      ─ arrow ─────── typed by its schema ┘
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`mod@write`] | a request, from its body to its answer |
//! | [`format`](mod@format) | the format by `Content-Type`, faults of bodies, times as text |
//! | [`catalogue`] | tables, as PostgreSQL described them recently |
//! | `creation` | creation of a table for its first body |
//! | [`json`] | objects to columns, typed by the table |
//! | [`arrow`] | record batches to columns, typed by their schema |
//! | [`fit`] | the check of a batch against its table |
//! | [`event_batch`] | a verified batch; many of them joined into one |
//! | [`accumulators`] | an accumulator for each table, set of columns and level in use |
//! | [`fuzz`] | the fuzzing entries |
//!
//! In every format, a request becomes one batch of crate `lanes-wire`, so all later steps handle a
//! single form.
//!
//! # How often a request is applied
//! A request with the header `Idempotency-Key` is applied once while digests are kept, like remote
//! write. A request without it is applied each time that it is sent, because two equal bodies may
//! be two events. A sender that repeats such a request after a 503 may find its rows twice, but
//! after a 204 they are never missing.
//!
//! # Failure cases
//! | case | effect |
//! |---|---|
//! | malformed body, or a body that does not fit the table | 400 that names the fault; nothing is stored |
//! | a row violates a constraint, which only PostgreSQL can detect | 400 to that request; the others in its batch are sent again without it |
//! | the table does not exist; the privilege is missing | 404; 403 |
//! | the table was changed or created again | it is described again, and the request is tried once more |

pub mod accumulators;
pub mod arrow;
pub mod catalogue;
mod creation;
pub mod event_batch;
pub mod fit;
pub mod format;
pub mod fuzz;
pub mod json;
pub mod write;

pub use accumulators::Accumulators;
pub use catalogue::Catalogue;
pub use event_batch::EventBatch;
pub use write::{CreateTables, EventPath, EventSettings};
