//! The label index in the database: which series have which labels.
//!
//! ```text
//! lanes.series_runs ──► maintain: lanes.index_labels() ──► lanes.label_runs, lanes.label_blocks
//!                                     └► hashes ──► lanes.series_hashes ──► gateways
//! selector ──► source: runs that the snapshot sees, the series after them ──► functions: ids, names, values, counts
//! ```
//! | module | one thing |
//! |---|---|
//! | [`packed`] | label sets of a row of `lanes.series_runs`, packed and unpacked |
//! | [`source`] | the index as a query sees it |
//! | [`functions`] | the SQL functions that read |
//! | [`metric_series`] | the SQL function that a metric's view reads |
//! | [`jsonb`] | a label set as a value of type jsonb |
//! | [`narrow`] | the planner gives it the query's conditions on labels |
//! | [`conditions`] | these conditions, written and read, and the series that meet them |
//! | [`hashes`] | hashes of series, for gateways that start |
//! | [`maintain`] | building and merging runs; label columns in the views of metrics |
//!
//! The truth is `lanes.series_runs`. The index is derived from it and lies in ordinary tables, so snapshots, backups,
//! standbys and crashes treat it as they treat any rows.
//!
//! Invariants:
//! - Runs cover the ids from the first to the last indexed one, without holes where there are series. A run is inserted
//!   by a transaction that sees the series which it covers, so who sees the run sees them too. A merge deletes runs and
//!   inserts their sum in one transaction.
//! - Series get their ids in the order in which their transactions commit (the row of `lanes.registry` is locked until
//!   then). So no series ever appears among those that are indexed. What is inserted there by hand, changed or deleted
//!   empties the index (trigger `follow_series`); so does TRUNCATE.
//! - Series after the last indexed one are searched one by one. A reader needs no index to be right.
//! - Row-level security on `lanes.series_runs` hides rows, and runs know nothing of that: then the index is not used.
//!
//! Failures: a damaged run is an ERROR that names the remedy.

pub mod conditions;
pub mod functions;
pub mod hashes;
pub mod jsonb;
pub mod maintain;
pub mod metric_series;
pub mod narrow;
pub mod packed;
pub mod source;
