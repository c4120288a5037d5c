//! Benchmarks of pg_lanes: SQL beside other engines, and the gateway with PostgreSQL under load.
//!
//! ```text
//! scenarios/*.toml ─► scenario ──► system: a private cluster and a gateway, or peers ◄─┐ requests
//!                        │                                                            │
//!                        └──────► load: open or closed loop, latencies ───────────────┘
//!                                   │ outcome          usage: CPU and memory of every process
//!                                   ▼
//!                                 record ──► table, target/bench/<scenario>.json, report.html
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`command`] | the command line |
//! | [`catalogue`] | the list of all scenarios, and the order of running one |
//! | [`interrupt`] | ends the servers on Ctrl-C |
//! | [`machine`], [`bandwidth`] | the properties of this machine, and its memory read bandwidth |
//! | [`statistics`] | the median and percentiles of measured times |
//! | [`usage`], [`pinning`] | CPU and memory of process trees; the usable processors |
//! | [`load`] | the HTTP load generator |
//! | [`scenario`] | the framework of scenarios, records and the report; scenarios of the gateway |
//! | [`peers`] | the systems that receive remote write, as child processes |
//! | [`fleet`] | the data of a fleet of node_exporters: series, values, request bodies |
//! | [`remote_write`] | the scenarios that compare these systems |
//! | [`overload`] | the scenario with more requests than the gateway can process |
//! | [`dashboards`] | the scenario of Grafana's panels |
//! | [`promql`] | the scenario of PromQL over HTTP |
//! | [`devops`] | the scenario of a fleet's queries and star joins |
//! | [`sealed`] | the scenarios of sealed rows: size, scans, object storage |
//! | [`sql`] | SQL on lanes tables beside heap PostgreSQL, DuckDB, Polars and chDB |
//!
//! # Rules
//! - A wrong answer has no figure: acknowledged rows are counted and summed by SQL before a rate is
//!   reported.
//! - Latency in an open loop counts from the time at which a request was due, so a stall of the
//!   server shows in it.
//! - A row is marked if its requests in flight differ from rate times latency by more than a fifth,
//!   or if the client bounds it.
//! - CPU and memory include every process of a system: the gateway with all of PostgreSQL.
//! - Figures are only compared with figures of the same run, in turns (A B B A). Published figures
//!   of others are quoted with their hardware, and no ratio is formed with them.

#![deny(unsafe_code)]

// The module calls functions compiled for vectors, after it has checked that the CPU has them.
#[allow(unsafe_code)]
mod bandwidth;
pub mod catalogue;
pub mod command;
pub mod dashboards;
pub mod devops;
pub mod fleet;
pub mod interrupt;
pub mod load;
pub mod machine;
pub mod overload;
pub mod peers;
pub mod pinning;
pub mod promql;
pub mod remote_write;
pub mod scenario;
pub mod sealed;
pub mod sql;
pub mod statistics;
pub mod usage;
