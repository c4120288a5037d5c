use parking_lot::Mutex;

use super::*;
use crate::receive::label_set::canonical_bytes;
use crate::receive::{LabelLimits, LabelOrder};

/// A registry as the database keeps it, and what is to happen to it before the next registrations.
#[derive(Default)]
struct Database {
    runs: Mutex<Vec<StoredRun>>,
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

impl RegistryCalls for Database {
    async fn last_id(&self) -> Result<SeriesId, CallError> {
        Ok(*self.next_id.lock())
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
        register(database, &mut self.index, 0, &sets, &self.cache)
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
    // Pushed out of the cache, say.
    let again = [set("b", "2"), set("c", "1"), set("a", "1")];
    assert_eq!(gateway.ids(&database, &again).await, [ids[2], 4, ids[1]]);
    assert_eq!(*database.calls.lock(), ["register", "series", "register"]);
    assert_eq!(database.series().len(), 4);
}

#[tokio::test]
async fn a_gateway_learns_what_is_there_when_it_begins() {
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

#[tokio::test]
async fn what_others_register_meanwhile_is_taken_over() {
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
async fn others_who_never_pause_end_the_attempt() {
    let (database, mut gateway) = (Database::default(), Gateway::new(1 << 20));
    *database.registered_first.lock() = vec![vec![("up", "{}")]; ATTEMPTS_MAX];
    let sets = [set("up", "1")];
    let wanted: Vec<&LabelSet> = sets.iter().collect();
    let answer = register(&database, &mut gateway.index, 0, &wanted, &gateway.cache).await;
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
async fn an_index_without_room_asks_the_database() {
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
async fn a_hole_in_the_ids_is_no_end() {
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
    // One metric too many for one call; metric "up" has two runs.
    let sizes = database.sizes.lock().clone();
    let [(first, _), (second, _)] = sizes[..] else {
        panic!("{sizes:?}");
    };
    assert!((CALL_METRICS_MAX..=CALL_METRICS_MAX + 1).contains(&first));
    assert_eq!(first + second, CALL_METRICS_MAX + 2);
    assert_eq!(gateway.ids(&database, &sets).await, ids);
}

#[tokio::test]
async fn ids_that_went_back_are_forgotten() {
    let (database, mut gateway) = (Database::default(), Gateway::new(1 << 20));
    gateway
        .ids(&database, &[set("a", "1"), set("a", "2")])
        .await;
    let before = gateway.cache.generation();
    database.runs.lock().clear();
    *database.next_id.lock() = 0;
    let (one, cache) = (set("b", "1"), &gateway.cache);
    let error = register(&database, &mut gateway.index, before, &[&one], cache).await;
    assert_eq!(error.unwrap_err().error, SinkError::OtherRegistry);
    let now = gateway.cache.generation();
    assert_ne!(now, before);
    let ids = register(&database, &mut gateway.index, now, &[&one], &gateway.cache).await;
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
