//! Offloading, collecting and recalling with a database and a store in memory, killed after each of
//! their calls.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::advance;

use super::definitions;
use super::log::{LogWriter, ObjectLog};
use super::model::{ObjectMetrics, record};
use super::offload::{Offload, Offloaded};
use super::orphans::Orphans;
use super::owner::Owner;
use super::recall::Recall;
use super::source::{Identity, Primary};
use super::store::{RoundError, Store};
use super::test_store::FakeStore;
use super::test_support::{DAMAGED, FakeSource, SCOPE, World, key};
use crate::metrics::Families;

const AGE: Duration = Duration::from_secs(60);

/// The state of a gateway from its start to its crash.
struct Life {
    offload: Offload<FakeSource, FakeStore>,
    orphans: Orphans<FakeSource, FakeStore>,
    log: Arc<ObjectLog>,
    families: Families,
}

/// A gateway that has just started and acquired the claim.
fn life(world: &Arc<World>, gateway: usize) -> Life {
    world.state().claim = Some(gateway);
    let source = Arc::new(FakeSource::new(world, gateway));
    let store = Arc::new(FakeStore::open(world));
    let families = Families::new();
    let metrics = Arc::new(ObjectMetrics::new(&families));
    let log = Arc::clone(LogWriter::new(Arc::clone(&metrics)).log());
    Life {
        offload: Offload::new(
            Arc::clone(&source),
            Arc::clone(&store),
            Arc::clone(&log),
            Owner::new(&Identity::default(), &Primary::default(), None),
            Arc::clone(&metrics),
        ),
        orphans: Orphans::new(source, store, metrics, AGE),
        log,
        families,
    }
}

impl Life {
    /// Does what a gateway does in some time.
    async fn live(&mut self) -> Result<Offloaded, RoundError> {
        let offloaded = self.offload.round().await?;
        self.orphans.round().await?;
        advance(AGE).await;
        self.orphans.round().await?;
        Ok(offloaded)
    }
}

/// Checks that the store contains exactly what remote parts name.
fn assert_clean(world: &World) {
    let state = world.state();
    let objects: BTreeSet<&String> = state.objects.keys().collect();
    assert_eq!(objects, state.remote.iter().collect());
    for (key, image) in &state.objects {
        let expected = key.rsplit('/').take(2).collect::<Vec<_>>();
        assert_eq!(image, format!("{}.{}", expected[1], expected[0]).as_bytes());
    }
}

#[tokio::test(start_paused = true)]
async fn whole_parts_become_remote() {
    let world = Arc::new(World::default());
    world.seal(1, 3);
    world.seal(2, 1);
    let mut life = life(&world, 1);
    let offloaded = life.offload.round().await.unwrap();
    assert_eq!(offloaded.parts, 2);
    assert_eq!(world.state().remote.len(), 4);
    assert!(world.state().local.is_empty());
    assert_clean(&world);
    let objects = &life.offload.metrics;
    assert_eq!(
        (objects.offload.puts.get(), objects.offload.parts.get()),
        (4, 2)
    );
    assert_eq!(
        (
            objects.offload.part_rows.get(),
            objects.offload.lag_rows.get()
        ),
        (40, 0)
    );
    assert_eq!(life.offload.round().await, Ok(Offloaded::default()));
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_call_loses_nothing_and_leaves_nothing() {
    let mut deaths = 0;
    for calls in 1.. {
        let world = Arc::new(World::default());
        world.seal(1, 2);
        world.seal(2, 2);
        world.seal(3, 1);
        world.state().merged.insert(2);
        world.state().calls_left = Some(calls);
        let died = life(&world, 1).live().await.is_err();
        // What was not durable yet is lost.
        world.state().calls_left = None;
        let state_of = |part: i64| {
            let state = world.state();
            let is_local = state.local.iter().any(|(due, _)| due.part == part);
            (is_local, state.remote.contains(&key(part, 0)))
        };
        for part in [1, 3] {
            let (is_local, is_remote) = state_of(part);
            assert!(
                is_local ^ is_remote,
                "part {part} is in one place, after {calls} calls"
            );
        }
        let mut next = life(&world, 2);
        next.live().await.unwrap();
        next.live().await.unwrap();
        for part in [1, 3] {
            assert_eq!(
                state_of(part),
                (false, true),
                "part {part} after {calls} calls"
            );
        }
        assert_clean(&world);
        if !died {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 15, "{deaths} calls were made");
}

#[tokio::test(start_paused = true)]
async fn a_part_that_is_gone_leaves_no_objects() {
    let world = Arc::new(World::default());
    world.seal(1, 2);
    world.state().merged.insert(1);
    let offloaded = life(&world, 1).offload.round().await.unwrap();
    assert_eq!(offloaded.gone, 1);
    assert!(world.state().objects.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_part_delays_no_other() {
    let world = Arc::new(World::default());
    world.seal(1, 2);
    world.seal(2, 2);
    world.state().unreadable.insert(1);
    let mut life = life(&world, 1);
    let offloaded = life.offload.round().await.unwrap();
    assert_eq!((offloaded.parts, offloaded.failed), (1, 1));
    advance(Duration::from_secs(5)).await;
    life.offload.round().await.unwrap();
    let objects = &life.offload.metrics;
    assert_eq!(objects.offload.lag_rows.get(), 20);
    let lag = |seconds| format!("lanes_gateway_objects_offload_lag_seconds {seconds}\n");
    let families = life.families.clone();
    assert!(families.text().contains(&lag(5)), "{}", families.text());
    // The lag grows even if nothing happens, as long as there is a gateway that offloads.
    advance(Duration::from_secs(7)).await;
    assert!(families.text().contains(&lag(12)), "{}", families.text());
    drop(life);
    assert!(families.text().contains(&lag(0)), "{}", families.text());
}

#[tokio::test(start_paused = true)]
async fn definitions_follow_their_tables() {
    let world = Arc::new(World::default());
    world.seal(1, 2);
    let mut life = life(&world, 1);
    life.offload.round().await.unwrap();
    let name = record::table_name(SCOPE, 7);
    let kept = || {
        let kept = world.state().records.get(&name).cloned();
        kept.map(|json| String::from_utf8(json.to_vec()).unwrap())
    };
    assert_eq!(kept().as_deref(), Some("{\"version\": 0}"));
    let (source, store) = (
        Arc::clone(&life.offload.source),
        Arc::clone(&life.offload.store),
    );
    let round = async || {
        let done = definitions::round(source.as_ref(), store.as_ref(), &life.log).await;
        store.durable().await.unwrap();
        done.unwrap()
    };
    assert_eq!(round().await, 0);
    // Nothing is offloaded, but the table changes.
    world.state().definition = 5;
    assert_eq!((round().await, round().await), (1, 0));
    assert_eq!(kept().as_deref(), Some("{\"version\": 5}"));
}

#[tokio::test(start_paused = true)]
async fn orphans_are_deleted_after_their_age() {
    let world = Arc::new(World::default());
    world.seal(1, 1);
    let mut life = life(&world, 1);
    life.offload.round().await.unwrap();
    let put = |key: &str| world.state().objects.insert(key.to_owned(), "x".into());
    put(&key(8, 0));
    put(&key(9, 0));
    put("1/6/9/1/0");
    put("2/5/9/1/0");
    assert_eq!(life.orphans.round().await, Ok(0), "seen once");
    advance(AGE / 2).await;
    assert_eq!(life.orphans.round().await, Ok(0), "too young");
    // The key is named again in the meantime, as after a restore.
    world.state().remote.insert(key(9, 0));
    advance(AGE / 2).await;
    assert_eq!(life.orphans.round().await, Ok(1));
    let left: Vec<String> = world.state().objects.keys().cloned().collect();
    let others = ["1/6/9/1/0".to_owned(), "2/5/9/1/0".to_owned()];
    assert_eq!(left[1..], [&[key(9, 0)], &others[..]].concat());
    assert_eq!(left[0], key(1, 0));
    assert_eq!(world.state().rewrites, 1, "one of five is enough");
    // A few deleted keys among many are not worth a rewrite.
    for n in 0..20 {
        put(&format!("2/5/9/2/{n}"));
    }
    for (round, rewrites) in [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 2)] {
        put(&key(10 + round, 0));
        life.orphans.round().await.unwrap();
        advance(AGE).await;
        assert_eq!(life.orphans.round().await, Ok(1));
        life.offload.store.durable().await.unwrap();
        assert_eq!(world.state().rewrites, rewrites, "{round}");
    }
}

#[tokio::test(start_paused = true)]
async fn recall_fetches_several_at_once_and_each_once() {
    let world = Arc::new(World::default());
    let source = Arc::new(FakeSource::new(&world, 1));
    let recall = Recall {
        source,
        store: Arc::new(FakeStore::open(&world)),
        metrics: Arc::new(ObjectMetrics::new(&Families::new())),
        at_once: 3,
    };
    for part in 0..10 {
        world
            .state()
            .objects
            .insert(key(part, 0), part.to_string().into());
    }
    let metrics = Arc::clone(&recall.metrics);
    let running = tokio::spawn(recall.run());
    tokio::time::sleep(Duration::from_millis(1)).await;
    world.state().lost.insert(key(4, 0));
    world.state().objects.insert(key(5, 0), DAMAGED.into());
    for part in 0..12 {
        world.want(&key(part, 0));
        world.want(&key(part, 0));
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let state = world.state();
    assert_eq!(state.supplied.len(), 8);
    assert!(
        state
            .supplied
            .iter()
            .all(|(key, image)| state.objects[key] == image)
    );
    assert_eq!(state.fetching_max, 3);
    assert_eq!(state.failed[&key(4, 0)], "away");
    assert_eq!(state.failed[&key(5, 0)], "damaged");
    assert!(state.failed[&key(11, 0)].contains("does not exist"));
    let recalls = |outcome: &str| metrics.recalls.with_label_values(&[outcome]).get();
    let outcomes = ["supplied", "missing", "failed", "refused"];
    assert_eq!(outcomes.map(recalls), [8, 2, 1, 1]);
    running.abort();
}
