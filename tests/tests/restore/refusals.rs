//! A store that refuses everything for a while.

use super::{assert_all, begin, destroy, event, far, near_at_wal, numbers, restore, wait_for};
use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::process::run;
use lanes_support::provision::DATABASE;
use lanes_support::store::Store;
use std::collections::BTreeSet;

/// A store that refuses everything for a while.
struct Refusal {
    begin: fn(&Store, &Gateway),
    end: fn(&Store, &Gateway),
}

/// While the store refuses, nothing is acknowledged at level `object`, and other levels continue.
/// Afterwards everything acknowledged is stored.
fn refuse_for_a_while(
    name: &str,
    store: &Store,
    settings: fn(Settings) -> Settings,
    refusal: &Refusal,
) {
    let (mut cluster, first) = begin(name, store);
    let mut gateway = Gateway::start(settings(first)).unwrap();
    let mut acknowledged = BTreeSet::new();
    let mut next = 0;
    let mut send = |gateway: &Gateway| {
        next += 1;
        let status = event(gateway, "far", &far(next), Some(&next.to_string()));
        if status == 204 {
            acknowledged.insert(next);
        }
        status
    };
    wait_for("level object is acknowledged", || send(&gateway) == 204);
    let rows = |cluster: &Cluster| -> i64 {
        let rows = cluster
            .scalar(DATABASE, "SELECT count(*) FROM near")
            .unwrap();
        rows.parse().unwrap()
    };
    for _ in 0..2 {
        (refusal.begin)(store, &gateway);
        wait_for("a row that cannot be made durable is refused", || {
            send(&gateway) == 503
        });
        assert_ne!(send(&gateway), 204);
        let before = rows(&cluster);
        assert_eq!(near_at_wal(&gateway), 204, "ingest continues");
        assert_eq!(rows(&cluster), before + 1);
        gateway.check().unwrap();
        (refusal.end)(store, &gateway);
        wait_for("level object is acknowledged again", || {
            send(&gateway) == 204
        });
        for _ in 0..20 {
            wait_for("the gateway continues", || send(&gateway) == 204);
        }
    }
    destroy(&mut cluster);
    gateway.kill9().unwrap();
    let second = Cluster::builder(&format!("{name}_second"))
        .distinct()
        .start()
        .unwrap();
    run(&mut restore(store, &second, "postgres", &[])).unwrap();
    let restored = numbers(&second, "SELECT n FROM far");
    assert_all("far", &acknowledged, &restored);
}

#[test]
fn a_file_size_limit_delays_acknowledgements_and_loses_none() {
    let refusal = Refusal {
        begin: |_, gateway| gateway.limit_files(true).unwrap(),
        end: |_, gateway| gateway.limit_files(false).unwrap(),
    };
    let store = Store::directory("limited");
    refuse_for_a_while(
        "restore_limited",
        &store,
        Settings::outliving_file_limit,
        &refusal,
    );
}

#[test]
fn a_full_disk_delays_acknowledgements_and_loses_none() {
    let refusal = Refusal {
        begin: |store, _| store.disk().unwrap().fill().unwrap(),
        end: |store, _| store.disk().unwrap().free().unwrap(),
    };
    let store = Store::small_disk("full", 16 << 20).unwrap();
    refuse_for_a_while("restore_full", &store, |settings| settings, &refusal);
}

#[test]
fn an_unresponsive_server_delays_acknowledgements_and_loses_none_on_minio() {
    let refusal = Refusal {
        begin: |store, _| store.server().unwrap().pause(true),
        end: |store, _| store.server().unwrap().pause(false),
    };
    let store = Store::minio().unwrap();
    refuse_for_a_while("restore_paused", &store, |settings| settings, &refusal);
}
