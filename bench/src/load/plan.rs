//! The parameters of a load.

use super::request::Source;
use crate::pinning::Processors;
use crate::usage::Tree;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The pace of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Each connection sends its next request when it has its response.
    Closed,
    /// This number of requests per second over all connections, regardless of responses.
    Open(f64),
}

/// The parameters of a load.
#[derive(Clone)]
pub struct Plan {
    /// The server's address.
    pub address: SocketAddr,
    /// The requests.
    pub source: Arc<dyn Source>,
    /// The pace of the requests.
    pub pace: Pace,
    /// The number of keep-alive connections over all threads.
    pub connections: usize,
    /// The number of the client's threads.
    pub threads: usize,
    /// The greatest number of requests that wait for responses on one connection. More than 1 is
    /// HTTP pipelining.
    pub depth: usize,
    /// The time over which the connections are opened, before the first request.
    pub ramp: Duration,
    /// The time before the window, whose requests are not measured.
    pub warm_up: Duration,
    /// The measured time.
    pub window: Duration,
    /// The longest wait for responses after the window.
    pub drain: Duration,
    /// Whether an open loop abandons the requests for which no connection was free when the window
    /// closed. The load then ends with the window, as if all clients went away. Otherwise the
    /// backlog is sent until the drain ends.
    pub abandons_backlog: bool,
    /// The number of retries of a 503 or 429, after its `Retry-After`. With 0 it counts as a
    /// response.
    pub attempts_again: u32,
    /// The processors of the client's threads.
    pub processors: Processors,
    /// The systems whose CPU and memory are measured at both ends of the window.
    pub watched: Vec<Tree>,
}

impl Plan {
    /// Creates a closed loop over 32 connections for 5 s with one thread and no retries.
    pub fn new(address: SocketAddr, source: Arc<dyn Source>) -> Plan {
        Plan {
            address,
            source,
            pace: Pace::Closed,
            connections: 32,
            threads: 1,
            depth: 1,
            ramp: Duration::ZERO,
            warm_up: Duration::from_secs(1),
            window: Duration::from_secs(5),
            drain: Duration::from_secs(10),
            abandons_backlog: false,
            attempts_again: 0,
            processors: Processors::default(),
            watched: Vec::new(),
        }
    }
}
