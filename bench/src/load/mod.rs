//! The HTTP load generator: few threads, many keep-alive connections, one system call to send and
//! one to receive.
//!
//! ```text
//!  plan ─► run ─┬─► worker (a thread): schedule ─► request ─► connection ─► socket ─► response ─► latency ─┬─► outcome
//!               └─► worker …                                                                               │
//!     usage of the servers' processes, at both ends of the window ─────────────────────────────────────────┘
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`plan`] | the parameters of a run |
//! | [`request`] | requests by number, as bytes that are ready to send |
//! | [`schedule`] | the time at which each request is due |
//! | [`window`] | the start and the end of the measured part of a run |
//! | [`response`] | an incremental parser of responses |
//! | [`connection`] | one connection: bytes to send, requests that wait for their responses |
//! | [`place`] | a place of a worker's connections, which may be vacant |
//! | [`worker`], [`clock`] | the loop of one thread over its connections |
//! | [`latency`] | quantiles |
//! | [`outcome`] | the figures, and whether they are plausible: Little's law, the client's own CPU |
//! | [`mod@run`] | threads, window and watched processes |
//! | [`ramp`] | the lowest load that reaches 95 % of the peak |
//! | [`tool`] | `lanes-bench load`, for any URL, in the manner of wrk and k6 |
//!
//! # Measured latency
//! Requests have numbers: 0, 1, 2 … In an *open loop* request `k` is due `k / rate` seconds after
//! the start, whether or not earlier ones have a response. Its latency runs from that time to the
//! last byte of its response, including the wait for a free connection and retries. The latencies
//! therefore contain a stall of the server for every request that it delayed, even for those that
//! could not be sent (no coordinated omission). In a *closed loop* each connection sends its next
//! request when it has its response, and latency runs from the sending. Only requests whose time
//! lies in the window after the warm-up count.
//!
//! Requests without a response at the end of the drain are counted, and enter the latencies with
//! their waiting time, a lower bound. A 503 or 429 is retried after its `Retry-After` if the plan
//! says so; otherwise it is an ordinary response.
//!
//! # Failures
//! A broken connection is opened again. Its requests count as errors and are not sent again,
//! because it is unknown whether they were applied. Responses that are not HTTP/1.1 end the
//! connection in the same way.

mod plan;
mod request;

mod schedule;
mod window;

mod connection;
mod place;
mod response;

mod clock;
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
