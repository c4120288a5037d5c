//! SlateDB on stores that fail, and two writers on one directory.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use slatedb::DbReaderMode;
use slatedb::admin::AdminBuilder;
use slatedb::config::{GarbageCollectorDirectoryOptions, GarbageCollectorOptions};

use super::location::Location;
use super::reader::StoreReader;
use super::slate::{SlateOpener, SlateStore};
use super::slate_settings::settings;
use super::{Images, Opener, Store, StoreError};
use crate::metrics::Families;
use crate::objects::model::ObjectMetrics;
use crate::objects::model::record::Change;

/// A store that fails on demand.
#[derive(Debug, Default)]
struct Faults {
    inner: InMemory,
    /// Writes that fail without effect.
    puts_refused: AtomicUsize,
    /// Writes that take effect but fail.
    puts_unanswered: AtomicUsize,
    is_away: AtomicBool,
    is_slow: AtomicBool,
}

fn broken() -> Error {
    Error::Generic {
        store: "faults",
        source: "broken".into(),
    }
}

/// Takes one from the count, if there is one.
fn take(count: &AtomicUsize) -> bool {
    count
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
            left.checked_sub(1)
        })
        .is_ok()
}

impl Faults {
    async fn check(&self) -> Result<()> {
        if self.is_slow.load(Ordering::Acquire) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if self.is_away.load(Ordering::Acquire) {
            return Err(broken());
        }
        Ok(())
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "faults")
    }
}

#[async_trait]
impl ObjectStore for Faults {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.check().await?;
        if take(&self.puts_refused) {
            return Err(broken());
        }
        let result = self.inner.put_opts(location, payload, options).await;
        if take(&self.puts_unanswered) {
            return Err(broken());
        }
        result
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.check().await?;
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.check().await?;
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.check().await?;
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.check().await?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.check().await?;
        self.inner.copy_opts(from, to, options).await
    }
}

async fn open(objects: &Arc<Faults>, metrics: &Arc<ObjectMetrics>) -> SlateStore {
    let objects: Arc<dyn ObjectStore> = Arc::clone(objects) as _;
    SlateOpener::on(objects, Arc::clone(metrics))
        .open()
        .await
        .unwrap()
}

/// The image is larger than one of SlateDB's blocks, and different from all others.
fn image(number: usize) -> Bytes {
    (0..10_000 + number)
        .map(|place| (place * number) as u8)
        .collect()
}

async fn put_all(store: &SlateStore, numbers: Range<usize>) {
    for number in numbers {
        store
            .put(&format!("1/5/9/{number}/0"), image(number))
            .await
            .unwrap();
    }
    store.durable().await.unwrap();
}

async fn keys(store: &SlateStore) -> Vec<String> {
    let mut keys = Vec::new();
    store
        .keys(&mut |key: &str| keys.push(key.to_owned()))
        .await
        .unwrap();
    keys
}

#[tokio::test]
async fn durable_values_are_there_for_the_next_writer() {
    let families = Families::new();
    let objects = Arc::new(Faults::default());
    let metrics = Arc::new(ObjectMetrics::new(&families));
    let store = open(&objects, &metrics).await;
    assert_eq!(keys(&store).await, [""; 0]);
    store.durable().await.unwrap();
    put_all(&store, 0..5).await;
    store
        .delete(&["1/5/9/3/0".to_owned(), "1/5/9/7/0".to_owned()])
        .await
        .unwrap();
    // The store is not closed, as after a crash.
    drop(store);
    let store = open(&objects, &metrics).await;
    let expected: Vec<String> = [0, 1, 2, 4]
        .map(|number| format!("1/5/9/{number}/0"))
        .into();
    assert_eq!(keys(&store).await, expected);
    assert_eq!(store.get("1/5/9/4/0").await, Ok(Some(image(4))));
    assert_eq!(store.get("1/5/9/3/0").await, Ok(None));
    store.close().await;
    assert!(matches!(store.closed().await, StoreError::Closed(_)));
    assert!(
        families
            .text()
            .contains("lanes_gateway_objects_requests_total{operation=\"put\"}")
    );
}

#[tokio::test]
async fn records_are_kept_beside_images_and_read_without_taking_the_store() {
    let (objects, metrics) = (
        Arc::new(Faults::default()),
        Arc::new(ObjectMetrics::new(&Families::new())),
    );
    let store = open(&objects, &metrics).await;
    put_all(&store, 0..2).await;
    let record = |name: &str| Change::put(name.to_owned(), name.as_bytes().to_vec());
    let names = [
        "head/1/5/00/1",
        "head/1/5/00/2",
        "head/1/50/00/1",
        "log/1/5/00/1",
    ];
    store.write(names.map(record).into()).await.unwrap();
    store
        .write(vec![Change::delete(names[1].to_owned())])
        .await
        .unwrap();
    store.durable().await.unwrap();
    let mut found = Vec::new();
    store
        .records("head/1/5/", &mut |name, value| {
            found.push((name.to_owned(), value));
        })
        .await
        .unwrap();
    assert_eq!(found, [(names[0].to_owned(), Bytes::from(names[0]))]);
    assert_eq!(keys(&store).await.len(), 2);

    let mode = DbReaderMode::ManagedCheckpoint;
    let reader = StoreReader::of(Path::from("segments"), Arc::clone(&objects) as _, mode)
        .await
        .unwrap();
    assert_eq!(reader.records("head/1/5/").await.unwrap(), found);
    assert_eq!(reader.record(names[3]).await.unwrap(), names[3]);
    assert_eq!(reader.image("1/5/9/1/0").await.unwrap(), image(1));
    let error = reader.image("1/5/9/7/0").await.unwrap_err();
    assert!(error.contains("1/5/9/7/0 is not in"), "{error}");
    reader.close().await;
    // The store still belongs to the only writer.
    put_all(&store, 2..3).await;
}

#[tokio::test]
async fn writes_that_fail_or_are_not_answered_are_repeated() {
    let (objects, metrics) = (
        Arc::new(Faults::default()),
        Arc::new(ObjectMetrics::new(&Families::new())),
    );
    let store = open(&objects, &metrics).await;
    objects.is_slow.store(true, Ordering::Release);
    for faults in [&objects.puts_refused, &objects.puts_unanswered] {
        faults.store(2, Ordering::Release);
        put_all(&store, 0..3).await;
        assert_eq!(faults.load(Ordering::Acquire), 0);
    }
    assert_eq!(keys(&store).await.len(), 3);
    assert_eq!(metrics.store.errors.with_label_values(&["put"]).get(), 4);
    store.close().await;
}

#[tokio::test]
async fn nothing_is_durable_while_the_store_is_unavailable() {
    let (objects, metrics) = (
        Arc::new(Faults::default()),
        Arc::new(ObjectMetrics::new(&Families::new())),
    );
    let store = open(&objects, &metrics).await;
    objects.is_away.store(true, Ordering::Release);
    store.put("1/5/9/1/0", image(1)).await.unwrap();
    let errors = metrics.store.errors.with_label_values(&["put"]);
    let durable = store.durable();
    let mut durable = std::pin::pin!(durable);
    tokio::select! {
        _ = &mut durable => panic!("durable although nothing can be written"),
        () = async {
            while errors.get() < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        } => {}
    }
    objects.is_away.store(false, Ordering::Release);
    durable.await.unwrap();
    assert_eq!(store.get("1/5/9/1/0").await, Ok(Some(image(1))));
    store.close().await;
}

#[tokio::test]
async fn the_newer_of_two_writers_on_one_directory_writes() {
    let name = format!("lanes-objects-{}", uuid::Uuid::new_v4());
    let directory = std::env::temp_dir().join(name);
    let metrics = Arc::new(ObjectMetrics::new(&Families::new()));
    let opener = || {
        let location = Location::Directory(directory.clone());
        SlateOpener::new(location, 1 << 20, Arc::clone(&metrics))
    };
    let older = opener().open().await.unwrap();
    put_all(&older, 0..2).await;
    let newer = opener().open().await.unwrap();
    assert_eq!(
        older.closed().await,
        StoreError::Fenced,
        "it notices by itself"
    );
    assert_eq!(
        older.put("1/5/9/8/0", image(8)).await,
        Err(StoreError::Fenced)
    );
    assert_eq!(
        older.delete(&["1/5/9/0/0".to_owned()]).await,
        Err(StoreError::Fenced)
    );
    older.close().await;
    put_all(&newer, 2..3).await;
    assert_eq!(keys(&newer).await.len(), 3);
    newer.close().await;
    // A write that is in flight when another writer opens the store fails too.
    let older = opener().open().await.unwrap();
    older.put("1/5/9/9/0", image(9)).await.unwrap();
    let newer = opener().open().await.unwrap();
    let is_durable = older.durable().await;
    let is_there = newer.get("1/5/9/9/0").await.unwrap().is_some();
    assert_eq!(is_durable == Ok(()), is_there, "{is_durable:?}");
    newer.close().await;
    std::fs::remove_dir_all(directory).unwrap();
}

/// The bytes of all tables.
async fn table_bytes(objects: &Faults) -> u64 {
    let folder = Path::from("segments/compacted");
    let tables = objects.inner.list(Some(&folder));
    let sizes = tables.map(|table| table.unwrap().size);
    sizes.fold(0, async |sum, size| sum + size).await
}

#[tokio::test]
async fn bytes_of_deleted_values_leave_the_bucket() {
    let (objects, metrics) = (
        Arc::new(Faults::default()),
        Arc::new(ObjectMetrics::new(&Families::new())),
    );
    let store = open(&objects, &metrics).await;
    let bytes = 100_000;
    let key = |n: usize| format!("1/5/9/{n}/0");
    for n in 0..20 {
        let image = Bytes::from(vec![n as u8; bytes]);
        store.put(&key(n), image).await.unwrap();
    }
    // Closing writes a table of the deletions.
    store.close().await;
    assert!(table_bytes(&objects).await > 20 * bytes as u64);
    let store = open(&objects, &metrics).await;
    let deleted: Vec<String> = (2..20).map(key).collect();
    store.delete(&deleted).await.unwrap();
    assert!(store.reclaim().await.unwrap());
    // Does what the gateway does every five minutes, without the wait of 20 minutes for readers of
    // the old files.
    let now = GarbageCollectorDirectoryOptions {
        interval: None,
        min_age: Duration::ZERO,
        dry_run: false,
    };
    let garbage = GarbageCollectorOptions {
        manifest_options: Some(now),
        compacted_options: Some(now),
        ..settings(false).garbage_collector_options.unwrap()
    };
    let admin = AdminBuilder::new("segments", Arc::clone(&objects) as _).build();
    let deadline = crate::clock::now() + Duration::from_secs(60);
    while table_bytes(&objects).await > 3 * bytes as u64 {
        assert!(crate::clock::now() < deadline, "the bytes are not freed");
        for read in admin.list_checkpoints(None).await.unwrap() {
            admin.delete_checkpoint(read.id).await.unwrap();
        }
        admin.run_gc_once(garbage.clone()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for n in 0..20 {
        let image = store.get(&key(n)).await.unwrap();
        assert_eq!(image.is_some(), n < 2, "{n}");
    }
    store.close().await;
}
