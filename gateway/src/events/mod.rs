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
//! | what the table takes | [`table`] | columns and kinds |
//!
//! Whatever the format, a request becomes one batch of crate `lanes-wire`, so that everything behind the formats knows one form.

pub mod table;

pub use table::{ColumnKind, Table, TableColumn};
