//! PromQL over the series and samples of Prometheus, as SQL functions.
//!
//! ```text
//! query ─► lanes_promql ─► source ─┬─► labels: index ─► ids ─► label sets
//!             │                    └─► samples: lanes.samples ─► columns of each series
//!             └─► functions: rows (labels, ts, value), or the body of Prometheus's HTTP API
//! ```
//! | module | contents |
//! |---|---|
//! | [`source`] | the series that matchers select, each with its samples |
//! | [`series_cache`] | the series that earlier queries of the session have selected |
//! | [`batch`] | a batch of series with their samples |
//! | [`samples`] | reads the samples of series into columns |
//! | [`columns`] | the samples of several series, as columns of times and values |
//! | [`times`] | times and lengths of time in milliseconds |
//! | [`functions`] | the SQL functions |
//!
//! `sql/promql.sql` declares the functions.
//!
//! Invariants:
//! - Everything is read by SQL statements as the caller, under the snapshot of the calling query. So privileges,
//!   row-level security, remote segments and standbys work as for any query.
//! - Each series is passed to the engine once, in the order of the ids. Its samples have strictly increasing times in
//!   milliseconds. Of samples with one time the greatest number counts, and a number counts before a NaN: storage may
//!   contain several, but Prometheus has one.
//! - Only the backend's own thread calls PostgreSQL. A query over many samples is evaluated by a second thread while
//!   the backend's thread reads the next batch (`lanes.promql_overlap`, [`lanes_promql::pipeline`]). The second thread
//!   receives no signals, because PostgreSQL's handlers must run on the backend's own thread.
//! - Memory is bounded: samples are read for as many series at a time as fit into a buffer, and the engine counts what
//!   it holds (`lanes.promql_memory`).
//!
//! Failures. A text that is no query is a syntax error with Prometheus's words; what cannot be evaluated, and more
//! samples, series or bytes than a query may take, are errors too. `statement_timeout` and cancel requests end a query,
//! because the engine checks for interrupts.

pub mod batch;
pub mod columns;
pub mod functions;
pub mod samples;
pub mod series_cache;
pub mod source;
pub mod times;
