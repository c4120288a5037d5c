//! The series that matchers select, each with its samples.

use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::sync::Arc;

use lanes_labels::{IdSet, Matcher, Operator, Selector, label_set};
use lanes_promql::batches::{BatchSink, BatchSource};
use lanes_promql::error::{Error, LimitError};
use lanes_promql::labels::{Labels, METRIC_NAME};
use lanes_promql::matcher::{self, MatchOperator};
use lanes_promql::source::Selection;

use super::batch::Batch;
use super::columns::SAMPLE_BYTES;
use super::samples::ROW_BYTES;
use super::series_cache::{self, IdentifiedSeries};
use crate::labels::label_sets::each_label_set;
use crate::labels::selection_cache::ENTRY_SERIES_MAX;
use crate::labels::source::{Index, sound};
use crate::pg::text;
use crate::vectors::counters::Counters;

/// The number of series whose label sets are held at a time.
const LABEL_SETS_AT_ONCE: usize = 16_384;
/// The least and the largest number of series whose samples are read first; what they have decides on how many follow.
const SERIES_AT_FIRST: std::ops::RangeInclusive<usize> = 64..=1024;
/// The largest number of series whose samples are read at a time.
const SERIES_AT_ONCE: usize = 4096;
/// The number of samples that a batch of series should have.
const SAMPLES_WANTED: usize = 1 << 18;
/// The largest number of samples of a batch of several series.
const SAMPLES_AT_ONCE: usize = 1 << 20;

/// The time between two samples of a series that is assumed where samples are estimated, in milliseconds.
const SAMPLE_INTERVAL: u64 = 15_000;

/// The series and samples of this database, as the calling query sees them.
pub struct DatabaseSource {
    /// The largest number of series that a selector may select.
    series_max: u64,
    /// The largest number of samples that are held of one series.
    samples_max: usize,
    /// What the scans of samples have done.
    counters: Cell<Counters>,
    /// Series that were selected for an estimate and have not been read yet.
    selected: RefCell<Vec<Selected>>,
}

/// The series that matchers select.
struct Selected {
    /// The matchers as text.
    matchers: String,
    covered: Covered,
    /// The ids of the series that no run of the label index covers.
    after: IdSet,
}

/// The selected series that runs of the label index cover.
enum Covered {
    Labelled(Arc<[IdentifiedSeries]>),
    Ids(IdSet),
}

impl Selected {
    /// The number of series.
    fn len(&self) -> u64 {
        let covered = match &self.covered {
            Covered::Labelled(series) => series.len() as u64,
            Covered::Ids(ids) => ids.len(),
        };
        covered + self.after.len()
    }
}

impl BatchSource for DatabaseSource {
    type Batch = Batch;

    fn read_batches(
        &self,
        selection: &Selection<'_>,
        each: BatchSink<'_, Batch>,
    ) -> Result<(), Error> {
        let matchers = text_of(selection);
        let place = self
            .selected
            .borrow()
            .iter()
            .position(|known| known.matchers == matchers);
        let selected = match place {
            Some(place) => self.selected.borrow_mut().swap_remove(place),
            None => self.select(selection, matchers)?,
        };
        let mut reading = Reading {
            source: self,
            selection,
            batch_size: first_batch_size(selection),
            each,
        };
        let batch = match &selected.covered {
            Covered::Labelled(series) => reading.read_series(series, Batch::default())?,
            Covered::Ids(ids) => reading.read_ids(ids, Batch::default())?,
        };
        reading.read_ids(&selected.after, batch)?;
        Ok(())
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
            ("bytes", counters.rows * ROW_BYTES),
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
            selected: RefCell::default(),
        }
    }

    /// About how many samples a selection has. The series that are selected for this are kept until they are read.
    ///
    /// # Errors
    /// If the selection selects too many series.
    pub fn estimate(&self, selection: &Selection<'_>) -> Result<u64, Error> {
        let selected = self.select(selection, text_of(selection))?;
        let estimate = selected.len().saturating_mul(samples_assumed(selection));
        self.selected.borrow_mut().push(selected);
        Ok(estimate)
    }

    /// Selects the series of a selection, whose matchers are also given as text.
    fn select(&self, selection: &Selection<'_>, text: String) -> Result<Selected, Error> {
        let matchers = selection.matchers.iter().map(index_matcher);
        let matchers = matchers.collect::<Result<Vec<Matcher>, Error>>()?;
        let selector = Selector { matchers };
        let mut index = Index::visible();
        let mut selected = Selected {
            after: index.select_after(&selector),
            covered: Covered::Ids(IdSet::new()),
            matchers: text,
        };
        let key = index.version().map(|version| version + &selected.matchers);
        if let Some(series) = key.as_ref().and_then(|key| series_cache::get(key)) {
            selected.covered = Covered::Labelled(series);
        } else if let Some(key) = key {
            let covered = index.select_covered(&selector, &mut []);
            selected.covered = match covered.len() <= ENTRY_SERIES_MAX.min(self.series_max) {
                true => {
                    let series: Arc<[IdentifiedSeries]> = labels_of(&covered, selection).into();
                    series_cache::put(key, &series);
                    Covered::Labelled(series)
                }
                false => Covered::Ids(covered),
            };
        }
        match selected.len() > self.series_max {
            true => Err(LimitError::Series(self.series_max).into()),
            false => Ok(selected),
        }
    }
}

/// The matchers of a selection as text. Different matchers have different texts.
fn text_of(selection: &Selection<'_>) -> String {
    let mut text = String::new();
    for matcher in selection.matchers {
        // Writing to a string cannot fail.
        let _ = write!(text, "\0{matcher}");
    }
    text
}

/// The reading of one selection.
struct Reading<'r> {
    source: &'r DatabaseSource,
    selection: &'r Selection<'r>,
    /// The number of series that are read next. It follows the number of samples that series have.
    batch_size: usize,
    each: BatchSink<'r, Batch>,
}

impl Reading<'_> {
    /// Reads series by their ids, and returns a batch for the next ones.
    fn read_ids(&mut self, ids: &IdSet, mut batch: Batch) -> Result<Batch, Error> {
        let mut ids = ids.iter();
        loop {
            let wanted: IdSet = ids.by_ref().take(LABEL_SETS_AT_ONCE).collect();
            if wanted.is_empty() {
                return Ok(batch);
            }
            let series = labels_of(&wanted, self.selection).into();
            batch = self.read_series(&series, batch)?;
        }
    }

    /// Reads the samples of series batch by batch, and returns a batch for the next ones.
    fn read_series(
        &mut self,
        series: &Arc<[IdentifiedSeries]>,
        mut batch: Batch,
    ) -> Result<Batch, Error> {
        let (start, end) = (self.selection.start, self.selection.end);
        let mut from = 0;
        while from < series.len() {
            let to = series.len().min(from + self.batch_size);
            let samples_max = match to - from {
                1 => self.source.samples_max,
                _ => SAMPLES_AT_ONCE.min(self.source.samples_max),
            };
            let ids = series[from..to].iter().map(|(id, _)| *id);
            let is_complete = batch.samples.read(ids, start, end, samples_max);
            let counters = &self.source.counters;
            counters.set(counters.get().plus(&batch.samples.counters()));
            if !is_complete {
                if to - from == 1 {
                    return Err(LimitError::Memory(samples_max * SAMPLE_BYTES).into());
                }
                self.batch_size = (to - from) / 2;
                continue;
            }
            self.batch_size = next_batch_size(to - from, batch.samples.columns().samples());
            batch.set_series(series, from..to);
            batch = (self.each)(batch)?;
            from = to;
        }
        Ok(batch)
    }
}

/// The number of samples of a series of a selection that is assumed where samples are estimated.
fn samples_assumed(selection: &Selection<'_>) -> u64 {
    1 + (selection.end - selection.start).max(0) as u64 / SAMPLE_INTERVAL
}

/// The number of series whose samples are read first. They should have a quarter of the wanted number of samples, since
/// they may have more than is assumed.
fn first_batch_size(selection: &Selection<'_>) -> usize {
    let size = (SAMPLES_WANTED as u64 / 4 / samples_assumed(selection)) as usize;
    size.clamp(*SERIES_AT_FIRST.start(), *SERIES_AT_FIRST.end())
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
    if let Some(texts) = matcher.alternatives() {
        let texts = texts.to_vec();
        return Ok(match operator {
            Operator::NotMatches => Matcher::none_of(name, texts),
            _ => Matcher::one_of(name, texts),
        });
    }
    let expression = matcher.rust_expression();
    let value = expression.unwrap_or_else(|| matcher.value().to_owned());
    Matcher::new(name, operator, value).map_err(Error::Execution)
}
