//! Scenarios: each has a data file (`scenarios/<name>.toml`) that describes what is measured.
//!
//! ```text
//! scenarios/<name>.toml ─► definition ─► the scenario's own file ─► findings (records) ─┬─► table
//!                                          │ system: cluster and gateway                 ├─► target/bench/<name>.json
//!                                          └ load, usage                                 │       <name>.about.json
//!                                                                                        └─► page ─► report.html
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`options`] | the options of a run |
//! | [`definition`] | reads a data file: its short form, changes from the command line |
//! | [`system`] | the system under test: a private cluster and a gateway, with all their processes |
//! | [`event_batch`] | batches of events in each format, and the sums of their values |
//! | [`event_table`] | the table of the events, compared with what was acknowledged |
//! | [`events`] | formats, batch sizes, levels of acknowledgement |
//! | [`shards`] | the gateway's workers and sessions, one to many |
//! | [`append`] | `lanes.append` beside COPY into heap |
//! | [`append_rows`] | the rows for both |
//! | [`changes`] | rows changed and added one by one, beside heap |
//! | [`durability`] | small commits by level of acknowledgement; point reads |
//! | [`sql_loop`] | closed loops of one prepared statement |
//! | [`ceiling`] | trivial GETs: the rate of the HTTP server alone |
//! | [`cross_check`] | the same GETs by wrk and k6 |
//! | [`record`] | a figure with its bar |
//! | [`findings`] | the records of a run, its table and its files |
//! | [`context`] | build, hardware and scope of a run |
//! | [`chart`], [`page`] | the report for a browser |
//! | [`summary`] | the first screen of the report: figures beside the best peer, the worst first |
//!
//! A new scenario needs a data file, a module with `run(&Run) -> Result<Findings>`, and a line in
//! [`crate::catalogue`].

pub mod options;

pub mod definition;

pub mod system;

pub mod event_batch;
pub mod event_table;

pub mod events;
pub mod shards;

pub mod append;
pub mod append_rows;

pub mod changes;

pub mod durability;
pub mod sql_loop;

pub mod ceiling;
pub mod cross_check;

pub mod findings;
pub mod record;

pub mod context;

pub mod chart;
pub mod page;
pub mod summary;

pub use definition::{About, Run};
pub use findings::Findings;
pub use options::Options;
pub use record::{Bar, Point, Record};
