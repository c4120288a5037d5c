//! Evaluation on a second thread: the answers of one thread, errors of either side, and an end
//! whenever one of the two sides leaves.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use lanes_promql::batches::{BatchSink, BatchSource, OneThread, SeriesBatch};
use lanes_promql::error::LimitError;
use lanes_promql::memory::{MemorySeries, MemorySource};
use lanes_promql::pipeline::{self, BATCHES_MAX};
use lanes_promql::prepared::Prepared;
use lanes_promql::source::{Samples, Selection, SeriesSink, Source};
use lanes_promql::{Answer, Engine, Error, Labels, Limits, Options, QueryTime};

const TIME: QueryTime = QueryTime::Steps {
    start: 600_000,
    end: 1_200_000,
    step: 30_000,
};

/// Counts the batches that exist.
struct Existing(&'static AtomicUsize);

impl Default for Existing {
    fn default() -> Existing {
        static BATCHES: AtomicUsize = AtomicUsize::new(0);
        BATCHES.fetch_add(1, Ordering::SeqCst);
        Existing(&BATCHES)
    }
}

impl Drop for Existing {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct Batch {
    series: Vec<MemorySeries>,
    existing: Existing,
}

impl SeriesBatch for Batch {
    fn each(&self, sink: SeriesSink<'_>) -> Result<(), Error> {
        let mut series = self.series.iter();
        series.try_for_each(|series| {
            let samples = Samples {
                timestamps: &series.timestamps,
                values: &series.values,
            };
            sink(&series.labels, samples)
        })
    }
}

/// A source of batches of three series.
#[derive(Default)]
struct Batches {
    memory: MemorySource,
    /// The number of batches after which the source fails.
    fails_after: Option<usize>,
    /// The number of batches after which the source panics.
    panics_after: Option<usize>,
    read: Cell<usize>,
    most_existing: Cell<usize>,
}

impl BatchSource for Batches {
    type Batch = Batch;

    fn read_batches(
        &self,
        selection: &Selection<'_>,
        each: BatchSink<'_, Batch>,
    ) -> Result<(), Error> {
        let mut found = Vec::new();
        self.memory.read(selection, &mut |labels, samples| {
            found.push(MemorySeries {
                labels: labels.clone(),
                timestamps: samples.timestamps.to_vec(),
                values: samples.values.to_vec(),
            });
            Ok(())
        })?;
        let mut batch = Batch::default();
        for series in found.chunks(3) {
            if self.fails_after == Some(self.read.get()) {
                return Err(Error::Source("the disk is gone".to_owned()));
            }
            assert_ne!(self.panics_after, Some(self.read.get()), "the disk is gone");
            self.read.set(self.read.get() + 1);
            batch.series = series.to_vec();
            let existing = batch.existing.0.load(Ordering::SeqCst);
            self.most_existing
                .set(self.most_existing.get().max(existing));
            batch = each(batch)?;
        }
        Ok(())
    }
}

/// A source of so many series with a sample every ten seconds.
fn batches(series: usize) -> Batches {
    let series = (0..series).map(|number| {
        let number_text = number.to_string();
        let pairs = [
            ("__name__", "m"),
            ("n", &number_text),
            ("odd", ["0", "1"][number % 2]),
        ];
        MemorySeries {
            labels: Labels::from_pairs(pairs),
            timestamps: (0..120).map(|sample| sample * 10_000).collect(),
            values: (0..120)
                .map(|sample| f64::from(sample * (number as i32 + 1)))
                .collect(),
        }
    });
    Batches {
        memory: MemorySource {
            series: series.collect(),
        },
        ..Batches::default()
    }
}

fn on_one_thread(source: &Batches, query: &str) -> Result<Answer, Error> {
    Engine::new(&OneThread(source), Options::default()).query(query, TIME)
}

fn on_two_threads(
    source: &Batches,
    query: &str,
    options: Options,
    interrupt: &dyn Fn() -> Result<(), Error>,
) -> Result<Answer, Error> {
    let prepared = Prepared::new(query, TIME, &options)?;
    let is_started = Cell::new(false);
    let answer = pipeline::evaluate(source, &prepared, options, interrupt, || {
        is_started.set(true)
    });
    assert!(is_started.get());
    answer
}

fn never() -> Result<(), Error> {
    Ok(())
}

#[test]
fn two_threads_answer_as_one_does() {
    for query in [
        "m",
        "sum by (odd) (rate(m[5m]))",
        "m{n=~\"1.*\"} / on (n) max_over_time(m[3m])",
        "topk(2, m) or m{n=\"7\"}",
        "max_over_time(sum(m)[2m:30s])",
        "m{n=\"none\"}",
        "vector(1)",
        "sum(m) + sum(m)",
        "label_replace(m, \"n\", \"\", \"n\", \".*\")",
    ] {
        let source = batches(40);
        let expected = on_one_thread(&source, query);
        let found = on_two_threads(&source, query, Options::default(), &never);
        assert_eq!(found, expected, "{query}");
    }
}

#[test]
fn a_few_batches_are_used_again() {
    let source = batches(300);
    on_two_threads(&source, "sum(m)", Options::default(), &never).expect("a sum");
    assert_eq!(source.read.get(), 100);
    // The other tests of this process have batches too, so the bound is theirs as well.
    assert!(source.most_existing.get() <= 8 * BATCHES_MAX);
}

#[test]
fn an_error_of_the_source_is_the_error_of_the_query() {
    let source = Batches {
        fails_after: Some(5),
        ..batches(40)
    };
    let answer = on_two_threads(&source, "sum(m)", Options::default(), &never);
    assert_eq!(answer, Err(Error::Source("the disk is gone".to_owned())));
}

#[test]
fn an_error_of_the_evaluation_ends_the_reading() {
    let limits = Limits {
        series_max: 10,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let source = batches(3000);
    let answer = on_two_threads(&source, "m", options, &never);
    assert_eq!(answer, Err(LimitError::Series(10).into()));
    assert!(source.read.get() < 1000, "it read on");
}

#[test]
fn an_interrupt_ends_both_threads() {
    let source = batches(3000);
    let calls = Cell::new(0);
    let interrupt = || {
        calls.set(calls.get() + 1);
        match calls.get() {
            20 => Err(Error::Timeout),
            _ => Ok(()),
        }
    };
    let answer = on_two_threads(&source, "sum(m)", Options::default(), &interrupt);
    assert_eq!(answer, Err(Error::Timeout));
    assert!(source.read.get() <= 20);
}

#[test]
fn an_interrupt_while_nothing_is_read_ends_both_threads() {
    let interrupt = || Err(Error::Timeout);
    // It reads nothing, and would take minutes.
    let query = "max_over_time(max_over_time(vector(1)[900000s:1s])[90000s:1s])";
    let answer = on_two_threads(&batches(0), query, Options::default(), &interrupt);
    assert_eq!(answer, Err(Error::Timeout));
}

#[test]
fn a_panic_of_the_source_passes_on() {
    let source = Batches {
        panics_after: Some(5),
        ..batches(40)
    };
    let caught = catch_unwind(AssertUnwindSafe(|| {
        on_two_threads(&source, "sum(m)", Options::default(), &never)
    }));
    let panic = caught.expect_err("the panic");
    let text = panic.downcast_ref::<String>().expect("a text");
    assert!(text.contains("the disk is gone"), "{text}");
}
