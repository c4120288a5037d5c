//! Systems that take remote write, as child processes, and what feeds them: started, asked and stopped by the bench.
//!
//! ```text
//! fleet's bodies, or vmagent ◄── cached_exporter ◄── node_exporter
//!        │
//!        ▼ system: one trait
//! lanes (gateway + PostgreSQL) · victoria_metrics · prometheus
//! ```
//!
//! | module | one thing |
//! |---|---|
//! | [`http`] | questions over HTTP to a process of ours |
//! | [`data_folder`] | the folder in which a peer keeps its data |
//! | [`system`] | the interface of every system |
//! | [`start`] | starts any of them by its name |
//! | [`lanes`] | the gateway with its PostgreSQL |
//! | [`victoria_metrics`] | VictoriaMetrics, single server |
//! | [`prometheus`] | Debian's Prometheus as a receiver |
//! | [`cached_exporter`] | node_exporter behind an nginx that answers for any number of targets |
//! | [`vmagent`], [`vmagent_metrics`] | vmagent: its targets and configuration; what it says of itself |
//!
//! Each peer runs with the settings that its own documentation gives for a single server, which are nearly all defaults; those that differ
//! are constants with their reasons. What concerns only the verification (limits of queries) is set so that it can be asked at all.
//!
//! Invariants: all listen on loopback ports that were free; each keeps everything in a folder of its own, which is removed when it is
//! stopped; a process ends with its value, and one that died on its own is reported with the end of its log.

pub mod cached_exporter;
pub mod data_folder;
pub mod http;
pub mod lanes;
pub mod prometheus;
pub mod start;
pub mod system;
pub mod victoria_metrics;
pub mod vmagent;
pub mod vmagent_metrics;
