//! What is asked of the generator.

use super::request::Source;
use crate::pinning::Processors;
use crate::usage::Tree;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Each connection sends its next request when it has its answer.
    Closed,
    /// So many requests a second, over all connections, whatever is answered when.
    Open(f64),
}

/// A load.
#[derive(Clone)]
pub struct Plan {
    /// The server.
    pub address: SocketAddr,
    /// What is sent.
    pub source: Arc<dyn Source>,
    /// When it is sent.
    pub pace: Pace,
    /// Keep-alive connections, over all threads.
    pub connections: usize,
    /// Threads of the client.
    pub threads: usize,
    /// Requests that may wait for their answers on one connection; more than 1 is HTTP pipelining.
    pub depth: usize,
    /// Over this time the connections are opened, before anything is sent.
    pub ramp: Duration,
    /// Sent and answered, but not measured.
    pub warm_up: Duration,
    /// The time that is measured.
    pub window: Duration,
    /// How long answers are waited for afterwards.
    pub drain: Duration,
    /// In an open loop: what no connection was free for when the window closed is never sent. The load ends with the window, as that of
    /// clients who all go away; without it the backlog is still sent, for as long as the drain lasts.
    pub abandons_backlog: bool,
    /// How often a 503 or 429 is tried again, after its `Retry-After`; 0 counts it as an answer.
    pub attempts_again: u32,
    /// Where the client's threads run.
    pub processors: Processors,
    /// Systems whose CPU and memory are looked at, at both ends of the window.
    pub watched: Vec<Tree>,
}

impl Plan {
    /// A closed loop over 32 connections for 5 s, one thread, nothing tried again.
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
