//! Requests with an `Idempotency-Key`.

use lanes_support::gateway::{Answer, Gateway};

use super::{assert_refused, assert_stored, begin, run, scalar, settings};

fn send(gateway: &Gateway, key: &str, body: &str) -> Answer {
    let headers = [
        ("content-type", "application/json"),
        ("idempotency-key", key),
    ];
    gateway
        .post("/api/v1/events/t", &headers, body.as_bytes())
        .unwrap()
}

const TABLE: &str =
    "CREATE TABLE t (sender int8, n int8) USING lanes; GRANT INSERT ON t TO lanes_gateway;
    CREATE TABLE u (n int8) USING lanes; GRANT INSERT ON u TO lanes_gateway";

#[test]
fn a_key_belongs_to_one_body() {
    let (cluster, passwords, gateway) = begin("events_keys", TABLE);
    let other = Gateway::start(settings("other", &cluster, &passwords)).unwrap();
    // Every sender repeats keys that others use at the same time, each with a different body. One
    // of the bodies is stored.
    let stored: usize = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..8)
            .map(|sender| {
                let gateway = if sender % 2 == 0 { &gateway } else { &other };
                scope.spawn(move || {
                    let mut stored = 0;
                    for number in 0..20 {
                        let body = format!("{{\"sender\": {sender}, \"n\": {number}}}");
                        let first = send(gateway, &format!("key {number}"), &body);
                        let again = send(gateway, &format!("key {number}"), &body);
                        assert_eq!(first.status, again.status, "{}", again.body);
                        match first.status {
                            204 => stored += 1,
                            _ => assert_refused(&first, 422, "with another body"),
                        }
                    }
                    stored
                })
            })
            .collect();
        let senders = senders.into_iter().map(|sender| sender.join().unwrap());
        senders.sum()
    });
    let counts = "SELECT concat_ws(' ', count(*), count(DISTINCT n)) FROM t";
    assert_eq!((stored, scalar(&cluster, counts).as_str()), (20, "20 20"));
    // A refused body is not recorded under a key.
    let refused = send(&gateway, "key 20", "{\"sender\": \"x\"}");
    assert_refused(&refused, 400, "column \"sender\"");
    assert_stored(&send(&gateway, "key 20", "{\"sender\": 1}"));
    // Keys of another table are independent.
    let headers = [
        ("content-type", "application/json"),
        ("idempotency-key", "key 1"),
    ];
    assert_stored(
        &gateway
            .post("/api/v1/events/u", &headers, b"{\"n\": 1}")
            .unwrap(),
    );
    // Requests that were stored before keys had bodies are repeated regardless of the body.
    run(&cluster, "UPDATE lanes.requests SET body = NULL");
    assert_stored(&send(&gateway, "key 1", "{\"sender\": 99}"));
    assert_eq!(scalar(&cluster, counts), "21 20");
    let log = std::fs::read_to_string(cluster.log()).unwrap();
    let errors: Vec<&str> = log.lines().filter(|line| line.contains("ERROR:")).collect();
    assert!(errors.is_empty(), "{errors:?}");
}
