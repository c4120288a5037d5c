//! The visible rows of a table as vectors.
//!
//! ```text
//! table::scan ── windows of visible rows ──► vector_source ── prune: zone maps rule vectors out ──► a vector + selection
//!                                                  └── key_search: sorted windows are searched
//!                                                  └── row_cursor: the selected rows, one by one
//! row numbers ──► kept_rows: rows fetched by number, in any order
//! ```
//! Invariants:
//! - The rows of a source are those that the query's snapshot sees, in row order or from the last vector to the first.
//! - A lane of sealed rows is read only after it was filled. Filling may decode it.
//! - What a source returns for a vector is valid until the source goes on to the next one.

pub mod counters;
pub mod kept_rows;
pub mod prune;
pub mod row_cursor;
pub mod vector_source;
