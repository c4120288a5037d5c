//! Batches of events over HTTP into real tables. Acknowledged events are stored once and bit by
//! bit, and refusals name their reason.
//!
//! | module | contents |
//! |---|---|
//! | [`keys`] | requests with an `Idempotency-Key` |
//! | [`tables`] | types, defaults, constraints, policies and privileges of the table |
//! | [`senders`] | many senders at once, with different columns, through two gateways, and across a kill |

mod keys;
mod senders;
mod tables;

use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Answer, Gateway, Settings};
use lanes_support::provision::{DATABASE, Passwords, provision};
use lanes_wire::{BatchBuilder, ColumnBuffer, ColumnType};

const FLATBUFFERS: &str = "application/x-flatbuffers";

/// Starts a cluster with these tables, and a gateway without self-scraping.
fn begin(name: &str, sql: &str) -> (Cluster, Passwords, Gateway) {
    let cluster = Cluster::builder(name).start().unwrap();
    let passwords = Passwords::generate();
    provision(&cluster, &passwords).unwrap();
    run(&cluster, sql);
    let gateway = Gateway::start(settings("gateway", &cluster, &passwords)).unwrap();
    (cluster, passwords, gateway)
}

fn settings(name: &str, cluster: &Cluster, passwords: &Passwords) -> Settings {
    Settings::for_test(name, cluster, passwords)
        .unwrap()
        .environment("LANES_GATEWAY_SELF_SCRAPE_INTERVAL", "0")
}

fn run(cluster: &Cluster, sql: &str) {
    cluster
        .connect(DATABASE)
        .unwrap()
        .batch_execute(sql)
        .unwrap();
}

fn scalar(cluster: &Cluster, sql: &str) -> String {
    cluster.scalar(DATABASE, sql).unwrap()
}

/// Encodes a batch from names and types, and a function that fills the columns.
fn batch(columns: &[(&str, ColumnType)], fill: impl FnOnce(&mut [ColumnBuffer])) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    for (name, column_type) in columns {
        builder.add_column(name, *column_type).unwrap();
    }
    fill(builder.columns_mut());
    let mut bytes = Vec::new();
    builder.finish(&mut bytes).unwrap();
    bytes
}

fn send(gateway: &Gateway, table: &str, content_type: &str, body: &[u8]) -> Answer {
    let headers = [("content-type", content_type)];
    gateway
        .post(&format!("/api/v1/events/{table}"), &headers, body)
        .unwrap()
}

#[track_caller]
fn assert_stored(answer: &Answer) {
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
}

#[track_caller]
fn assert_refused(answer: &Answer, status: u16, told: &str) {
    assert_eq!(answer.status, status, "{}", answer.body);
    assert!(
        answer.body.contains(told),
        "{told:?} is not in {:?}",
        answer.body
    );
}
