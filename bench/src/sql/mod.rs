//! SQL on lanes tables, timed beside heap PostgreSQL, DuckDB, Polars and chDB, on the same data in
//! one run on one machine. `make bench-sql` sets everything up and runs it.
//!
//! The path of the data:
//!
//! ```text
//! generate ──► column_files ──► peers/convert.py ──► Parquet ──► peers/*_peer.py   (a process an engine)
//!    │  └────► load ──► COPY ──► a private cluster: schemas on_lanes, on_heap            │
//!    ▼                                    │ postgres_run                                │ peer
//! reference ──► expected answers ──► answer: every answer is verified, then ──► statistics ──► judge ──► report
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`options`] | the command line of `lanes-bench sql` |
//! | [`definition`] | a row of the table: queries per system, reference answer and bar, read from `definitions/*.toml` |
//! | [`generate`], [`random`] | trades, quotes and events from a fixed seed |
//! | [`mod@reference`], [`function_answers`] | the expected answer to each row, computed plainly from the generated data |
//! | [`answer`] | answers as values, and their comparison |
//! | [`column_files`], [`load`], [`copy`] | the data for the peers and for PostgreSQL |
//! | [`postgres_run`], [`decode`] | queries through a local connection; conversion of rows to answers |
//! | [`planning`] | the planning time that the extension adds to queries without a lanes table |
//! | [`peer`] | an engine in its own process, which communicates in JSON lines |
//! | [`measurement`] | the result of a row's query on one system |
//! | [`judge`] | the comparison of a row's bar with its measurements |
//! | [`report`] | the table and `target/bench/sql.json` |
//! | [`mod@run`] | the order of a whole run |
//! | [`open_and_sealed`] | the queries on the same rows open and sealed, for the scenario `sealed` |
//!
//! # Rules
//! - A wrong answer has no time: an answer is compared with the reference before its row's times
//!   count. Floating-point numbers may differ by 1e-9 times their size; all other values have to be
//!   equal.
//! - One system runs at a time, and one query is in flight at a time. This is a closed loop, which
//!   measures latency and not throughput.
//! - Each engine has its preferred form: in-memory tables, dictionary types, indexes, its own
//!   wording of the query.
//! - A query that fails or exceeds its time has a row that says so, and the run goes on.
//! - A missed bar is printed as missed. Bars are for the full number of rows; with fewer rows
//!   nothing is judged.
//! - A ratio is only formed of figures of the same run.

pub mod options;

mod definition;

mod function_answers;
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
