//! What the page is served by, without a browser.

use super::Stage;
use lanes_support::provision::DATABASE;
use serde_json::Value;

#[test]
fn the_page_and_the_storage_are_served() {
    let stage = Stage::start("page_routes");
    // A client that accepts anything gets the list of routes.
    let listing = stage.gateway.get("/").unwrap();
    assert!(listing.body.starts_with("lanes-gateway has these routes:"));
    let script = stage.gateway.get("/page/main.js").unwrap();
    assert_eq!(script.status, 200);
    let media_type = "text/javascript; charset=utf-8";
    assert_eq!(script.header("content-type"), Some(media_type));
    let policy = script.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'self'"), "{policy}");
    assert_eq!(stage.gateway.get("/page/other.js").unwrap().status, 404);

    let open = storage(&stage);
    assert!(open["arena"]["bytes_total"].as_u64().unwrap() > 1 << 20);
    let samples = state(&open, "open");
    // The samples of the test, and more that the gateway stores itself.
    assert!(samples["rows"].as_u64().unwrap() >= 16 * 7, "{open}");
    assert!(samples["min_time"].as_f64().unwrap() <= super::START as f64);

    let mut client = stage.cluster.connect(DATABASE).unwrap();
    client
        .batch_execute("SELECT lanes.seal('lanes.samples')")
        .unwrap();
    let sealed = storage(&stage);
    let segments = state(&sealed, "sealed");
    assert!(segments["segments"].as_u64().unwrap() >= 1, "{sealed}");
    assert_eq!(segments["rows"], segments["rows_live"]);
    assert!(segments["bytes_encoded"].as_u64() < segments["bytes_raw"].as_u64());
    // What the role may not read is left out.
    client
        .batch_execute("REVOKE SELECT ON lanes.samples FROM lanes_reader")
        .unwrap();
    assert_eq!(storage(&stage)["segments"], Value::Array(Vec::new()));
}

fn storage(stage: &Stage) -> Value {
    let answer = stage.gateway.get("/api/v1/status/storage").unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    body["data"].clone()
}

/// The segments of `lanes.samples` in a state.
fn state<'a>(storage: &'a Value, state: &str) -> &'a Value {
    let segments = storage["segments"].as_array().unwrap();
    let found = segments.iter().find(|segment| segment["state"] == state);
    found.unwrap_or_else(|| panic!("no segments are {state}: {storage}"))
}
