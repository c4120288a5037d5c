//! Scenarios of remote write: pg_lanes beside VictoriaMetrics and Prometheus, one at a time, fed with the same bytes.
//!
//! ```text
//! fleet ─► bodies ─► requests ─► load ─► a system of `peers` ─► phase: what was sent, taken, used; verified by a query ─► records
//! ```
//!
//! | module | one thing |
//! |---|---|
//! | [`requests`] | bodies with their heads, by number, as the load generator asks for them |
//! | [`sender`] | a fleet whose time goes on: the bodies of its next scrapes |
//! | [`phase`] | one load on one system: latencies, CPU of every process, verification |
//! | [`history`] | samples of the past: all scrapes of a fleet over a span of time |
//! | [`comparison`] | figures of several runs of several systems; bars that are relative to one of them |
//! | [`cost`] | scenario `remote-write`: CPU for new and for known series |
//! | [`ramp`] | scenario `ramp`: more and more targets at their scrape interval |
//! | [`trend`] | whether a figure stays as it is over the rows of a long run |
//! | [`soak`] | scenario `soak`: the same load for a long time, with machines replaced and samples that age out |
//! | [`through_vmagent`] | scenario `vmagent`: a real vmagent scrapes and writes |
//!
//! # Rules
//! - Systems run in turns, A B B A, each time from an empty store; only one runs at a time.
//! - CPU is counted from the first request until some seconds after the last answer, so that work put off is counted too.
//! - What a store holds is asked with its own query language and has to be what was acknowledged, or the run gives no figure.

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
