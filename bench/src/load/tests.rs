//! The generator against a server in this process. No test depends on the machine's speed: stalls
//! are ended by counts of requests or last at least a given time, and assertions are about counts,
//! or about lower bounds of latencies.

use super::toy_server::{Act, BUSY, NO_CONTENT, Script, ToyServer};
use super::{Outcome, Pace, Plan, Source, encode, run};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A request for each number up to an end, with the number as its weight.
struct Numbered {
    end: u64,
}

impl Source for Numbered {
    fn request(&self, number: u64, into: &mut Vec<u8>) -> bool {
        if number >= self.end {
            return false;
        }
        into.extend_from_slice(&encode("GET", "toy", &format!("/{number}"), &[], b""));
        true
    }

    fn weight(&self, number: u64) -> u64 {
        number
    }
}

fn plan(server: &ToyServer, pace: Pace) -> Plan {
    Plan {
        pace,
        connections: 4,
        threads: 2,
        warm_up: Duration::ZERO,
        window: Duration::from_millis(400),
        drain: Duration::from_secs(60),
        ..Plan::new(server.address, Arc::new(Numbered { end: u64::MAX }))
    }
}

fn always(bytes: &'static [u8]) -> Arc<Script> {
    Arc::new(move |_| Act::Answer(bytes))
}

#[test]
fn an_open_loop_sends_every_request_of_its_schedule_once() {
    let server = ToyServer::start(always(NO_CONTENT));
    let outcome = run(&plan(&server, Pace::Open(500.0))).unwrap();
    assert_eq!((outcome.acknowledged(), outcome.failed()), (200, 0));
    assert_eq!(outcome.latency.count, 200);
    assert_eq!(outcome.tally.checksum, (0..200).sum::<u64>());
    assert_eq!(server.requests.load(Ordering::SeqCst), 200);
}

#[test]
fn a_stall_counts_for_every_delayed_request() {
    const STALL: Duration = Duration::from_millis(100);
    // The first request stalls the only connection: at 1000 requests per second, those due in the
    // next 100 ms wait too. A loop that waits for responses would have seen one slow request.
    let stalled = AtomicBool::new(false);
    let server = ToyServer::start(Arc::new(move |_| {
        if !stalled.swap(true, Ordering::SeqCst) {
            std::thread::sleep(STALL);
        }
        Act::Answer(NO_CONTENT)
    }));
    let outcome = run(&Plan {
        connections: 1,
        threads: 1,
        ..plan(&server, Pace::Open(1000.0))
    })
    .unwrap();
    assert_eq!(outcome.latency.count, 400);
    assert!(outcome.latency.max >= 100.0, "{:?}", outcome.latency);
    // Half of the first hundred requests wait 50 ms or more: at least an eighth of all.
    assert!(outcome.latency.p90 >= 50.0, "{:?}", outcome.latency);
}

#[test]
fn requests_without_a_response_are_counted() {
    // The server reads one request and never responds.
    let server = ToyServer::start(Arc::new(|_| {
        loop {
            std::thread::park();
        }
    }));
    let outcome = run(&Plan {
        connections: 1,
        threads: 1,
        drain: Duration::from_millis(50),
        ..plan(&server, Pace::Open(100.0))
    })
    .unwrap();
    assert_eq!(
        (
            outcome.tally.unanswered,
            outcome.tally.unsent,
            outcome.failed()
        ),
        (1, 39, 40)
    );
    assert_eq!(outcome.latency.count, 40);
    assert!(outcome.latency.max >= 400.0 && outcome.is_overloaded());
}

#[test]
fn a_closed_loop_keeps_each_connection_busy_and_ends_with_its_source() {
    let server = ToyServer::start(always(NO_CONTENT));
    let outcome = run(&Plan {
        source: Arc::new(Numbered { end: 1000 }),
        window: Duration::from_secs(60),
        ..plan(&server, Pace::Closed)
    })
    .unwrap();
    // Each thread sends every other number; both reach the end.
    assert_eq!(
        (outcome.acknowledged(), outcome.tally.checksum),
        (1000, (0..1000).sum::<u64>())
    );
    assert_eq!(outcome.failed(), 0);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = ToyServer::start(always(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc"));
    for pace in [Pace::Closed, Pace::Open(2000.0)] {
        let outcome = run(&Plan {
            source: Arc::new(Numbered { end: 500 }),
            depth: 16,
            connections: 2,
            ..plan(&server, pace)
        })
        .unwrap();
        assert_eq!((outcome.acknowledged(), outcome.failed()), (500, 0));
        assert_eq!(outcome.tally.checksum, (0..500).sum::<u64>());
    }
}

/// Starts a server that refuses every third request.
fn refusing() -> ToyServer {
    ToyServer::start(Arc::new(|number| {
        Act::Answer(if number % 3 == 0 { BUSY } else { NO_CONTENT })
    }))
}

#[test]
fn refusals_are_retried_if_requested_and_counted_otherwise() {
    let source = || Arc::new(Numbered { end: 300 });
    let run = |attempts_again| -> Outcome {
        let server = refusing();
        let plan = Plan {
            source: source(),
            attempts_again,
            window: Duration::from_secs(60),
            ..plan(&server, Pace::Closed)
        };
        run(&plan).unwrap()
    };
    let counted = run(0);
    assert_eq!(
        (counted.tally.statuses[&503], counted.acknowledged()),
        (100, 200)
    );
    let again = run(50);
    assert_eq!((again.acknowledged(), again.failed()), (300, 0));
    assert_eq!(again.tally.checksum, (0..300).sum::<u64>());
    assert!(again.tally.retries >= 100 && again.tally.retries == again.tally.refused_again);
}

#[test]
fn a_broken_connection_is_reopened_and_its_request_is_an_error() {
    let server = ToyServer::start(Arc::new(|number| {
        if number % 50 == 10 {
            Act::Close
        } else {
            Act::Answer(NO_CONTENT)
        }
    }));
    let outcome = run(&Plan {
        source: Arc::new(Numbered { end: 200 }),
        window: Duration::from_secs(60),
        ..plan(&server, Pace::Closed)
    })
    .unwrap();
    assert_eq!(
        (outcome.acknowledged(), outcome.tally.errors.closed),
        (196, 4)
    );
}

#[test]
fn a_missing_server_is_an_error_of_every_request() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let outcome = run(&Plan {
        window: Duration::from_millis(50),
        drain: Duration::ZERO,
        ..Plan {
            pace: Pace::Open(100.0),
            ..Plan::new(free, Arc::new(Numbered { end: 9 }))
        }
    })
    .unwrap();
    assert!(outcome.tally.errors.connect > 0 && outcome.acknowledged() == 0);
}

#[test]
fn the_clients_cpu_is_that_of_its_threads() {
    let server = ToyServer::start(always(NO_CONTENT));
    let outcome = run(&plan(&server, Pace::Open(200.0))).unwrap();
    assert_eq!(outcome.client_cpu.len(), 2);
    // No thread uses more CPU than the elapsed time, apart from the difference of the clocks.
    assert!(
        outcome
            .client_cpu
            .iter()
            .all(|cpu| *cpu > 0.0 && *cpu < outcome.seconds * 1.05),
        "{:?}",
        outcome.client_cpu
    );
}

#[test]
fn plans_that_cannot_run_are_refused() {
    let server = ToyServer::start(always(NO_CONTENT));
    for wrong in [
        Plan {
            connections: 0,
            ..plan(&server, Pace::Closed)
        },
        Plan {
            depth: 0,
            ..plan(&server, Pace::Closed)
        },
        plan(&server, Pace::Open(0.0)),
        plan(&server, Pace::Open(f64::NAN)),
    ] {
        assert!(run(&wrong).is_err());
    }
}
