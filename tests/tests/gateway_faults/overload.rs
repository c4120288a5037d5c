//! More requests than the gateway has memory for, while PostgreSQL is repeatedly suspended.

use super::{cluster, metric, settings, until};
use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Answer, Gateway};
use lanes_support::provision::DATABASE;
use lanes_support::remote_write::{Series, body};
use lanes_wire::{BatchBuilder, ColumnType};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const SENDERS: u64 = 40;
/// The number of rows in a request with events. The bodies of all senders are three times the
/// budget.
const EVENTS: usize = 4_000;
/// The number of samples in a write request.
const SAMPLES: usize = 100;
const PENDING_BYTES_MAX: u64 = 1 << 20;
/// The number of suspensions of PostgreSQL, each until requests have been refused.
const ROUNDS: u32 = 3;
const NOW_MS: i64 = 1_767_225_600_000;
/// The greatest growth of the process.
const GROWTH_BYTES_MAX: f64 = 64.0 * 1024.0 * 1024.0;

/// The outcomes of one kind of requests, by number.
#[derive(Default)]
struct Answers {
    acknowledged: Mutex<BTreeSet<i64>>,
    refused: AtomicU64,
}

impl Answers {
    #[track_caller]
    fn note(&self, number: i64, answer: &Answer) {
        match answer.status {
            204 => _ = self.acknowledged.lock().unwrap().insert(number),
            429 | 503 => {
                let again = answer.header("retry-after").map(str::parse::<u32>);
                assert!(matches!(again, Some(Ok(_))), "Retry-After: {again:?}");
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
            status => panic!("{status}: {}", answer.body),
        }
    }

    fn count(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }
}

fn events(number: i64) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for name in ["request", "n"] {
        builder.add_column(name, ColumnType::Int64).unwrap();
    }
    let columns = builder.columns_mut();
    columns[0].extend_i64(&[number; EVENTS]).unwrap();
    let rows: Vec<i64> = (0..EVENTS as i64).collect();
    columns[1].extend_i64(&rows).unwrap();
    let mut bytes = Vec::new();
    builder.finish(&mut bytes).unwrap();
    bytes
}

/// Returns a request whose samples have a distinct time.
fn samples(number: i64) -> Vec<u8> {
    let series: Vec<Series> = (0..SAMPLES)
        .map(|place| {
            let instance = place.to_string();
            Series::new(
                "overload",
                &[("instance", &instance)],
                vec![(NOW_MS + number, 1.0)],
            )
        })
        .collect();
    body(&series)
}

/// Checks the stored rows of each request. An acknowledged request is stored completely and once; a
/// refused one is too, or not at all.
#[track_caller]
fn assert_whole(cluster: &Cluster, sql: &str, answers: &Answers, rows: i64) {
    let stored: BTreeMap<i64, i64> = cluster
        .connect(DATABASE)
        .unwrap()
        .query(sql, &[])
        .unwrap()
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    let torn: Vec<_> = stored.iter().filter(|(_, found)| **found != rows).collect();
    assert!(
        torn.is_empty(),
        "requests that do not have {rows} rows: {torn:?}"
    );
    let acknowledged = answers.acknowledged.lock().unwrap();
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|number| !stored.contains_key(number))
        .collect();
    assert!(lost.is_empty(), "acknowledged but not stored: {lost:?}");
}

/// Stops the senders even if the test fails, because a scope waits for its threads.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn an_overload_is_refused_within_the_memory_budget_and_loses_nothing() {
    let (cluster, passwords) = cluster("overload");
    cluster
        .connect(DATABASE)
        .unwrap()
        .batch_execute("CREATE TABLE t (request int8 NOT NULL, n int8 NOT NULL) USING lanes; GRANT INSERT ON t TO lanes_gateway")
        .unwrap();
    let small = settings("gateway", &cluster, &passwords)
        .environment("LANES_GATEWAY_RECEIVE_PENDING_BYTES_MAX", "1MiB")
        .environment("LANES_GATEWAY_RECEIVE_PENDING_WAIT", "50ms")
        .environment("LANES_GATEWAY_RECEIVE_BODY_BYTES_MAX", "256KiB")
        .environment("LANES_GATEWAY_RECEIVE_DECOMPRESSED_BYTES_MAX", "256KiB")
        .environment("LANES_GATEWAY_RECEIVE_SAMPLES_MAX", "2000")
        .environment("LANES_GATEWAY_ACK_TIMEOUT", "2s");
    let gateway = Gateway::start(small).unwrap();
    let send_events = |number: i64| {
        let headers = [("content-type", "application/x-flatbuffers")];
        gateway
            .post("/api/v1/events/t", &headers, &events(number))
            .unwrap()
    };
    let (of_events, of_samples) = (Answers::default(), Answers::default());
    // The requests make the table and the series known.
    of_events.note(0, &send_events(0));
    of_samples.note(0, &gateway.remote_write(&samples(0), None).unwrap());
    assert_eq!((of_events.count(), of_samples.count()), (1, 1));
    let before = metric(&gateway, "process_resident_memory_bytes");
    let (is_over, pending_bytes_most) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let stop_at_end = StopAtEnd(&is_over);
        for sender in 0..SENDERS {
            let (of_events, of_samples, is_over) = (&of_events, &of_samples, &is_over);
            let (gateway, send_events) = (&gateway, &send_events);
            scope.spawn(move || {
                for turn in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let number = 1 + (turn * SENDERS + sender) as i64;
                    if sender % 2 == 0 {
                        of_events.note(number, &send_events(number));
                    } else {
                        let bytes = samples(number);
                        of_samples.note(number, &gateway.remote_write(&bytes, None).unwrap());
                    }
                }
            });
        }
        let (is_over, most, watched) = (&is_over, &pending_bytes_most, &gateway);
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let pending = watched.status().unwrap()["pending_bytes"].as_u64().unwrap();
                most.fetch_max(pending, Ordering::Relaxed);
                let gauge = metric(watched, "lanes_gateway_pending_bytes");
                most.fetch_max(gauge as u64, Ordering::Relaxed);
            }
        });
        let mut blocker = cluster.connect(DATABASE).unwrap();
        for round in 1..=ROUNDS {
            blocker
                .batch_execute("BEGIN; LOCK TABLE t, lanes.samples IN ACCESS EXCLUSIVE MODE")
                .unwrap();
            let refused =
                || [&of_events, &of_samples].map(|kind| kind.refused.load(Ordering::Relaxed));
            let so_far = refused();
            until("nothing is refused while PostgreSQL is suspended", || {
                let now = refused();
                now[0] > so_far[0] && now[1] > so_far[1]
            });
            blocker.batch_execute("ROLLBACK").unwrap();
            let so_far = (of_events.count(), of_samples.count());
            until(
                &format!("nothing is acknowledged after round {round}"),
                || of_events.count() > so_far.0 && of_samples.count() > so_far.1,
            );
        }
        drop(stop_at_end);
    });
    let most = pending_bytes_most.into_inner();
    assert!(
        (1..=PENDING_BYTES_MAX).contains(&most),
        "{most} bytes of requests were in memory at once"
    );
    let growth = metric(&gateway, "process_resident_memory_bytes") - before;
    assert!(growth < GROWTH_BYTES_MAX, "grown by {growth} bytes");
    assert_whole(
        &cluster,
        "SELECT request, count(*) FROM t GROUP BY request",
        &of_events,
        EVENTS as i64,
    );
    assert_whole(
        &cluster,
        &format!(
            "SELECT (extract(epoch FROM ts) * 1000)::int8 - {NOW_MS}, count(*) FROM lanes.samples GROUP BY ts"
        ),
        &of_samples,
        SAMPLES as i64,
    );
    // The gateway works as before.
    let number = i64::from(u32::MAX);
    assert_eq!(send_events(number).status, 204);
    let answer = gateway.remote_write(&samples(number), None).unwrap();
    assert_eq!(answer.status, 204, "{}", answer.body);
}
