//! The label index: which series have which labels.
//!
//! ```text
//! lanes.series_runs ──► maintain: lanes.index_labels() ──► lanes.label_runs, lanes.label_blocks
//!                                     └► hashes ──► lanes.series_hashes ──► gateways
//! selector ──► source: runs that the snapshot sees, the series after them ──► between ──► functions
//! ```
//! | module | contents |
//! |---|---|
//! | [`packed`] | packs and unpacks the label sets of a row of `lanes.series_runs` |
//! | [`source`] | the index as a query sees it |
//! | [`functions`] | the SQL functions that read the index |
//! | [`between`] | the series that have samples between two times |
//! | [`label_sets`] | the label sets of series by id |
//! | [`metric_series`] | the SQL function in a metric's view |
//! | [`metric_estimate`] | what the planner knows about that function |
//! | [`selection_cache`] | what selectors of the session have selected |
//! | [`jsonb`] | a label set as a value of type jsonb |
//! | [`narrow`] | passes the query's conditions on labels to that function |
//! | [`conditions`] | the form of these conditions, and the series that meet them |
//! | [`hashes`] | hashes of series, for gateways that start |
//! | [`maintain`] | builds and merges runs, and adds columns for labels to the views of metrics |
//!
//! The source of truth is `lanes.series_runs`. The index is derived from it and stored in ordinary
//! tables. So snapshots, backups, standbys and crash recovery work for it as for any rows.
//!
//! Invariants:
//! - Runs cover all series from the first to the last indexed id. The transaction that inserts a
//!   run sees the series that the run covers, so every snapshot that sees the run sees them too. A
//!   merge deletes runs and inserts their union in one transaction.
//! - Series receive their ids in the order in which their transactions commit, because the row of
//!   `lanes.registry` is locked until then. So no series appears later among the indexed ids. If
//!   somebody inserts one there by hand, changes or deletes series or truncates the table, the
//!   trigger `follow_series` empties the index.
//! - Series after the last indexed id are searched one by one. Results are correct without an index.
//! - Row-level security on `lanes.series_runs` hides rows, but not their entries in runs. The index is not used then.
//!
//! Failures: a damaged run is an error with a hint.

pub mod between;
pub mod conditions;
pub mod functions;
pub mod hashes;
pub mod jsonb;
pub mod label_sets;
pub mod maintain;
pub mod metric_estimate;
pub mod metric_series;
pub mod narrow;
pub mod packed;
pub mod selection_cache;
pub mod source;
