//! The scenario `dashboards`: queries of Grafana's panels to PostgreSQL with lanes and to
//! VictoriaMetrics; then the same panels in PromQL to both.
//!
//! ```text
//! scenarios/dashboards.toml ─► panel: SQL and PromQL, macros expanded ─► data_source: PostgreSQL, Prometheus ─► answer: compared
//! fleet's bodies ─► both systems                                              │
//!                                                      scenario: warm, cold ──┴── clients: eight at once, with ingest and without
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`panel`] | a panel of the data file, and the texts that Grafana generates from it |
//! | [`data_source`] | the two data sources: a connection to PostgreSQL, and one to a server of Prometheus's API |
//! | [`answer`] | the content of a panel, and the comparison of two answers |
//! | [`ready`] | sealing and views, between the sending of samples and the first query |
//! | [`clients`] | many clients that each query all panels in turn |
//! | [`scenario`] | the scenario itself |
//!
//! # Invariants
//! - A panel whose two answers differ has no figure.
//! - SQL's minute `[t, t + 60 s)` is PromQL's window `(t - 1 ms, t + 60 s - 1 ms]`: times of
//!   samples are whole milliseconds.
//! - Both systems answer in text over an open connection. Parsing the text is not timed.

pub mod answer;
pub mod clients;
pub mod data_source;
pub mod panel;
pub mod ready;
pub mod scenario;
