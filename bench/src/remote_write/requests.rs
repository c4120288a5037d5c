//! Bodies with their heads, by number, for the load generator.

use crate::fleet::bodies::{Body, SampleTotals};
use crate::load::Source;
use crate::peers::system::System;
use std::io::Write;
use std::sync::Arc;

/// A finite list of write requests for one system.
pub struct Requests {
    /// The head, up to the value of `content-length`.
    head: Vec<u8>,
    bodies: Arc<Vec<Body>>,
}

impl Requests {
    /// Creates the requests to a system. Several systems share the bodies.
    pub fn new(system: &dyn System, bodies: Arc<Vec<Body>>) -> Requests {
        Requests::at(system.port(), &system.headers(), bodies)
    }

    /// Creates requests to a port on this machine. `headers` are those besides the headers that
    /// remote write prescribes.
    pub fn at(port: u16, headers: &[(String, String)], bodies: Arc<Vec<Body>>) -> Requests {
        let mut head = format!(
            "POST /api/v1/write HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/x-protobuf\r\n\
             content-encoding: snappy\r\nx-prometheus-remote-write-version: 0.1.0\r\n"
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("content-length: ");
        Requests {
            head: head.into_bytes(),
            bodies,
        }
    }

    /// Returns the number of requests.
    pub fn count(&self) -> usize {
        self.bodies.len()
    }

    /// Returns what a store contains of these requests once it has accepted all of them.
    pub fn holds(&self) -> SampleTotals {
        let mut all = SampleTotals::default();
        self.bodies.iter().for_each(|body| all.add(body.holds));
        all
    }
}

impl Source for Requests {
    fn request(&self, number: u64, into: &mut Vec<u8>) -> bool {
        let Some(body) = usize::try_from(number)
            .ok()
            .and_then(|number| self.bodies.get(number))
        else {
            return false;
        };
        into.extend_from_slice(&self.head);
        // Writing to memory cannot fail.
        let _ = write!(into, "{}\r\n\r\n", body.bytes.len());
        into.extend_from_slice(&body.bytes);
        true
    }

    /// The number of samples of a request: the load's checksum counts those that were acknowledged.
    fn weight(&self, number: u64) -> u64 {
        let body = usize::try_from(number)
            .ok()
            .and_then(|number| self.bodies.get(number));
        body.map_or(0, |body| body.holds.samples)
    }
}
