//! Senders of events and samples at level `object`, and what they got acknowledged.

use super::{event, far};
use lanes_support::gateway::Gateway;
use lanes_support::remote_write::{Series, body};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

const SENDERS: usize = 6;
const START_MS: i64 = 1_767_225_600_000;

/// The state that the senders share.
struct Shared {
    gateway: Gateway,
    is_over: AtomicBool,
    next: AtomicI64,
    /// The acknowledged numbers of `far`, of `near`, and of samples.
    acknowledged: [Mutex<BTreeSet<i64>>; 3],
}

/// Threads that send one number after another, each in one row or sample.
pub struct Senders {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Senders {
    /// Starts to send to a gateway.
    pub fn start(gateway: Gateway) -> Senders {
        let shared = Arc::new(Shared {
            gateway,
            is_over: AtomicBool::new(false),
            next: AtomicI64::new(1),
            acknowledged: Default::default(),
        });
        let thread = |sender| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.send_until_over(sender % 3))
        };
        let threads = (0..SENDERS).map(thread).collect();
        Senders { shared, threads }
    }

    /// Returns the gateway.
    pub fn gateway(&self) -> &Gateway {
        &self.shared.gateway
    }

    /// Stops sending. Returns the gateway, and the acknowledged numbers of `far`, of `near` and of
    /// samples.
    pub fn stop(self) -> (Gateway, [BTreeSet<i64>; 3]) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        let Ok(shared) = Arc::try_unwrap(self.shared) else {
            panic!("the gateway is no longer shared")
        };
        let acknowledged = shared.acknowledged.map(|set| set.into_inner().unwrap());
        (shared.gateway, acknowledged)
    }
}

impl Shared {
    fn send_until_over(&self, kind: usize) {
        while !self.is_over.load(Ordering::Relaxed) {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            if self.send(kind, n) == 204 {
                self.acknowledged[kind].lock().unwrap().insert(n);
            }
        }
    }

    /// Sends a number and returns the status, or 0 without a response.
    fn send(&self, kind: usize, n: i64) -> u16 {
        match kind {
            0 => event(&self.gateway, "far", &far(n), Some(&n.to_string())),
            1 => {
                let json = format!("{{\"n\": {n}, \"v\": 1.5}}");
                event(&self.gateway, "near", &json, None)
            }
            _ => {
                let label = (n % 50).to_string();
                let sample = (START_MS + n, n as f64);
                let series = Series::new("restored", &[("n", &label)], vec![sample]);
                self.gateway
                    .remote_write(&body(&[series]), Some("object"))
                    .map_or(0, |answer| answer.status)
            }
        }
    }
}
