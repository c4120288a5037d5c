//! The series that matchers select, each with its samples.

use std::cell::Cell;
use std::fmt::Write;
use std::rc::Rc;

use lanes_labels::{IdSet, Matcher, Operator, Selector, label_set};
use lanes_promql::error::{Error, LimitError};
use lanes_promql::labels::{Labels, METRIC_NAME};
use lanes_promql::matcher::{self, MatchOperator};
use lanes_promql::source::{Samples, Selection, SeriesSink, Source};

use super::samples::{SAMPLE_BYTES, SamplesBatch};
use super::series_cache::{self, IdentifiedSeries};
use crate::labels::label_sets::each_label_set;
use crate::labels::source::{Index, sound};
use crate::pg::text;
use crate::vectors::counters::Counters;

/// The number of series whose label sets are held at a time.
const LABEL_SETS_AT_ONCE: usize = 16_384;
/// The number of series whose samples are read first; what they have decides on how many follow.
const SERIES_AT_FIRST: usize = 64;
/// The largest number of series whose samples are read at a time.
const SERIES_AT_ONCE: usize = 4096;
/// The number of samples that a batch of series should have.
const SAMPLES_WANTED: usize = 1 << 18;
/// The largest number of samples of a batch of several series.
const SAMPLES_AT_ONCE: usize = 4 << 20;

/// The series and samples of this database, as the calling query sees them.
pub struct DatabaseSource {
    /// The largest number of series that a selector may select.
    series_max: u64,
    /// The largest number of samples that are held of one series.
    samples_max: usize,
    /// What the scans of samples have done.
    counters: Cell<Counters>,
}

impl Source for DatabaseSource {
    fn read(&self, selection: &Selection<'_>, each: SeriesSink<'_>) -> Result<(), Error> {
        let matchers = selection.matchers.iter().map(index_matcher);
        let matchers = matchers.collect::<Result<Vec<Matcher>, Error>>()?;
        let selector = Selector { matchers };
        let mut index = Index::visible();
        let after = index.select_after(&selector);
        let mut reading = Reading {
            source: self,
            selection,
            batch: SamplesBatch::default(),
            batch_size: SERIES_AT_FIRST,
        };
        let Some(version) = index.version() else {
            self.check_series(after.len())?;
            return reading.read_ids(&after, each);
        };
        let mut matchers = selection.matchers.iter();
        let key = matchers.try_fold(version, |mut key, matcher| {
            write!(key, "\0{matcher}").is_ok().then_some(key)
        });
        let known = key.as_ref().and_then(|key| series_cache::get(key));
        if let Some(series) = known {
            self.check_series(series.len() as u64 + after.len())?;
            reading.read_samples(&series, each)?;
            return reading.read_ids(&after, each);
        }
        let covered = index.select_covered(&selector, &mut []);
        self.check_series(covered.len() + after.len())?;
        match key.filter(|_| covered.len() <= series_cache::ENTRY_SERIES_MAX) {
            Some(key) => {
                let series: Rc<[IdentifiedSeries]> = labels_of(&covered, selection).into();
                series_cache::put(key, &series);
                reading.read_samples(&series, each)?;
            }
            None => reading.read_ids(&covered, each)?,
        }
        reading.read_ids(&after, each)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let counters = self.counters.get();
        vec![
            ("segments", counters.segments),
            ("segments_skipped", counters.segments_skipped),
            ("segments_recalled", counters.segments_recalled),
            ("bytes_recalled", counters.bytes_recalled),
            ("vectors", counters.vectors - counters.vectors_skipped),
            ("vectors_skipped", counters.vectors_skipped),
        ]
    }
}

impl DatabaseSource {
    /// A source of at most so many series a selector, and samples a series.
    pub fn new(series_max: u64, samples_max: usize) -> DatabaseSource {
        DatabaseSource {
            series_max,
            samples_max,
            counters: Cell::default(),
        }
    }

    /// Refuses a selector that selects too many series.
    fn check_series(&self, series: u64) -> Result<(), Error> {
        match series > self.series_max {
            true => Err(LimitError::Series(self.series_max).into()),
            false => Ok(()),
        }
    }
}

/// The reading of one selection.
struct Reading<'r> {
    source: &'r DatabaseSource,
    selection: &'r Selection<'r>,
    batch: SamplesBatch,
    /// The number of series that are read next. It follows the number of samples that series have.
    batch_size: usize,
}

impl Reading<'_> {
    /// Reads series by their ids.
    fn read_ids(&mut self, ids: &IdSet, each: SeriesSink<'_>) -> Result<(), Error> {
        let mut ids = ids.iter();
        loop {
            let wanted: IdSet = ids.by_ref().take(LABEL_SETS_AT_ONCE).collect();
            if wanted.is_empty() {
                return Ok(());
            }
            self.read_samples(&labels_of(&wanted, self.selection), each)?;
        }
    }

    /// Reads the samples of series batch by batch.
    fn read_samples(
        &mut self,
        series: &[IdentifiedSeries],
        each: SeriesSink<'_>,
    ) -> Result<(), Error> {
        let (start, end) = (self.selection.start, self.selection.end);
        let mut rest = series;
        while !rest.is_empty() {
            let (wanted, after) = rest.split_at(self.batch_size.min(rest.len()));
            let samples_max = match wanted.len() {
                1 => self.source.samples_max,
                _ => SAMPLES_AT_ONCE.min(self.source.samples_max),
            };
            let ids = wanted.iter().map(|(id, _)| *id);
            let is_complete = self.batch.read(ids, start, end, samples_max);
            let counters = &self.source.counters;
            counters.set(counters.get().plus(&self.batch.counters()));
            if !is_complete {
                if wanted.len() == 1 {
                    return Err(LimitError::Memory(samples_max * SAMPLE_BYTES).into());
                }
                self.batch_size = wanted.len() / 2;
                continue;
            }
            self.batch_size = next_batch_size(wanted.len(), self.batch.samples());
            for ((_, labels), columns) in wanted.iter().zip(self.batch.series()) {
                if !columns.timestamps.is_empty() {
                    let samples = Samples {
                        timestamps: &columns.timestamps,
                        values: &columns.values,
                    };
                    each(labels, samples)?;
                }
            }
            rest = after;
        }
        Ok(())
    }
}

/// The number of series that should have the wanted number of samples.
fn next_batch_size(series: usize, samples: usize) -> usize {
    let size = series.saturating_mul(SAMPLES_WANTED) / samples.max(1);
    size.clamp(1, SERIES_AT_ONCE.min(4 * series.max(16)))
}

/// The labels of these series, in the order of their ids.
fn labels_of(wanted: &IdSet, selection: &Selection<'_>) -> Vec<IdentifiedSeries> {
    let mut series = Vec::with_capacity(wanted.len() as usize);
    each_label_set(
        wanted,
        metric_of(selection).as_deref(),
        |id, metric, labels| {
            let labels = sound(label_set::parse(labels));
            let labels = labels.iter().map(|(name, value)| (&**name, &**value));
            let labels = Labels::from_pairs(labels.chain([(METRIC_NAME, metric)]));
            // This is the rule of Prometheus; the index only narrows.
            if selection.matches(&labels) {
                series.push((id, labels));
            }
        },
    );
    series
}

/// The name of the metric, in the database's encoding, if a selection is of one metric.
fn metric_of(selection: &Selection<'_>) -> Option<Vec<u8>> {
    let mut matchers = selection.matchers.iter();
    let name = matchers.find(|matcher| {
        matcher.name() == METRIC_NAME && matcher.operator() == MatchOperator::Equal
    })?;
    Some(text::server_text(name.value().as_bytes()).into_owned())
}

/// The matcher of the label index for a matcher of a query.
fn index_matcher(matcher: &matcher::Matcher) -> Result<Matcher, Error> {
    let operator = match matcher.operator() {
        MatchOperator::Equal => Operator::Equal,
        MatchOperator::NotEqual => Operator::NotEqual,
        MatchOperator::Matches => Operator::Matches,
        MatchOperator::NotMatches => Operator::NotMatches,
    };
    let name = matcher.name().to_owned();
    let expression = matcher.rust_expression();
    let value = expression.unwrap_or_else(|| matcher.value().to_owned());
    Matcher::new(name, operator, value).map_err(Error::Execution)
}
