//! A store belongs to one database. Gateways of standbys and copies read it, and take it over only
//! under certain conditions.

use lanes_support::cluster::{Cluster, Stop};
use lanes_support::gateway::Gateway;
use lanes_support::process::{run, run_to_output};
use lanes_support::provision::DATABASE;
use lanes_support::store::Store;

use super::world::World;
use super::{start_with, wait_for, wait_for_state};

const ALL: &str = "SELECT concat_ws(' ', count(*), sum(v), count(DISTINCT v)) FROM far";

/// Starts a gateway of another cluster, which may not write yet. The copy's rows are recalled from
/// the store nevertheless.
fn start_beside(world: &World, cluster: &Cluster, name: &str) -> Gateway {
    let gateway = start_with(cluster, &world.passwords, name, &world.store, &[]);
    wait_for_state(&gateway, "foreign");
    let expected = world.cluster.scalar(DATABASE, ALL).unwrap();
    assert_eq!(cluster.scalar(DATABASE, ALL).unwrap(), expected);
    gateway
}

fn offload(world: &mut World) {
    world.grow();
    wait_for("everything is offloaded", || world.rows_in_file() == 0);
}

fn log_of(gateway: &Gateway) -> String {
    std::fs::read_to_string(gateway.log()).unwrap()
}

#[test]
fn a_store_belongs_to_one_database() {
    let name = "objects_owners";
    let mut world = World::new(name, Store::directory(name));
    let mut gateway = world.gateway();
    offload(&mut world);
    let mut standby = world.cluster.standby("objects_owners_standby").unwrap();
    let mut copy = world.cluster.backup("objects_owners_copy").unwrap();
    copy.start().unwrap();
    let mut of_standby = start_beside(&world, &standby, "standby");
    let mut of_copy = start_beside(&world, &copy, "copy");
    let told = log_of(&of_copy);
    assert!(
        told.contains("this database is a copy of that one"),
        "{told}"
    );
    assert!(told.contains("lanes-gateway --adopt"), "{told}");
    // The standby also finds what is offloaded later.
    offload(&mut world);
    world.check("beside others");
    standby.wait_replayed(&world.cluster).unwrap();
    assert_eq!(
        standby.scalar(DATABASE, ALL).unwrap(),
        world.cluster.scalar(DATABASE, ALL).unwrap()
    );
    wait_for_state(&gateway, "working");
    // The copy is restarted on its own timeline, without what was offloaded since.
    of_copy.stop().unwrap();
    copy.stop(Stop::Fast).unwrap();
    std::fs::write(copy.data().join("standby.signal"), "").unwrap();
    copy.start().unwrap();
    copy.promote().unwrap();
    of_copy.start_again().unwrap();
    let lacks = "this database lacks what that one has offloaded";
    wait_for("the copy is refused", || log_of(&of_copy).contains(lacks));
    wait_for_state(&gateway, "working");
    // The standby takes the primary's place, and the primary may not return.
    gateway.stop().unwrap();
    let mut former = std::mem::replace(&mut world.cluster, standby);
    former.stop(Stop::Fast).unwrap();
    world.cluster.promote().unwrap();
    wait_for_state(&of_standby, "working");
    offload(&mut world);
    world.check("after the failover");
    former.start().unwrap();
    gateway.start_again().unwrap();
    wait_for_state(&gateway, "foreign");
    wait_for_state(&of_standby, "working");
    // An explicit option overrides that.
    let told = run(gateway.command().unwrap().arg("--adopt")).unwrap();
    assert!(told.contains("belongs to database"), "{told}");
    wait_for_state(&gateway, "working");
    wait_for_state(&of_standby, "fenced");
    wait_for("the status names the owner", || {
        log_of(&of_standby).contains("fenced by gateway ")
    });
    of_standby.stop().unwrap();
    // A standby cannot be the owner.
    let mut standby = former.standby("objects_owners_next").unwrap();
    let of_next = start_with(&standby, &world.passwords, "next", &world.store, &[]);
    let refused = run_to_output(of_next.command().unwrap().arg("--adopt")).unwrap();
    let reason = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "{reason}");
    assert!(reason.contains("standby"), "{reason}");
    standby.stop(Stop::Fast).unwrap();
}
