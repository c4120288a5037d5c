//! Outages of PostgreSQL, and several gateways.

use super::{PATIENCE, cluster, samples, settings};
use lanes_support::cluster::Stop;
use lanes_support::gateway::Gateway;
use lanes_support::provision::DATABASE;
use lanes_support::remote_write::{Series, body};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const NOW_MS: i64 = 1_767_225_600_000;

/// Stops the senders even if the test fails, because a scope waits for its threads.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn request(metric: &str, number: u64) -> Vec<u8> {
    let instance = (number % 50).to_string();
    body(&[Series::new(
        metric,
        &[("instance", &instance)],
        vec![(NOW_MS + number as i64, number as f64)],
    )])
}

#[test]
fn acknowledged_samples_survive_restarts_of_postgres_under_load() {
    let (mut cluster, passwords) = cluster("restart");
    // The timeouts are short, so that senders receive 503s.
    let settings =
        settings("gateway", &cluster, &passwords).environment("LANES_GATEWAY_ACK_TIMEOUT", "1s");
    let mut gateway = Gateway::start(settings).unwrap();
    let (stop, acked, refused) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let flows = |acked: &AtomicU64| {
        let (start, before) = (Instant::now(), acked.load(Ordering::Relaxed));
        while acked.load(Ordering::Relaxed) < before + 20 {
            assert!(start.elapsed() < PATIENCE, "nothing is acknowledged");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let sent = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..3_u64)
            .map(|sender| {
                let (gateway, stop, acked, refused) = (&gateway, &stop, &acked, &refused);
                scope.spawn(move || {
                    let mut number = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let bytes = request(&format!("restart_{sender}"), number);
                        loop {
                            let answer = gateway.remote_write(&bytes, None).unwrap();
                            match answer.status {
                                204 => break,
                                503 => {
                                    assert!(
                                        answer.header("retry-after").is_some(),
                                        "a 503 has a Retry-After"
                                    );
                                    refused.fetch_add(1, Ordering::Relaxed);
                                    std::thread::sleep(Duration::from_millis(20));
                                }
                                status => panic!("{status}: {}", answer.body),
                            }
                        }
                        acked.fetch_add(1, Ordering::Relaxed);
                        number += 1;
                    }
                    number
                })
            })
            .collect();
        let stop_at_end = StopAtEnd(&stop);
        for how in [Stop::Fast, Stop::Immediate] {
            flows(&acked);
            cluster.stop(how).unwrap();
            let start = Instant::now();
            while gateway.get("/-/ready").unwrap().status != 503
                || refused.load(Ordering::Relaxed) == 0
            {
                assert!(
                    start.elapsed() < PATIENCE,
                    "PostgreSQL is stopped, and the gateway reports that it is ready"
                );
                std::thread::sleep(Duration::from_millis(50));
            }
            assert_eq!(
                gateway.get("/-/healthy").unwrap().status,
                200,
                "the gateway is healthy nevertheless"
            );
            refused.store(0, Ordering::Relaxed);
            cluster.start().unwrap();
            flows(&acked);
            let start = Instant::now();
            while gateway.get("/-/ready").unwrap().status != 200 {
                assert!(
                    start.elapsed() < PATIENCE,
                    "samples are stored, and the gateway reports that it is not ready"
                );
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        drop(stop_at_end);
        senders
            .into_iter()
            .map(|sender| sender.join().unwrap())
            .sum::<u64>()
    });
    assert_eq!(samples(&cluster), sent);
    let distinct = "SELECT count(*) FROM (SELECT DISTINCT series, ts FROM lanes.samples) d";
    assert_eq!(
        cluster.scalar(DATABASE, distinct).unwrap(),
        sent.to_string()
    );
    assert!(
        gateway
            .stop()
            .unwrap()
            .is_some_and(|status| status.success())
    );
}

#[test]
fn a_gateway_waits_until_postgres_is_started() {
    let (mut cluster, passwords) = cluster("late");
    cluster.stop(Stop::Fast).unwrap();
    let mut gateway = Gateway::new(settings("gateway", &cluster, &passwords));
    gateway.start_again().unwrap();
    let start = Instant::now();
    while !gateway
        .get("/-/healthy")
        .is_ok_and(|answer| answer.status == 200)
    {
        gateway.check().unwrap();
        assert!(start.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(gateway.get("/-/ready").unwrap().status, 503);
    cluster.start().unwrap();
    gateway.wait_ready().unwrap();
    assert_eq!(
        gateway
            .remote_write(&request("late", 1), None)
            .unwrap()
            .status,
        204
    );
    assert_eq!(samples(&cluster), 1);
}

#[test]
fn a_stop_responds_to_every_received_request() {
    let (cluster, passwords) = cluster("stop");
    let mut gateway = Gateway::start(settings("gateway", &cluster, &passwords)).unwrap();
    let url = gateway.url("/api/v1/write");
    let acked = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for sender in 0..4_u64 {
            let (url, acked) = (&url, &acked);
            scope.spawn(move || {
                let agent = ureq::Agent::config_builder()
                    .http_status_as_error(false)
                    .build()
                    .new_agent();
                for number in 0.. {
                    let bytes = request(&format!("stop_{sender}"), number);
                    match agent
                        .post(url)
                        .header("content-type", "application/x-protobuf")
                        .header("content-encoding", "snappy")
                        .send(&bytes[..])
                        .map(|answer| answer.status().as_u16())
                    {
                        Ok(204) => _ = acked.fetch_add(1, Ordering::Relaxed),
                        _ => break,
                    }
                }
            });
        }
        std::thread::sleep(Duration::from_millis(700));
        assert!(
            gateway
                .stop()
                .unwrap()
                .is_some_and(|status| status.success()),
            "stopping in order succeeds"
        );
    });
    let acked = acked.into_inner();
    assert!(acked > 0);
    // A request whose response was cut off may be stored without its sender's knowledge, at most
    // one per sender.
    let stored = samples(&cluster);
    assert!(
        (acked..=acked + 4).contains(&stored),
        "{acked} acknowledged, {stored} stored"
    );
}

#[test]
fn two_gateways_agree_on_series_and_apply_a_request_once() {
    let (cluster, passwords) = cluster("two");
    let gateways = ["first", "second"]
        .map(|name| Gateway::start(settings(name, &cluster, &passwords)).unwrap());
    // Both gateways register the same new series at the same time, in different orders.
    std::thread::scope(|scope| {
        for (place, gateway) in gateways.iter().enumerate() {
            scope.spawn(move || {
                for round in 0..20_u64 {
                    let mut series: Vec<Series> = (0..40)
                        .map(|number| {
                            let instance = (round * 40 + number).to_string();
                            let time = NOW_MS + (round * 2 + place as u64) as i64;
                            Series::new(
                                "shared",
                                &[("instance", &instance)],
                                vec![(time, place as f64)],
                            )
                        })
                        .collect();
                    if place == 1 {
                        series.reverse();
                    }
                    let answer = gateway.remote_write(&body(&series), None).unwrap();
                    assert_eq!(answer.status, 204, "{}", answer.body);
                }
            });
        }
    });
    let one_id_each = "SELECT count(*) || ' ' || count(DISTINCT (metric, labels)) || ' ' || max(id) FROM lanes.series";
    assert_eq!(
        cluster.scalar(DATABASE, one_id_each).unwrap(),
        "800 800 800",
        "ids are dense, one per label set"
    );
    let joined = "SELECT count(*) || ' ' || count(DISTINCT series) FROM metrics.shared";
    assert_eq!(cluster.scalar(DATABASE, joined).unwrap(), "1600 800");

    // The same request to both at once, and again later, is applied once.
    let bytes = request("once", 7);
    std::thread::scope(|scope| {
        for gateway in gateways.iter().chain(&gateways) {
            let bytes = &bytes;
            scope.spawn(move || assert_eq!(gateway.remote_write(bytes, None).unwrap().status, 204));
        }
    });
    assert_eq!(gateways[0].remote_write(&bytes, None).unwrap().status, 204);
    assert_eq!(
        cluster
            .scalar(DATABASE, "SELECT count(*) FROM metrics.once")
            .unwrap(),
        "1"
    );
}

#[test]
fn a_gateway_responds_503_while_its_table_is_locked() {
    let (cluster, passwords) = cluster("locked");
    let settings = settings("gateway", &cluster, &passwords)
        .environment("LANES_GATEWAY_ACK_TIMEOUT", "1s")
        .environment("LANES_GATEWAY_RECEIVE_SAMPLES_MAX", "2000")
        .environment("LANES_GATEWAY_RECEIVE_PENDING_BYTES_MAX", "1MiB")
        .environment("LANES_GATEWAY_RECEIVE_PENDING_WAIT", "100ms")
        .environment("LANES_GATEWAY_RECEIVE_BODY_BYTES_MAX", "256KiB")
        .environment("LANES_GATEWAY_RECEIVE_DECOMPRESSED_BYTES_MAX", "512KiB");
    let gateway = Gateway::start(settings).unwrap();
    assert_eq!(
        gateway
            .remote_write(&request("locked", 0), None)
            .unwrap()
            .status,
        204
    );
    let mut holder = cluster.connect(DATABASE).unwrap();
    holder
        .batch_execute("BEGIN; LOCK TABLE lanes.samples IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    std::thread::scope(|scope| {
        for sender in 1..=16_u64 {
            let gateway = &gateway;
            scope.spawn(move || {
                let big: Vec<Series> = (0..1000)
                    .map(|number| {
                        Series::new(
                            "locked",
                            &[("instance", &(number % 50).to_string())],
                            vec![(NOW_MS + number + sender as i64 * 1_000_000, 1.0)],
                        )
                    })
                    .collect();
                let answer = gateway.remote_write(&body(&big), None).unwrap();
                assert_eq!(answer.status, 503, "{}", answer.body);
            });
        }
    });
    holder.batch_execute("ROLLBACK").unwrap();
    let start = Instant::now();
    while gateway
        .remote_write(&request("locked", 1), None)
        .unwrap()
        .status
        != 204
    {
        assert!(start.elapsed() < PATIENCE, "the gateway does not recover");
        std::thread::sleep(Duration::from_millis(50));
    }
}
