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
//! | JSON | [`json`], [`time_text`] | objects to columns, typed by the table |
//! | Arrow | [`arrow`] | record batches to columns, typed by their schema |
//! | what is wrong | [`malformed`] | the text of a 400 |
//!
//! Whatever the format, a request becomes one batch of crate `lanes-wire`, so that everything behind the formats knows one form.

pub mod arrow;
pub mod fuzz;
pub mod json;
pub mod malformed;
pub mod table;
pub mod time_text;

#[cfg(test)]
mod test_support;

pub use malformed::Malformed;
pub use table::{ColumnKind, Table, TableColumn};
