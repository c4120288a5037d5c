//! Scenarios of remote write: pg_lanes, VictoriaMetrics and Prometheus, one at a time, with the
//! same bytes.
//!
//! ```text
//! fleet ─► bodies ─► requests ─► load ─► a system of `peers` ─► phase: sent, acknowledged, used; verified by a query ─► records
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`requests`] | bodies with their heads, by number, for the load generator |
//! | [`sender`] | a fleet whose time advances: the bodies of its next scrapes |
//! | [`phase`] | one load on one system: latencies, CPU of every process, verification |
//! | [`history`] | samples of the past: all scrapes of a fleet over a span of time |
//! | [`comparison`] | figures of several runs of several systems; bars that are relative to one of them |
//! | [`cost`] | the scenario `remote-write`: CPU for new and for known series |
//! | [`ramp`] | the scenario `ramp`: more and more targets at their scrape interval |
//! | [`trend`] | the growth of a figure over the rows of a long run |
//! | [`soak`] | the scenario `soak`: a constant load for a long time, with machines replaced and samples that expire |
//! | [`through_vmagent`] | the scenario `vmagent`: a real vmagent scrapes and writes |
//!
//! # Rules
//! - Systems run in turns, A B B A, each time with an empty store. Only one runs at a time.
//! - CPU is counted from the first request until some seconds after the last response, so that
//!   deferred work is counted.
//! - The content of a store, queried in its own language, has to be what was acknowledged.
//!   Otherwise the run has no figure.

pub mod comparison;
pub mod cost;
#[cfg(test)]
mod data_files;
pub mod history;
pub mod phase;
pub mod ramp;
pub mod requests;
pub mod sender;
pub mod soak;
pub mod through_vmagent;
pub mod trend;
