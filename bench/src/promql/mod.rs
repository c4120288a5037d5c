//! The scenario `promql`: PromQL over HTTP on pg_lanes' gateway, beside the same queries on VictoriaMetrics.
//!
//! ```text
//! scenarios/promql.toml ─► query: parameters of the HTTP API ─► PrometheusSource of either system ─► answers: compared
//! counters ─► history: bodies ─► both systems                                        └─► scenario: times, CPU, HTTP
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`counters`] | the series of the scenario |
//! | [`query`] | a query of the data file, and its requests |
//! | [`scenario`] | the scenario itself |
//!
//! # Invariants
//! - A query whose two answers differ has no figure. Counters are extrapolated differently by the two systems, so a
//!   query names how far apart its values may be.
//! - Both systems answer over an open connection. Parsing the text is not timed.
//! - The CPU is that of all processes of a system: of pg_lanes, the gateway and all of PostgreSQL.

pub mod counters;
pub mod query;
pub mod scenario;
