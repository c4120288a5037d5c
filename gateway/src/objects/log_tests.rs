//! The log between sinks and the store: what is durable, what is released, and what becomes of it when another gateway takes over.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::log::{Entry, LogError, LogWriter, ObjectLog, Put, release};
use super::record::{self, Change, Head, RegistryRecord};
use super::source::LocalRows;
use super::store::{Store, StoreError};
use super::term::Pauses;
use super::test_support::{FakeSource, FakeStore, SCOPE, World};
use crate::observe::Metrics;

const STORAGE: u64 = 0xaa;

fn put(first_row: u64, rows: u64) -> Put {
    let head = Head {
        target: 7,
        storage: STORAGE,
        runs: vec![(first_row, rows)],
        bytes: 5,
        logged_ms: 0,
        columns: Vec::new(),
    };
    let name = record::head_name(SCOPE, STORAGE, first_row);
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
        let writer = Arc::new(LogWriter::new(Arc::new(Metrics::new())));
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
        let source = FakeSource {
            world: Arc::clone(world),
            gateway: 1,
        };
        world.state().claim = Some(1);
        let metrics = Metrics::new();
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
async fn nothing_is_taken_while_the_store_is_not_open() {
    let writer = LogWriter::new(Arc::new(Metrics::new()));
    assert_eq!(writer.log().put(put(0, 5)).await, Err(LogError::NotOpen));
}

#[tokio::test(start_paused = true)]
async fn an_entry_is_durable_when_it_is_answered_and_goes_when_its_rows_are_away() {
    let world = Arc::new(World::default());
    let gateway = Gateway::start(&world).await;
    let log = gateway.writer.log();
    let (first, second) = tokio::join!(log.put(put(0, 5)), log.put(put(5, 5)));
    assert_eq!((first, second), (Ok(()), Ok(())));
    let name = record::entry_name(&record::head_name(SCOPE, STORAGE, 5));
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
async fn the_next_gateway_goes_on_where_the_last_one_was_fenced() {
    let world = Arc::new(World::default());
    let first = Gateway::start(&world).await;
    first.writer.log().put(put(0, 5)).await.unwrap();
    let second = Gateway::start(&world).await;
    let refused = first.writer.log().put(put(5, 5)).await;
    assert!(matches!(refused, Err(LogError::Refused(_))), "{refused:?}");
    assert_eq!(first.serving.await.unwrap(), StoreError::Fenced);
    assert!(first.writer.log().check_open().is_err());
    // What it knows it has read.
    assert_eq!(second.writer.log().last_series(SCOPE, "e"), 3);
    world.state().local_rows = local(&[(0, 0)]);
    assert_eq!(second.release(&world).await, 1);
    second.serving.abort();
}
