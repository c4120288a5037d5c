//! Gateways that share a database and a store: which one offloads, and which one takes over.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::adopt::adopt;
use super::backlog::BacklogLimit;
use super::log::LogWriter;
use super::model::{History, ObjectMetrics, ObjectState, ObjectStatus, Pauses};
use super::owner::{OWNER, Owner};
use super::run::{ObjectSettings, run_until};
use super::store::location::Location;
use super::term::Terms;
use super::test_store::FakeOpener;
use super::test_support::{FakeSource, World, key};
use crate::metrics::Families;

struct Gateway {
    status: Arc<ObjectStatus>,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl Gateway {
    fn start(world: &Arc<World>, gateway: usize) -> Self {
        Self::of(world, FakeSource::new(world, gateway))
    }

    /// Creates a gateway of this database.
    fn of(world: &Arc<World>, source: FakeSource) -> Self {
        let status = Arc::new(ObjectStatus::default());
        let metrics = Arc::new(ObjectMetrics::new(&Families::new()));
        let terms = Terms {
            source: Arc::new(source),
            log: LogWriter::new(Arc::clone(&metrics)),
            opener: FakeOpener(Arc::clone(world)),
            settings: ObjectSettings {
                location: Location::Directory("unused".into()),
                interval: Duration::from_secs(1),
                recalls_at_once: 2,
                orphan_age: Duration::from_secs(60),
                backlog: BacklogLimit { bytes_max: 0 },
                cache_bytes_max: 0,
            },
            pauses: Pauses::default(),
            status: Arc::clone(&status),
            metrics,
        };
        let (stop, stopped) = watch::channel(false);
        let running = tokio::spawn(run_until(terms, stopped));
        Self {
            status,
            stop,
            running,
        }
    }

    fn state(&self) -> ObjectState {
        self.status.state()
    }

    async fn stop(self) {
        let _ = self.stop.send(true);
        self.running.await.unwrap();
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_gateway_waits_for_an_extension_with_the_functions() {
    let world = Arc::new(World::default());
    world.state().is_unsupported = true;
    let gateway = Gateway::start(&world, 1);
    sleep(seconds(100)).await;
    assert_eq!(gateway.state(), ObjectState::Unsupported);
    assert_eq!(world.state().opens, 0, "it fences nobody");
    world.state().is_unsupported = false;
    world.seal(1, 1);
    sleep(seconds(40)).await;
    assert_eq!(gateway.state(), ObjectState::Working);
    assert!(world.state().remote.contains(&key(1, 0)));
    gateway.stop().await;
    let state = world.state();
    assert_eq!((state.closes, state.claim), (1, None));
}

#[tokio::test(start_paused = true)]
async fn the_newest_gateway_takes_over_and_the_older_returns_when_it_has_ended() {
    let world = Arc::new(World::default());
    let older = Gateway::start(&world, 1);
    sleep(seconds(5)).await;
    assert_eq!(older.state(), ObjectState::Working);
    let newer = Gateway::start(&world, 2);
    sleep(seconds(5)).await;
    assert_eq!(
        (older.state(), newer.state()),
        (ObjectState::Fenced, ObjectState::Working)
    );
    sleep(seconds(1000)).await;
    assert_eq!(
        world.state().opens,
        2,
        "the older one does not fence the newer one"
    );
    world.seal(1, 2);
    sleep(seconds(5)).await;
    assert_eq!(world.state().remote.len(), 2);
    newer.stop().await;
    sleep(seconds(100)).await;
    assert_eq!(older.state(), ObjectState::Working);
    assert_eq!(world.state().opens, 3);
    world.seal(2, 2);
    sleep(seconds(5)).await;
    assert_eq!(world.state().remote.len(), 4);
    older.stop().await;
}

#[tokio::test(start_paused = true)]
async fn recall_does_not_wait_for_the_claim() {
    let world = Arc::new(World::default());
    // The session of a gateway that hangs.
    world.state().claim = Some(9);
    world.state().objects.insert(key(1, 0), "x".into());
    world.seal(2, 1);
    let gateway = Gateway::start(&world, 1);
    sleep(seconds(5)).await;
    assert_eq!(gateway.state(), ObjectState::Waiting);
    world.want(&key(1, 0));
    sleep(seconds(5)).await;
    assert_eq!(world.state().supplied.len(), 1);
    assert!(
        world.state().remote.is_empty(),
        "without the claim no rows are given up"
    );
    world.state().claim = None;
    sleep(seconds(5)).await;
    assert_eq!(world.state().remote.len(), 1);
    gateway.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_claim_is_acquired_again() {
    let world = Arc::new(World::default());
    let gateway = Gateway::start(&world, 1);
    sleep(seconds(5)).await;
    // The session is lost, as when PostgreSQL restarts.
    world.state().claim = None;
    world.seal(1, 1);
    sleep(seconds(10)).await;
    assert_eq!(gateway.state(), ObjectState::Working);
    assert_eq!(world.state().remote.len(), 1);
    assert_eq!(world.state().opens, 1);
    gateway.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_closes_is_opened_again() {
    let world = Arc::new(World::default());
    world.seal(1, 1);
    world.state().calls_left = Some(3);
    let gateway = Gateway::start(&world, 1);
    sleep(seconds(5)).await;
    world.state().calls_left = None;
    sleep(seconds(100)).await;
    assert_eq!(world.state().remote.len(), 1);
    assert_eq!(gateway.state(), ObjectState::Working);
    gateway.stop().await;
}

#[tokio::test(start_paused = true)]
async fn gateways_of_copies_and_standbys_only_read() {
    let world = Arc::new(World::default());
    world.seal(1, 1);
    let owner = Gateway::start(&world, 1);
    sleep(seconds(5)).await;
    assert!(world.state().remote.contains(&key(1, 0)));
    let copy = FakeSource {
        directory: "copy",
        ..FakeSource::new(&world, 2)
    };
    let standby = FakeSource {
        is_standby: true,
        ..FakeSource::new(&world, 3)
    };
    for other in [copy, standby] {
        let other = Gateway::of(&world, other);
        sleep(seconds(100)).await;
        let states = (owner.state(), other.state());
        assert_eq!(states, (ObjectState::Working, ObjectState::Foreign));
        other.stop().await;
    }
    assert_eq!(world.state().opens, 1);
    owner.stop().await;
    // Segments are still found.
    let copy = FakeSource {
        directory: "copy",
        ..FakeSource::new(&world, 2)
    };
    let adopting = FakeSource {
        directory: "copy",
        ..FakeSource::new(&world, 4)
    };
    let copy = Gateway::of(&world, copy);
    world.want(&key(1, 0));
    sleep(seconds(5)).await;
    assert_eq!(copy.state(), ObjectState::Foreign);
    assert_eq!(world.state().supplied.len(), 1);
    // Until the database becomes the owner.
    let opener = FakeOpener(Arc::clone(&world));
    adopt(&adopting, &opener).await.unwrap();
    sleep(seconds(30)).await;
    assert_eq!(copy.state(), ObjectState::Working);
    let former = Gateway::start(&world, 1);
    sleep(seconds(30)).await;
    assert_eq!(former.state(), ObjectState::Foreign);
    former.stop().await;
    copy.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_is_promoted_takes_over() {
    let world = Arc::new(World::default());
    let old = Gateway::start(&world, 1);
    sleep(seconds(5)).await;
    old.stop().await;
    let promoted = FakeSource {
        directory: "standby",
        ..FakeSource::new(&world, 2)
    };
    world.state().history = History {
        current: 2,
        left: vec![(1, 0)],
    };
    let promoted = Gateway::of(&world, promoted);
    sleep(seconds(5)).await;
    assert_eq!(promoted.state(), ObjectState::Working);
    promoted.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_leads_to_a_promoted_standby_ends_the_term() {
    let world = Arc::new(World::default());
    let gateway = Gateway::start(&world, 1);
    sleep(seconds(5)).await;
    assert_eq!(gateway.state(), ObjectState::Working);
    // The address now leads to the new primary.
    world.state().history = History {
        current: 2,
        left: vec![(1, 0)],
    };
    world.state().claim = None;
    sleep(seconds(30)).await;
    assert_eq!(
        (gateway.state(), world.state().opens),
        (ObjectState::Working, 2)
    );
    let owner = world.state().records.get(OWNER).cloned().unwrap();
    let owner: Owner = super::model::record::read(OWNER, &owner).unwrap();
    assert_eq!(owner.timeline, 2);
    gateway.stop().await;
}
