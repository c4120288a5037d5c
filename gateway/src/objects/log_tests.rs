//! The log between sinks and the store: what is durable, what is released, and what happens when
//! another gateway takes over.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::log::{Entry, LogError, LogWriter, ObjectLog, Put, release};
use super::model::record::{self, Change, Head, RegistryRecord};
use super::model::{History, ObjectMetrics, Pauses};
use super::source::LocalRows;
use super::store::{Store, StoreError};
use super::test_store::FakeStore;
use super::test_support::{FakeSource, SCOPE, World};
use crate::metrics::Families;

const STORAGE: u64 = 0xaa;

fn put(first_row: u64, rows: u64) -> Put {
    put_on(1, 10, first_row, rows)
}

fn put_on(timeline: u32, wal_place: u64, first_row: u64, rows: u64) -> Put {
    let head = Head {
        target: 7,
        storage: STORAGE,
        runs: vec![(first_row, rows)],
        bytes: 5,
        logged_ms: 0,
        columns: Vec::new(),
        timeline,
        wal_place,
    };
    let name = record::head_name(SCOPE, STORAGE, first_row, timeline);
    let registry = RegistryRecord {
        epoch: "e".to_owned(),
        last_id: 3,
    };
    Put {
        changes: vec![
            Change::put(record::entry_name(&name), Entry::encode(&head, b"batch")),
            Change::document(name.clone(), &head),
            Change::document(record::registry_name(SCOPE), &registry),
        ],
        table: Some((SCOPE.to_owned(), 7, 1)),
        registry: Some((SCOPE.to_owned(), registry)),
        entry: Some((name, head)),
    }
}

async fn opened(log: &ObjectLog) {
    while log.check_open().is_err() {
        sleep(Duration::from_millis(1)).await;
    }
}

struct Gateway {
    writer: Arc<LogWriter>,
    store: Arc<FakeStore>,
    serving: tokio::task::JoinHandle<StoreError>,
}

impl Gateway {
    async fn start(world: &Arc<World>) -> Self {
        let writer = Arc::new(LogWriter::new(Arc::new(ObjectMetrics::new(
            &Families::new(),
        ))));
        let store = Arc::new(FakeStore::open(world));
        let serving = tokio::spawn({
            let (writer, store) = (Arc::clone(&writer), Arc::clone(&store));
            async move { writer.serve(store.as_ref(), Pauses::default()).await }
        });
        opened(writer.log()).await;
        Self {
            writer,
            store,
            serving,
        }
    }

    async fn release(&self, world: &Arc<World>) -> usize {
        let source = FakeSource::new(world, 1);
        world.state().claim = Some(1);
        let metrics = ObjectMetrics::new(&Families::new());
        let released = release::round(&source, self.store.as_ref(), self.writer.log(), &metrics);
        let released = released.await.unwrap();
        self.store.durable().await.unwrap();
        released
    }
}

fn local(ranges: &[(u64, u64)]) -> Vec<LocalRows> {
    let rows = |&(first_row, end_row): &(u64, u64)| LocalRows {
        target: 7,
        storage: STORAGE,
        first_row,
        end_row,
    };
    ranges.iter().map(rows).collect()
}

#[tokio::test(start_paused = true)]
async fn entries_are_refused_while_the_store_is_not_open() {
    let writer = LogWriter::new(Arc::new(ObjectMetrics::new(&Families::new())));
    assert_eq!(writer.log().put(put(0, 5)).await, Err(LogError::NotOpen));
}

#[tokio::test(start_paused = true)]
async fn an_entry_is_durable_when_acknowledged_and_released_when_its_rows_are_offloaded() {
    let world = Arc::new(World::default());
    let gateway = Gateway::start(&world).await;
    let log = gateway.writer.log();
    let (first, second) = tokio::join!(log.put(put(0, 5)), log.put(put(5, 5)));
    assert_eq!((first, second), (Ok(()), Ok(())));
    let name = record::entry_name(&record::head_name(SCOPE, STORAGE, 5, 1));
    let entry = world.state().records[&name].clone();
    assert_eq!(&*Entry::decode(&entry).unwrap().batch, b"batch");
    assert!(log.knows_table(SCOPE, 7, 1) && !log.knows_table(SCOPE, 7, 2));
    assert_eq!(
        (log.last_series(SCOPE, "e"), log.last_series(SCOPE, "f")),
        (3, 0)
    );

    world.state().local_rows = local(&[(0, 10)]);
    assert_eq!(gateway.release(&world).await, 0);
    world.state().local_rows = local(&[(5, 10)]);
    assert_eq!(gateway.release(&world).await, 1);
    let names: Vec<String> = world.state().records.keys().cloned().collect();
    assert!(names.contains(&name) && names.len() == 3, "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn the_next_gateway_continues_where_the_last_one_was_fenced() {
    let world = Arc::new(World::default());
    let first = Gateway::start(&world).await;
    first.writer.log().put(put(0, 5)).await.unwrap();
    let second = Gateway::start(&world).await;
    let refused = first.writer.log().put(put(5, 5)).await;
    assert!(matches!(refused, Err(LogError::Refused(_))), "{refused:?}");
    assert_eq!(first.serving.await.unwrap(), StoreError::Fenced);
    assert!(first.writer.log().check_open().is_err());
    // The second gateway has read what the first one put.
    assert_eq!(second.writer.log().last_series(SCOPE, "e"), 3);
    world.state().local_rows = local(&[(0, 0)]);
    assert_eq!(second.release(&world).await, 1);
    second.serving.abort();
}

#[tokio::test(start_paused = true)]
async fn entries_that_a_new_timeline_lacks_are_kept_though_their_row_numbers_are_reused() {
    let world = Arc::new(World::default());
    let gateway = Gateway::start(&world).await;
    let log = gateway.writer.log();
    log.put(put_on(1, 10, 0, 5)).await.unwrap();
    log.put(put_on(1, 20, 5, 5)).await.unwrap();
    // A standby that received only the first of them is promoted, and assigns the same row numbers
    // again.
    world.state().history = History {
        current: 2,
        left: vec![(1, 15)],
    };
    log.put(put_on(2, 30, 5, 5)).await.unwrap();
    let entries = |world: &World| {
        let names = world.state().records.keys().cloned().collect::<Vec<_>>();
        names
            .into_iter()
            .filter(|name| name.starts_with("log/"))
            .count()
    };
    assert_eq!(entries(&world), 3);
    // Nothing is only in the database, as if everything were in segments. The entries of the new
    // timeline are released, the entries that it lacks are kept.
    world.state().local_rows = local(&[(0, 0)]);
    assert_eq!(gateway.release(&world).await, 2);
    let lost = record::entry_name(&record::head_name(SCOPE, STORAGE, 5, 1));
    assert!(entries(&world) == 1 && world.state().records.contains_key(&lost));
    // They are kept even if the new timeline never had the table, and so is what is needed to read
    // them.
    world.state().local_rows = Vec::new();
    let table = record::table_name(SCOPE, 7);
    let definition = Change::put(table.clone(), "{}");
    gateway.store.write(vec![definition]).await.unwrap();
    gateway.store.durable().await.unwrap();
    assert_eq!(gateway.release(&world).await, 0);
    let source = FakeSource::new(&world, 1);
    let forgotten = release::forget_tables(&source, gateway.store.as_ref(), log).await;
    assert_eq!(forgotten, Ok(0));
    assert!(world.state().records.contains_key(&table));
}

#[tokio::test(start_paused = true)]
async fn records_of_a_table_are_deleted_with_it() {
    let world = Arc::new(World::default());
    let gateway = Gateway::start(&world).await;
    world.state().claim = Some(1);
    let json = r#"{"added": [{"place": 2, "type": "text", "value": "a"}]}"#;
    let changes = record::definition_changes(SCOPE, 7, json.to_owned());
    gateway.store.write(changes).await.unwrap();
    gateway.store.durable().await.unwrap();
    let source = FakeSource::new(&world, 1);
    let forget = async || {
        release::forget_tables(&source, gateway.store.as_ref(), gateway.writer.log()).await
    };
    world.state().local_rows = local(&[(0, 0)]);
    assert_eq!(forget().await, Ok(0), "the table exists");
    world.state().local_rows = Vec::new();
    assert_eq!(forget().await, Ok(2));
    gateway.store.durable().await.unwrap();
    assert!(world.state().records.is_empty());
}

#[tokio::test(start_paused = true)]
async fn definitions_of_two_tables_do_not_wait_for_each_other() {
    let writer = LogWriter::new(Arc::new(ObjectMetrics::new(&Families::new())));
    let log = writer.log();
    let first = log.defining(SCOPE, 7).await;
    let second = Duration::from_secs(1);
    assert!(timeout(second, log.defining(SCOPE, 8)).await.is_ok());
    assert!(timeout(second, log.defining(SCOPE, 7)).await.is_err());
    drop(first);
    assert!(timeout(second, log.defining(SCOPE, 7)).await.is_ok());
}
