//! The HTTP load generator: few threads, many keep-alive connections, one system call to send and one to receive.
//!
//! ```text
//!  plan ─► run ─┬─► worker (a thread): schedule ─► request ─► connection ─► socket ─► response ─► latency ─┬─► outcome
//!               └─► worker …                                                                               │
//!     usage of the servers' processes, at both ends of the window ─────────────────────────────────────────┘
//! ```
//!
//! | module | one thing |
//! |---|---|
//! | [`plan`] | what is asked for |
//! | [`request`] | requests as bytes that are ready to send, by number |
//! | [`schedule`] | when each request is meant to be sent |
//! | [`window`] | when a run begins to count, and when it ends |
//! | [`response`] | answers, parsed as they come in pieces |
//! | [`connection`] | one connection: bytes to send, requests that wait for their answers |
//! | [`worker`] | the loop of one thread over its connections |
//! | [`latency`] | quantiles |
//! | [`outcome`] | what came of it, and whether it may be believed: Little's law, the client's own CPU |
//! | [`run`] | threads, window and watched processes |
//! | [`ramp`] | the lowest load that reaches 95 % of the peak |
//! | [`tool`] | `lanes-bench load`: any URL, as wrk or k6 are used |
//!
//! # What is measured
//! Requests have numbers: 0, 1, 2 … In an *open loop* number `k` is meant to be sent `k / rate` seconds after the start, whether or not
//! earlier ones were answered; its latency runs from that time to the last byte of its answer, through waiting for a free
//! connection and through retries. So a server that stalls is seen in the latencies of all requests that it kept waiting, also of
//! those that could not be sent (no coordinated omission). In a *closed loop* each connection sends its next request when it
//! has its answer; latency runs from the sending. Only requests whose time lies in the window after the warm-up count.
//!
//! Requests without an answer when the drain ends are counted and enter the latencies with the time they have waited, a lower
//! bound. A 503 or 429 is tried again after its `Retry-After` when the plan says so; else it is an answer like others.
//!
//! # Failure
//! A connection that breaks is opened again; its requests count as errors, and are not sent again, since nobody knows whether they
//! were applied. Answers that are not HTTP/1.1 end the connection in the same way.

mod plan;
mod request;

mod schedule;
mod window;

mod connection;
mod response;

mod latency;
mod worker;

mod outcome;

mod run;

mod ramp;

pub mod tool;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod toy_server;

pub use latency::{Latencies, Latency};
pub use outcome::{Gate, Outcome, Watched};
pub use plan::{Pace, Plan};
pub use ramp::{PEAK_SHARE, goes_on, lowest_at_peak};
pub use request::{Repeated, Source, encode};
pub use run::{raise_file_limit, run};
