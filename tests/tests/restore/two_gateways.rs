//! Two gateways that share the database and the store.

use super::{
    assert_all, destroy, event, far, make_tables, metric, near_at_wal, numbers, restore,
    seal_until, settings_of, wait_for,
};
use lanes_support::cluster::Cluster;
use lanes_support::gateway::Gateway;
use lanes_support::process::run;
use lanes_support::provision::DATABASE;
use lanes_support::store::Store;
use std::collections::BTreeSet;

/// Two gateways of one database and one store, both written to continuously. When the second takes
/// the store over, the first can no longer acknowledge at level `object`, and says so. When the
/// second is stopped, the first takes over again. Everything that either acknowledged is restored.
#[test]
fn rows_acknowledged_by_either_of_two_gateways_survive_the_cluster() {
    let store = Store::directory("restore_two");
    let (mut cluster, passwords) = make_tables("restore_two_first");
    let names = ["one", "two"];
    let mut gateways =
        names.map(|name| Gateway::new(settings_of(name, &cluster, &passwords, &store)));
    let mut next = 0;
    let mut acknowledged = BTreeSet::new();
    let mut send = |gateway: &Gateway| {
        next += 1;
        let status = match next % 2 {
            0 => event(gateway, "far", &far(next), Some(&next.to_string())),
            _ => event(gateway, "far", &far(next), None),
        };
        if status == 204 {
            acknowledged.insert(next);
        }
        status
    };
    let mut release = cluster.connect(DATABASE).unwrap();
    let fenced = |gateway: &Gateway| metric(gateway, "objects_fenced_total");

    gateways[0].start_again().unwrap();
    gateways[0].wait_ready().unwrap();
    wait_for("the first acknowledges", || send(&gateways[0]) == 204);
    gateways[1].start_again().unwrap();
    gateways[1].wait_ready().unwrap();
    // Requests go to both the whole time.
    wait_for("the second acknowledges, the first does not", || {
        let statuses = [0, 1].map(|which| send(&gateways[which]));
        release.execute("SELECT lanes.seal('far')", &[]).unwrap();
        statuses[0] != 204 && statuses[1] == 204
    });
    wait_for("the first reports the reason", || {
        fenced(&gateways[0]) == 1.0
    });
    assert_eq!(fenced(&gateways[1]), 0.0);
    for _ in 0..3 {
        assert_ne!(send(&gateways[0]), 204);
        wait_for("the second continues", || send(&gateways[1]) == 204);
    }
    assert_eq!(near_at_wal(&gateways[0]), 204, "other levels continue");

    gateways[1].kill9().unwrap();
    wait_for("the first acknowledges again", || send(&gateways[0]) == 204);
    gateways[1].start_again().unwrap();
    wait_for("the second acknowledges again", || {
        send(&gateways[1]) == 204
    });
    seal_until(&cluster, &gateways[1], "objects_parts_offloaded_total", 1.0);
    wait_for("the gateway continues", || send(&gateways[1]) == 204);

    destroy(&mut cluster);
    for gateway in &mut gateways {
        gateway.kill9().unwrap();
    }
    let second = Cluster::builder("restore_two_second")
        .distinct()
        .start()
        .unwrap();
    run(&mut restore(&store, &second, "postgres", &[])).unwrap();
    let restored = numbers(&second, "SELECT n FROM far");
    assert_all("far", &acknowledged, &restored);
}
