//! Batches of events into any table: `POST /api/v1/events/{table}`.
//!
//! ```text
//! body ─ flatbuffers ─ verified as it is ─┐
//!      ─ json ──────── typed by the table ┼─► batch of lanes-wire ─► held against the table ─► joined with others ─► lanes.append
//!      ─ arrow ─────── typed by itself ───┘
//! ```
//!
//! | step | module | noun |
//! |---|---|---|
//! | one request | [`write`] | from its body to its answer |
//! | in which format | [`format`](mod@format) | by `Content-Type` |
//! | what the table takes | [`table`], [`catalogue`] | columns and kinds; as PostgreSQL described them a moment ago |
//! | if it is not there | [`creation`] | a table for the first body, where that is asked for |
//! | JSON | [`json`], [`time_text`] | objects to columns, typed by the table |
//! | Arrow | [`arrow`] | record batches to columns, typed by their schema |
//! | what is wrong with either | [`malformed`] | the text of a 400 |
//! | does it fit | [`fit`] | a batch held against its table |
//! | what it brings | [`event_batch`] | a verified batch; many of them joined to one |
//! | with whom it travels | [`accumulators`] | one for each table, columns and level in use |
//! | proof | [`fuzz`] | any bytes, as JSON and as Arrow |
//!
//! Whatever the format, a request becomes one batch of crate `lanes-wire`, so that everything behind the formats knows one form.
//!
//! # How often a request is applied
//! With the header `Idempotency-Key`: once, while digests are kept, as remote write. Without: each time it is sent, since two bodies that
//! are alike may be two events; a sender that repeats after 503 may then find its rows twice, and never none after 204.
//!
//! # Failure cases
//! | what | then |
//! |---|---|
//! | malformed body, or one that does not fit the table | 400 that names the fault; nothing of it is stored |
//! | constraint violated by a row, which only PostgreSQL can tell | 400 to that request; those that shared its batch are sent again without it |
//! | no such table; no privilege | 404; 403 |
//! | table changed or created anew | described again, tried once more |

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
