//! Benchmarks of pg_lanes: SQL beside other engines, and what the gateway and PostgreSQL take together under load.
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
//! | module | one thing |
//! |---|---|
//! | [`command`] | the command line |
//! | [`catalogue`] | the list of all scenarios, and how one is run |
//! | [`interrupt`] | Ctrl-C ends the servers too |
//! | [`machine`], [`bandwidth`] | what this machine is, and how fast one core reads memory |
//! | [`statistics`] | the median and percentiles of measured times |
//! | [`usage`], [`pinning`] | CPU and memory of process trees; which processors may be used |
//! | [`load`] | the HTTP load generator |
//! | [`scenario`] | what is measured: one file a scenario, its records, the report |
//! | [`peers`] | systems that take remote write, ours and others, as child processes |
//! | [`fleet`] | what a fleet of node_exporters sends: series, values, request bodies |
//! | [`remote_write`] | the scenarios that compare them |
//! | [`overload`] | the scenario that sends more than can be taken |
//! | [`dashboards`] | the scenario of Grafana's panels |
//! | [`devops`] | the scenario of a fleet's queries and star joins |
//! | [`sealed`] | the scenarios of sealed rows: size, scans, object storage |
//! | [`sql`] | SQL on lanes tables beside heap PostgreSQL, DuckDB, Polars and chDB |
//!
//! # Rules
//! - A wrong answer has no figure: what was acknowledged is counted and summed by SQL before a rate is printed.
//! - An open loop's latency counts from the time at which a request was meant to be sent, so a server that stalls is seen to stall.
//! - A row whose requests in flight differ from rate times latency by more than a fifth is marked, and so is a row that the
//!   client bounds.
//! - CPU and memory are of every process of a system: the gateway with all of PostgreSQL.
//! - Figures of one run are compared with figures of that run only, in turns (A B B A); published figures of others are quoted
//!   with their hardware and never made a ratio of.

#![deny(unsafe_code)]

// Calls functions compiled for vectors that the CPU was asked for.
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
pub mod remote_write;
pub mod scenario;
pub mod sealed;
pub mod sql;
pub mod statistics;
pub mod usage;
