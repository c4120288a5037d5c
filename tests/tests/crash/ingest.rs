//! Sustained remote write while PostgreSQL and the gateway are killed.

use super::{Victim, kill_a_backend};
use lanes_support::budget::Budget;
use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::provision::{DATABASE, Passwords, provision};
use lanes_support::remote_write::{Series, body};
use lanes_support::seed::seeded;
use rand::RngExt;
use rand::seq::IndexedRandom;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The number of kills in the test of level `wal`.
const ROUNDS: Budget = Budget { short: 6, long: 20 };
/// The number of kills in the test of level `memory`.
const MEMORY_ROUNDS: Budget = Budget { short: 3, long: 5 };
/// The number of samples in a request.
const REQUEST_SAMPLES: usize = 50;
/// The window of loss of level `memory`: at most three times `wal_writer_delay` (200 ms by
/// default), and a margin for the WAL writer of a busy machine.
const MEMORY_WINDOW: Duration = Duration::from_millis(3 * 200 + 1400);
/// The pause between two requests of a sender.
const PACE: Duration = Duration::from_millis(3);
/// The timeout after which a sender without a response repeats the request.
const PATIENCE: Duration = Duration::from_secs(120);

/// One request of a sender.
#[derive(Debug, Clone, Copy)]
struct Request {
    /// The number of its first sample.
    first: usize,
    /// The time of its response 204.
    acked: Option<Instant>,
}

/// The requests of a sender.
type Record = Arc<Mutex<Vec<Request>>>;

/// Returns the time of a sample in milliseconds since 1970. Each sample has a distinct time.
fn time_of(number: usize) -> i64 {
    1_767_225_600_000 + number as i64
}

/// Runs a sender with its own metric: request after request, each repeated until it is
/// acknowledged.
fn sender(
    metric: String,
    url: String,
    level: &'static str,
    stop: Arc<AtomicBool>,
    pause: Arc<AtomicBool>,
) -> (Record, JoinHandle<()>) {
    let record = Record::default();
    let mine = record.clone();
    let handle = std::thread::spawn(move || {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(20)))
            .build()
            .new_agent();
        let mut first = 0;
        while !stop.load(Ordering::Relaxed) {
            // Without a pause, more would be sent during a check than before it, and each check
            // would take longer than the last.
            std::thread::sleep(PACE);
            if pause.load(Ordering::Relaxed) {
                continue;
            }
            // New series appear from time to time, so that some kills interrupt a registration.
            let instance = (first / (REQUEST_SAMPLES * 40)).to_string();
            let samples = (first..first + REQUEST_SAMPLES)
                .map(|number| (time_of(number), number as f64))
                .collect();
            let bytes = body(&[Series::new(&metric, &[("instance", &instance)], samples)]);
            mine.lock().unwrap().push(Request { first, acked: None });
            let start = Instant::now();
            loop {
                let answer = agent
                    .post(&url)
                    .header("content-type", "application/x-protobuf")
                    .header("content-encoding", "snappy")
                    .header("x-lanes-ack", level)
                    .send(&bytes[..]);
                match answer.map(|answer| answer.status().as_u16()) {
                    Ok(204) => break,
                    Ok(503) | Err(_) => std::thread::sleep(Duration::from_millis(20)),
                    Ok(status) => panic!("{metric}: a good request was answered with {status}"),
                }
                assert!(
                    start.elapsed() < PATIENCE,
                    "{metric}: not acknowledged for {PATIENCE:?}"
                );
            }
            mine.lock().unwrap().last_mut().unwrap().acked = Some(Instant::now());
            first += REQUEST_SAMPLES;
        }
    });
    (record, handle)
}

/// Returns how often each sample of a metric is stored. Fails for a value that was never sent.
fn stored(cluster: &Cluster, metric: &str) -> HashMap<usize, u32> {
    let mut client = cluster.connect(DATABASE).unwrap();
    let rows = client
        .query(
            "SELECT (extract(epoch FROM s.ts) * 1000)::int8, s.value FROM lanes.samples s \
             JOIN lanes.series r ON r.id = s.series WHERE r.metric = $1",
            &[&metric],
        )
        .unwrap();
    let mut counts = HashMap::new();
    for row in rows {
        let (time, value): (i64, f64) = (row.get(0), row.get(1));
        assert_eq!(
            time,
            time_of(value as usize),
            "{metric}: a sample has the time of another one"
        );
        *counts.entry(value as usize).or_default() += 1;
    }
    counts
}

/// Checks that every acknowledged sample is stored once. Samples acknowledged after `may_be_lost`
/// may be missing; returns their number.
fn check(
    cluster: &Cluster,
    metric: &str,
    requests: &[Request],
    may_be_lost: Option<Instant>,
) -> usize {
    let counts = stored(cluster, metric);
    if let Some((number, times)) = counts.iter().find(|(_, times)| **times > 1) {
        panic!("{metric}: sample {number} is stored {times} times");
    }
    let mut lost = 0;
    for request in requests {
        let Some(acked) = request.acked else { continue };
        for number in request.first..request.first + REQUEST_SAMPLES {
            if counts.contains_key(&number) {
                continue;
            }
            match may_be_lost {
                Some(since) if acked > since => lost += 1,
                Some(since) => panic!(
                    "{metric}: sample {number} is lost although it was acknowledged {:?} before the window",
                    since - acked
                ),
                None => panic!("{metric}: sample {number} was acknowledged and is lost"),
            }
        }
    }
    lost
}

struct Rig {
    cluster: Cluster,
    gateway: Gateway,
    stop: Arc<AtomicBool>,
    pause: Arc<AtomicBool>,
    senders: Vec<(String, Record, JoinHandle<()>)>,
}

impl Rig {
    fn start(name: &str, level: &'static str) -> Rig {
        let cluster = Cluster::builder(name).start().unwrap();
        let passwords = Passwords::generate();
        provision(&cluster, &passwords).unwrap();
        let settings = Settings::for_test("gateway", &cluster, &passwords)
            .unwrap()
            .environment("LANES_GATEWAY_SELF_SCRAPE_INTERVAL", "0");
        let gateway = Gateway::start(settings).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let pause = Arc::new(AtomicBool::new(false));
        let senders = (0..3)
            .map(|number| {
                let metric = format!("crash_{number}");
                let url = gateway.url("/api/v1/write");
                let (record, handle) =
                    sender(metric.clone(), url, level, stop.clone(), pause.clone());
                (metric, record, handle)
            })
            .collect();
        Rig {
            cluster,
            gateway,
            stop,
            pause,
            senders,
        }
    }

    /// Returns the requests of each sender so far.
    fn records(&self) -> Vec<(String, Vec<Request>)> {
        self.senders
            .iter()
            .map(|(metric, record, _)| (metric.clone(), record.lock().unwrap().clone()))
            .collect()
    }

    /// Checks the requests of each sender so far, while the senders pause.
    fn check(&self) {
        self.pause.store(true, Ordering::Relaxed);
        for (metric, requests) in self.records() {
            check(&self.cluster, &metric, &requests, None);
        }
        self.pause.store(false, Ordering::Relaxed);
    }

    /// Waits until each sender has a request that was acknowledged after now.
    fn wait_flowing(&mut self) {
        let start = Instant::now();
        for (metric, record, _) in &self.senders {
            loop {
                let last = record
                    .lock()
                    .unwrap()
                    .iter()
                    .rev()
                    .find_map(|request| request.acked);
                if last.is_some_and(|acked| acked > start) {
                    break;
                }
                self.gateway.check().unwrap();
                assert!(
                    start.elapsed() < PATIENCE,
                    "{metric}: nothing is acknowledged any more"
                );
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    fn finish(mut self) -> (Cluster, Gateway, usize) {
        self.stop.store(true, Ordering::Relaxed);
        let mut samples = 0;
        for (metric, record, handle) in std::mem::take(&mut self.senders) {
            handle.join().unwrap();
            let requests = record.lock().unwrap().clone();
            assert!(requests.iter().all(|request| request.acked.is_some()));
            samples += requests.len() * REQUEST_SAMPLES;
            println!("{metric}: {} requests acknowledged", requests.len());
        }
        (self.cluster, self.gateway, samples)
    }
}

#[test]
fn acknowledged_samples_are_stored_exactly_once_after_any_kill() {
    let (mut random, _) = seeded("crash_wal");
    let mut rig = Rig::start("crash_wal", "wal");
    for round in 0..ROUNDS.rounds() {
        rig.wait_flowing();
        std::thread::sleep(Duration::from_millis(random.random_range(20..500)));
        let victims = [
            Victim::Backend,
            Victim::Postmaster,
            Victim::Cluster,
            Victim::Gateway,
        ];
        // Each kind of victim occurs at least once, in the first four rounds.
        let victim = match victims.get(round as usize) {
            Some(victim) => *victim,
            None => *victims.choose(&mut random).unwrap(),
        };
        println!("round {round}: {victim:?}");
        match victim {
            Victim::Backend => {
                kill_a_backend(&mut rig.cluster, DATABASE, &mut random);
            }
            Victim::Postmaster => {
                rig.cluster.kill9_postmaster().unwrap();
                rig.cluster.start().unwrap();
            }
            Victim::Cluster => {
                rig.cluster.kill9().unwrap();
                rig.cluster.start().unwrap();
            }
            Victim::Gateway => {
                rig.gateway.kill9().unwrap();
                rig.gateway.start_again().unwrap();
            }
        }
        rig.check();
    }
    rig.wait_flowing();
    let (cluster, mut gateway, samples) = rig.finish();
    // Everything is acknowledged now, so exactly the sent samples are stored.
    assert_eq!(
        cluster
            .scalar(DATABASE, "SELECT count(*) FROM lanes.samples")
            .unwrap(),
        samples.to_string()
    );
    assert_eq!(
        cluster
            .scalar(
                DATABASE,
                "SELECT count(*) FROM (SELECT DISTINCT metric, labels FROM lanes.series) s"
            )
            .unwrap(),
        cluster
            .scalar(DATABASE, "SELECT count(*) FROM lanes.series")
            .unwrap(),
        "no series is registered twice"
    );
    assert!(
        gateway
            .stop()
            .unwrap()
            .is_some_and(|status| status.success())
    );
}

#[test]
fn level_memory_loses_no_more_than_its_window() {
    let (mut random, _) = seeded("crash_memory");
    let mut rig = Rig::start("crash_memory", "memory");
    let mut lost = 0;
    // A lost sample stays lost, so each sample is judged at the first kill after its
    // acknowledgement.
    let mut judged: HashMap<String, usize> = HashMap::new();
    let kills = MEMORY_ROUNDS.rounds();
    for _ in 0..kills {
        rig.wait_flowing();
        std::thread::sleep(Duration::from_millis(random.random_range(500..3500)));
        let killed = Instant::now();
        rig.cluster.kill9().unwrap();
        // The last responses may still be in flight from the gateway.
        std::thread::sleep(Duration::from_millis(200));
        let before = rig.records();
        rig.cluster.start().unwrap();
        for (metric, requests) in before {
            let acked = requests
                .iter()
                .take_while(|request| request.acked.is_some())
                .count();
            let new = &requests[judged.get(&metric).copied().unwrap_or(0)..acked];
            lost += check(&rig.cluster, &metric, new, Some(killed - MEMORY_WINDOW));
            judged.insert(metric, acked);
        }
    }
    let (_cluster, _gateway, samples) = rig.finish();
    println!(
        "level memory: {lost} of {samples} acknowledged samples lost in {kills} kills, all acknowledged less than {MEMORY_WINDOW:?} before"
    );
}
