//! The series that matchers select, each with its samples.

use std::cell::Cell;

use lanes_labels::{IdSet, Matcher, Operator, Selector, label_set};
use lanes_promql::error::{Error, LimitError};
use lanes_promql::labels::{Labels, METRIC_NAME};
use lanes_promql::matcher::{self, MatchOperator};
use lanes_promql::source::{Samples, Selection, SeriesSink, Source};

use super::samples::SamplesBatch;
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
const SAMPLES_WANTED: usize = 1 << 20;
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

/// A series: its id and its labels.
type IdentifiedSeries = (u32, Labels);

impl Source for DatabaseSource {
    fn read(&self, selection: &Selection<'_>, each: SeriesSink<'_>) -> Result<(), Error> {
        let matchers = selection.matchers.iter().map(index_matcher);
        let matchers = matchers.collect::<Result<Vec<Matcher>, Error>>()?;
        let ids = Index::visible().select(&Selector { matchers });
        if ids.len() > self.series_max {
            return Err(LimitError::Series(self.series_max).into());
        }
        let mut ids = ids.into_iter();
        let mut batch = SamplesBatch::default();
        let mut batch_size = SERIES_AT_FIRST;
        loop {
            let wanted: IdSet = ids.by_ref().take(LABEL_SETS_AT_ONCE).collect();
            if wanted.is_empty() {
                return Ok(());
            }
            let series = labels_of(&wanted, selection);
            self.read_samples(&series, selection, &mut batch, &mut batch_size, each)?;
        }
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

    /// Reads the samples of series batch by batch. The size of the batches follows the number of samples they have.
    fn read_samples(
        &self,
        series: &[IdentifiedSeries],
        selection: &Selection<'_>,
        batch: &mut SamplesBatch,
        batch_size: &mut usize,
        each: SeriesSink<'_>,
    ) -> Result<(), Error> {
        let mut rest = series;
        while !rest.is_empty() {
            let (wanted, after) = rest.split_at((*batch_size).min(rest.len()));
            let samples_max = match wanted.len() {
                1 => self.samples_max,
                _ => SAMPLES_AT_ONCE.min(self.samples_max),
            };
            let ids = wanted.iter().map(|(id, _)| *id);
            let is_complete = batch.read(ids, selection.start, selection.end, samples_max);
            self.counters
                .set(self.counters.get().plus(&batch.counters()));
            if !is_complete {
                if wanted.len() == 1 {
                    return Err(LimitError::Memory(self.samples_max * 16).into());
                }
                *batch_size = wanted.len() / 2;
                continue;
            }
            *batch_size = next_batch_size(wanted.len(), batch.samples());
            for ((_, labels), columns) in wanted.iter().zip(batch.series()) {
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
            // The index may compare regular expressions by other rules.
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
    let (name, value) = (matcher.name().to_owned(), matcher.value().to_owned());
    Matcher::new(name, operator, value).map_err(Error::Execution)
}
