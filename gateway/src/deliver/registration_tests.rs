use lanes_labels::{HashBlock, SeriesHasher};
use parking_lot::Mutex;

use super::*;
use crate::series::label_set::canonical_bytes;
use crate::series::{LabelLimits, LabelOrder};

/// A registry like the database's, and what happens to it before the next registrations.
#[derive(Default)]
struct Database {
    runs: Mutex<Vec<StoredRun>>,
    hashes: Mutex<Vec<StoredHashes>>,
    next_id: Mutex<SeriesId>,
    registered_first: Mutex<Vec<Vec<(&'static str, &'static str)>>>,
    calls: Mutex<Vec<&'static str>>,
    sizes: Mutex<Vec<(usize, usize)>>,
}

impl Database {
    fn add(&self, metric: &str, labels: &[&str]) -> SeriesId {
        let mut next_id = self.next_id.lock();
        let first_id = *next_id + 1;
        *next_id += labels.len() as SeriesId;
        self.runs.lock().push(StoredRun {
            first_id,
            metric: metric.to_owned(),
            labels: labels.iter().map(|labels| (*labels).to_owned()).collect(),
        });
        first_id
    }

    fn series(&self) -> Vec<(SeriesId, String, String)> {
        let mut series = Vec::new();
        for run in &*self.runs.lock() {
            for (id, labels) in (run.first_id..).zip(&run.labels) {
                series.push((id, run.metric.clone(), labels.clone()));
            }
        }
        series
    }
}

impl Database {
    /// Stores the hashes of registered series, as the sealer does.
    fn hash(&self, ids: std::ops::RangeInclusive<SeriesId>, seed: u64) {
        let mut block = HashBlock::new(seed);
        for (id, metric, labels) in self.series() {
            if ids.contains(&id) {
                block.push(id as u32, SeriesHasher::new(&metric, seed).hash(&labels));
            }
        }
        self.hashes.lock().push(StoredHashes {
            last_id: *ids.end(),
            seed,
            block: block.write(),
        });
    }

    /// Registers series, one in each run.
    fn fill(&self, series: SeriesId) {
        for number in 1..=series {
            self.add("up", &[&format!("{{\"job\":\"{number}\"}}")]);
        }
    }

    /// Returns how often a call was made since the last time.
    fn asked(&self, what: &str) -> usize {
        let calls = std::mem::take(&mut *self.calls.lock());
        calls.iter().filter(|call| **call == what).count()
    }
}

impl RegistryCalls for Database {
    async fn last_id(&self) -> Result<SeriesId, CallError> {
        Ok(*self.next_id.lock())
    }

    async fn hashes_beyond(&self, id: SeriesId) -> Result<Vec<StoredHashes>, CallError> {
        self.calls.lock().push("hashes");
        let hashes = self.hashes.lock();
        let beyond = hashes.iter().filter(|hashes| hashes.last_id > id);
        Ok(beyond.take(2).cloned().collect())
    }

    async fn runs_of(&self, ids: &[SeriesId]) -> Result<Vec<StoredRun>, CallError> {
        self.calls.lock().push("runs of");
        let runs = self.runs.lock();
        let has = |run: &&StoredRun| {
            let end = run.first_id + run.labels.len() as SeriesId;
            ids.iter().any(|id| (run.first_id..end).contains(id))
        };
        Ok(runs.iter().filter(has).take(2).cloned().collect())
    }

    async fn runs_beyond(&self, id: SeriesId) -> Result<Vec<StoredRun>, CallError> {
        self.calls.lock().push("runs");
        let runs = self.runs.lock();
        let beyond = runs.iter().filter(|run| run.first_id > id);
        Ok(beyond.take(2).cloned().collect())
    }

    async fn series_of(
        &self,
        ids: &[SeriesId],
    ) -> Result<Vec<(SeriesId, String, String)>, CallError> {
        self.calls.lock().push("series");
        let mut series = self.series();
        series.retain(|(id, ..)| ids.contains(id));
        Ok(series)
    }

    async fn find_beyond(
        &self,
        id: SeriesId,
        wanted: &[&LabelSet],
    ) -> Result<Vec<(usize, SeriesId)>, CallError> {
        self.calls.lock().push("find");
        let series = self.series();
        let mut found = Vec::new();
        for (place, set) in wanted.iter().enumerate() {
            let there = series.iter().find(|(other, metric, labels)| {
                *other > id && *metric == set.metric && *labels == set.labels_json
            });
            found.extend(there.map(|(id, ..)| (place, *id)));
        }
        Ok(found)
    }

    async fn register_runs(
        &self,
        known_to: SeriesId,
        runs: &[SeriesRun<'_>],
    ) -> Result<Option<SeriesId>, CallError> {
        if let Some(others) = self.registered_first.lock().pop() {
            others.iter().for_each(|(metric, labels)| {
                self.add(metric, &[labels]);
            });
        }
        self.calls.lock().push("register");
        if *self.next_id.lock() > known_to {
            return Ok(None);
        }
        let series = runs.iter().map(|run| run.labels.len()).sum();
        self.sizes.lock().push((runs.len(), series));
        let ids: Vec<SeriesId> = runs
            .iter()
            .map(|run| self.add(run.metric, &run.labels))
            .collect();
        Ok(ids.first().copied())
    }
}

fn set(metric: &str, job: &str) -> LabelSet {
    let limits = LabelLimits {
        labels_max: 4,
        name_bytes_max: 100,
        value_bytes_max: 100,
        order: LabelOrder::Sort,
    };
    LabelSet::parse(
        &canonical_bytes(&[("__name__", metric), ("job", job)]),
        &limits,
    )
    .unwrap()
}

struct Gateway {
    index: SeriesIndex,
    cache: SeriesCache,
}

impl Gateway {
    fn new(index_bytes_max: usize) -> Self {
        Self {
            index: SeriesIndex::new(index_bytes_max, 9),
            cache: SeriesCache::new(1 << 20, 9),
        }
    }

    async fn ids(&mut self, database: &Database, sets: &[LabelSet]) -> Vec<SeriesId> {
        let sets: Vec<&LabelSet> = sets.iter().collect();
        ids(
            database,
            &mut self.index,
            0,
            &sets,
            &self.cache,
            Unregistered::Register,
        )
        .await
        .unwrap()
    }
}

#[tokio::test]
async fn new_series_are_numbered_by_metric_and_found_again() {
    let (database, mut gateway) = (Database::default(), Gateway::new(1 << 20));
    let sets = [set("b", "1"), set("a", "1"), set("b", "2")];
    let ids = gateway.ids(&database, &sets).await;
    assert!(ids == [2, 1, 3] || ids == [1, 3, 2], "{ids:?}");
    assert_eq!(*database.calls.lock(), ["register"]);
    // For example, after they were evicted from the cache.
    let again = [set("b", "2"), set("c", "1"), set("a", "1")];
    assert_eq!(gateway.ids(&database, &again).await, [ids[2], 4, ids[1]]);
    assert_eq!(*database.calls.lock(), ["register", "runs of", "register"]);
    assert_eq!(database.series().len(), 4);
}

#[tokio::test]
async fn a_gateway_reads_the_registry_when_it_starts() {
    let database = Database::default();
    for number in 0..9 {
        database.add("up", &[&format!("{{\"job\":\"{number}\"}}")]);
    }
    let mut gateway = Gateway::new(1 << 20);
    assert_eq!(gateway.ids(&database, &[set("up", "new")]).await, [10]);
    assert_eq!(
        gateway
            .ids(&database, &[set("up", "8"), set("up", "0")])
            .await,
        [9, 1]
    );
    for (id, job) in [(1, "0"), (9, "8")] {
        assert_eq!(gateway.cache.find(0, &set("up", job).bytes), Some(id));
    }
    assert_eq!(gateway.cache.entries(), 9);
}

/// Returns the ids that a gateway that has just started assigns to the series `up` with these
/// numbers and to a new series.
async fn ids_from_the_start(database: &Database, index_bytes_max: usize) -> Vec<SeriesId> {
    let numbers = ["1", "2", "999", "1000", "1500", "1501", "2000", "new"];
    let sets = numbers.map(|number| set("up", number));
    Gateway::new(index_bytes_max).ids(database, &sets).await
}

#[tokio::test]
async fn a_gateway_reads_hashes_first_and_then_label_sets() {
    let database = Database::default();
    database.fill(2000);
    database.hash(1..=999, 5);
    database.hash(1000..=1990, 5);
    let ids = ids_from_the_start(&database, 1 << 20).await;
    assert_eq!(ids, [1, 2, 999, 1000, 1500, 1501, 2000, 2001]);
    // Ten series remain, two in each call. The hashes end with an empty answer.
    let calls = std::mem::take(&mut *database.calls.lock());
    let expected = ["hashes"; 2].into_iter().chain(["runs"; 5]);
    assert_eq!(calls[..7], expected.collect::<Vec<_>>());
    assert_eq!(calls[7..], ["runs of", "series", "register"]);
}

#[tokio::test]
async fn no_label_set_is_read_if_all_series_are_hashed() {
    let database = Database::default();
    database.fill(2000);
    // A block grows after it was read and before the next ones are read.
    database.hash(1..=700, 5);
    database.hash(1..=1100, 5);
    database.hash(1101..=2000, 5);
    let ids = ids_from_the_start(&database, 1 << 20).await;
    assert_eq!(ids, [1, 2, 999, 1000, 1500, 1501, 2000, 2001]);
    assert_eq!(database.asked("runs"), 0);
}

/// A change of the stored hashes.
type Change = dyn Fn(&mut Vec<StoredHashes>);

#[tokio::test]
async fn unusable_hashes_are_ignored() {
    let damage = |hashes: &mut Vec<StoredHashes>| hashes[1].block[40] ^= 1;
    let version = |hashes: &mut Vec<StoredHashes>| hashes[1].block[0] = 9;
    let seed = |hashes: &mut Vec<StoredHashes>| hashes[1].seed = 7;
    let emptied = |hashes: &mut Vec<StoredHashes>| hashes.clear();
    let cases: [(&Change, usize); 4] = [
        (&damage, 500),
        (&version, 500),
        (&seed, 500),
        (&emptied, 1000),
    ];
    for (case, runs) in cases {
        let database = Database::default();
        database.fill(2000);
        database.hash(1..=1000, 5);
        database.hash(1001..=2000, 5);
        case(&mut database.hashes.lock());
        let ids = ids_from_the_start(&database, 1 << 20).await;
        assert_eq!(ids, [1, 2, 999, 1000, 1500, 1501, 2000, 2001]);
        assert_eq!(database.asked("runs"), runs);
    }
    // The hashes are created again with another seed between two reads.
    let database = Database::default();
    database.fill(2000);
    database.hash(1..=1000, 5);
    database.hash(1001..=2000, 6);
    let ids = ids_from_the_start(&database, 1 << 20).await;
    assert_eq!(ids, [1, 2, 999, 1000, 1500, 1501, 2000, 2001]);
    assert_eq!(database.asked("runs"), 500);
}

#[tokio::test]
async fn series_without_room_in_the_index_are_looked_up_in_the_database() {
    let database = Database::default();
    database.fill(2000);
    database.hash(1..=1000, 5);
    database.hash(1001..=2000, 5);
    let ids = ids_from_the_start(&database, 30 << 10).await;
    assert_eq!(ids, [1, 2, 999, 1000, 1500, 1501, 2000, 2001]);
    assert_eq!(database.asked("find"), 1);
}

#[tokio::test]
async fn series_registered_together_are_cached_together() {
    let database = Database::default();
    let labels: Vec<String> = (0..1500)
        .map(|number| format!("{{\"job\":\"{number}\"}}"))
        .collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    for run in labels.chunks(100) {
        database.add("up", run);
    }
    database.hash(1..=1500, 5);
    let mut gateway = Gateway::new(1 << 20);
    assert_eq!(gateway.ids(&database, &[set("up", "250")]).await, [251]);
    assert_eq!(gateway.cache.entries(), 100);
    assert_eq!(gateway.cache.find(0, &set("up", "299").bytes), Some(300));
    // A cache without room is filled only with what requests contain.
    gateway.cache = SeriesCache::new(0, 9);
    assert_eq!(gateway.ids(&database, &[set("up", "350")]).await, [351]);
    assert_eq!(database.asked("series"), 1);
}

#[tokio::test]
async fn series_that_others_register_meanwhile_are_adopted() {
    let (database, mut gateway) = (Database::default(), Gateway::new(1 << 20));
    *database.registered_first.lock() = vec![
        vec![("up", r#"{"job":"2"}"#)],
        vec![("up", r#"{"job":"x"}"#), ("down", r#"{"job":"1"}"#)],
    ];
    let sets = [set("up", "1"), set("up", "2"), set("down", "1")];
    assert_eq!(gateway.ids(&database, &sets).await, [4, 3, 2]);
    assert_eq!(database.series().len(), 4);
    assert_eq!(*database.sizes.lock(), [(1, 1)]);
}

#[tokio::test]
async fn others_that_register_continuously_end_the_attempt() {
    let (database, mut gateway) = (Database::default(), Gateway::new(1 << 20));
    *database.registered_first.lock() = vec![vec![("up", "{}")]; ATTEMPTS_MAX];
    let sets = [set("up", "1")];
    let wanted: Vec<&LabelSet> = sets.iter().collect();
    let answer = ids(
        &database,
        &mut gateway.index,
        0,
        &wanted,
        &gateway.cache,
        Unregistered::Register,
    )
    .await;
    assert!(matches!(
        answer.unwrap_err().error,
        SinkError::Unavailable(_)
    ));
    assert_eq!(
        gateway.ids(&database, &sets).await,
        [ATTEMPTS_MAX as SeriesId + 1]
    );
}

#[tokio::test]
async fn an_index_without_room_queries_the_database() {
    let (database, mut gateway) = (Database::default(), Gateway::new(0));
    for number in 1..=50 {
        let sets = [set("up", &number.to_string()), set("up", "1")];
        let distinct = if number == 1 { &sets[..1] } else { &sets };
        let ids = gateway.ids(&database, distinct).await;
        assert_eq!(ids[0], number);
        assert_eq!(*ids.last().unwrap(), 1);
    }
    assert_eq!(gateway.index.indexed_to(), 0);
    assert!(database.calls.lock().contains(&"find"));
    assert_eq!(database.series().len(), 50);
}

#[tokio::test]
async fn a_gap_in_the_ids_is_not_the_end() {
    let (database, mut gateway) = (Database::default(), Gateway::new(1 << 20));
    *database.next_id.lock() = 100;
    assert_eq!(gateway.ids(&database, &[set("up", "1")]).await, [101]);
    database.runs.lock().clear();
    assert_eq!(
        gateway.ids(&database, &[set("up", "1")]).await,
        [102],
        "a series that was deleted is new again"
    );
}

#[tokio::test]
async fn runs_and_calls_are_bounded() {
    let (database, mut gateway) = (Database::default(), Gateway::new(1 << 20));
    let mut sets: Vec<LabelSet> = (0..RUN_SERIES_MAX + 1)
        .map(|number| set("up", &number.to_string()))
        .collect();
    sets.extend((0..CALL_METRICS_MAX).map(|number| set(&format!("m{number}"), "1")));
    let ids = gateway.ids(&database, &sets).await;
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    let expected: Vec<SeriesId> = (1..=sets.len() as SeriesId).collect();
    assert_eq!(sorted, expected);
    // There is one metric too many for one call, and metric "up" has two runs.
    let sizes = database.sizes.lock().clone();
    let [(first, _), (second, _)] = sizes[..] else {
        panic!("{sizes:?}");
    };
    assert!((CALL_METRICS_MAX..=CALL_METRICS_MAX + 1).contains(&first));
    assert_eq!(first + second, CALL_METRICS_MAX + 2);
    assert_eq!(gateway.ids(&database, &sets).await, ids);
}

#[tokio::test]
async fn ids_are_dropped_if_the_last_id_decreases() {
    let (database, mut gateway) = (Database::default(), Gateway::new(1 << 20));
    gateway
        .ids(&database, &[set("a", "1"), set("a", "2")])
        .await;
    let before = gateway.cache.generation();
    database.runs.lock().clear();
    *database.next_id.lock() = 0;
    let (one, cache) = (set("b", "1"), &gateway.cache);
    let error = ids(
        &database,
        &mut gateway.index,
        before,
        &[&one],
        cache,
        Unregistered::Register,
    )
    .await;
    assert_eq!(error.unwrap_err().error, SinkError::OtherRegistry);
    let now = gateway.cache.generation();
    assert_ne!(now, before);
    let ids = ids(
        &database,
        &mut gateway.index,
        now,
        &[&one],
        &gateway.cache,
        Unregistered::Register,
    )
    .await;
    assert_eq!(ids.unwrap(), [1]);
}

#[test]
fn runs_are_bounded_in_bytes() {
    let mut sets: Vec<LabelSet> = (0..10).map(|nth| set("a", &nth.to_string())).collect();
    for set in &mut sets {
        set.labels_json = "x".repeat(300 << 10);
    }
    sets[9].labels_json = "x".repeat(2 * RUN_BYTES_MAX);
    let label_sets: Vec<&LabelSet> = sets.iter().collect();
    let places: Vec<usize> = (0..10).collect();
    let (runs, taken) = runs_of_call(&label_sets, &places);
    let lengths: Vec<usize> = runs.iter().map(|run| run.labels.len()).collect();
    assert_eq!((lengths, taken), (vec![3, 3, 3, 1], 10));
}
