//! SQL on lanes tables, timed beside heap PostgreSQL, DuckDB, Polars and chDB on the same data, in one run on one machine.
//! `make bench-sql` sets everything up and runs it.
//!
//! The way of the data:
//!
//! ```text
//! generate ──► column_files ──► peers/convert.py ──► Parquet ──► peers/*_peer.py   (a process an engine)
//!    │  └────► load ──► COPY ──► a private cluster: schemas on_lanes, on_heap            │
//!    ▼                                    │ postgres_run                                │ peer
//! reference ──► expected answers ──► answer: every answer is verified, then ──► statistics ──► judge ──► report
//! ```
//!
//! | module | one thing |
//! |---|---|
//! | [`options`] | its part of the command line |
//! | [`definition`] | a row of the table: queries per system, reference answer and bar, read from `definitions/*.toml` |
//! | [`generate`], [`random`] | trades, quotes and events from a fixed seed |
//! | [`reference`] | the answer to each row, computed plainly from the generated data |
//! | [`answer`] | answers as values, and when two of them are equal |
//! | [`column_files`], [`load`], [`copy`] | the data for the peers, and into PostgreSQL |
//! | [`postgres_run`], [`decode`] | queries through a local connection; rows as answers |
//! | [`planning`] | planning time that the extension adds to queries that are none of its business |
//! | [`peer`] | an engine in its own process, spoken to in JSON lines |
//! | [`measurement`] | what a system measured for a row, or why it has no figure |
//! | [`judge`] | a row's bar against what was measured |
//! | [`report`] | the table and `target/bench/sql.json` |
//! | [`run`] | the order of a whole run |
//! | [`open_and_sealed`] | the queries on the same rows open and sealed, for the scenario `sealed` |
//!
//! # Rules
//! - A wrong answer has no time: an answer is compared with the reference before its row's times count. Floating-point
//!   numbers may differ by 1e-9 of their size, everything else not at all.
//! - One system runs at a time, one query is in flight at a time (a closed loop: latency is what is measured, not throughput).
//! - Each engine has its own favourite form: in-memory tables, dictionary types, indexes, its own way to write the query.
//! - A query that fails, or exceeds its time, is a row that says so; the run goes on.
//! - What is missed is printed as missed. Bars are for the full number of rows; with fewer, nothing is judged.
//! - A ratio is made only between figures of one run.

pub mod options;

mod definition;

mod generate;
pub(crate) mod random;
mod reference;

pub(crate) mod column_files;
pub(crate) mod copy;
mod load;

pub(crate) mod answer;
pub(crate) mod decode;
pub(crate) mod postgres_run;

pub(crate) mod peer;

mod planning;

mod measurement;

mod judge;
mod report;

pub(crate) mod run;

pub(crate) mod open_and_sealed;

pub use run::run;
