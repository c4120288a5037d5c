//! A batch of series with their samples.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use lanes_promql::batches::SeriesBatch;
use lanes_promql::error::Error;
use lanes_promql::pipeline::BATCHES_MAX;
use lanes_promql::source::SeriesSink;

use super::samples::SamplesRead;
use super::series_cache::IdentifiedSeries;

/// The size up to which the memory of a batch is kept for the next query of the session, in bytes.
const KEPT_BYTES_MAX: usize = 6 << 20;

thread_local! {
    /// The memory of batches that no query uses.
    static KEPT: RefCell<Vec<SamplesRead>> = const { RefCell::new(Vec::new()) };
}

/// Series of one selection, which follow each other, with their samples.
pub struct Batch {
    /// The series of the selection.
    series: Arc<[IdentifiedSeries]>,
    /// The places of the batch's series among all of the selection.
    range: Range<usize>,
    /// The samples of each of these.
    pub samples: SamplesRead,
}

impl Default for Batch {
    /// An empty batch. It takes the memory of a batch that this session has dropped.
    fn default() -> Batch {
        let kept = KEPT.with_borrow_mut(Vec::pop);
        Batch {
            series: Arc::default(),
            range: 0..0,
            samples: kept.unwrap_or_default(),
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let samples = std::mem::take(&mut self.samples);
        if samples.columns().allocated_bytes() > KEPT_BYTES_MAX {
            return;
        }
        // A batch may be dropped by another thread, whose list ends with it.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < BATCHES_MAX {
                kept.push(samples);
            }
        });
    }
}

impl Batch {
    /// Sets the series whose samples the batch has.
    pub fn set_series(&mut self, series: &Arc<[IdentifiedSeries]>, range: Range<usize>) {
        self.series = Arc::clone(series);
        self.range = range;
    }
}

impl SeriesBatch for Batch {
    fn each(&self, sink: SeriesSink<'_>) -> Result<(), Error> {
        let series = &self.series[self.range.clone()];
        for ((_, labels), samples) in series.iter().zip(self.samples.columns().series()) {
            if !samples.timestamps.is_empty() {
                sink(labels, samples)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promql::columns::SeriesColumns;

    #[test]
    fn memory_of_a_few_small_batches_is_kept() {
        let batches: Vec<Batch> = (0..2 * BATCHES_MAX).map(|_| Batch::default()).collect();
        drop(batches);
        assert_eq!(KEPT.with_borrow(Vec::len), BATCHES_MAX);
        let mut large = Batch::default();
        assert_eq!(KEPT.with_borrow(Vec::len), BATCHES_MAX - 1);
        large.samples = SamplesRead::with_columns(SeriesColumns::with_capacity(KEPT_BYTES_MAX));
        drop(large);
        assert_eq!(KEPT.with_borrow(Vec::len), BATCHES_MAX - 1);
    }
}
