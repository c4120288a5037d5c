//! The systems that receive remote write, and their feeders, as child processes of the bench.
//!
//! ```text
//! fleet's bodies, or vmagent ◄── cached_exporter ◄── node_exporter
//!        │
//!        ▼ system: one trait
//! lanes (gateway + PostgreSQL) · victoria_metrics · prometheus
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`http`] | HTTP requests to child processes |
//! | [`data_folder`] | the folder in which a peer keeps its data |
//! | [`system`] | the interface of every system |
//! | [`start`] | starts any of them by its name |
//! | [`lanes`] | the gateway with its PostgreSQL |
//! | [`victoria_metrics`] | VictoriaMetrics, single server |
//! | [`prometheus`] | Debian's Prometheus as a receiver |
//! | [`cached_exporter`] | node_exporter behind an nginx that responds for any number of targets |
//! | [`vmagent`], [`vmagent_metrics`] | vmagent: its targets and configuration; its own metrics |
//!
//! Each peer runs with the settings that its own documentation recommends for a single server,
//! nearly all of which are defaults. Other settings are constants with their reasons. Limits of
//! queries are raised so that the verification can run.
//!
//! # Invariants
//! - All systems listen on free loopback ports.
//! - Each system keeps everything in a folder of its own, which is removed when the system is
//!   stopped.
//! - A process ends with its value. A process that died is reported with the end of its log.

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
