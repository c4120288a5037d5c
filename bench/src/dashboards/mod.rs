//! Scenario `dashboards`: what Grafana's panels ask, of PostgreSQL with lanes and of VictoriaMetrics.
//!
//! ```text
//! scenarios/dashboards.toml ─► panel: SQL and PromQL, macros expanded ─► data_source: PostgreSQL, Prometheus ─► answer: compared
//! fleet's bodies ─► both systems                                              │
//!                                                      scenario: warm, cold ──┴── clients: eight at once, with ingest and without
//! ```
//!
//! | module | one thing |
//! |---|---|
//! | [`panel`] | a panel of the data file, and the texts that Grafana makes of it |
//! | [`data_source`] | the two data sources: a connection to PostgreSQL, one to a server of Prometheus' API |
//! | [`answer`] | what a panel shows, and when two answers are the same |
//! | [`clients`] | many clients that each ask all panels in turn |
//! | [`scenario`] | the scenario itself |
//!
//! # Invariants
//! - A panel whose two answers differ has no figure.
//! - SQL's minute `[t, t + 60 s)` is PromQL's window `(t - 1 ms, t + 60 s - 1 ms]`: times of samples are whole
//!   milliseconds.
//! - Both systems answer with text over a connection that stays; parsing it is not timed.

pub mod answer;
pub mod clients;
pub mod data_source;
pub mod panel;
pub mod scenario;
