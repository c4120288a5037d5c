//! A batch of series with their samples.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use lanes_promql::batches::SeriesBatch;
use lanes_promql::error::Error;
use lanes_promql::pipeline::BATCHES_MAX;
use lanes_promql::source::{Samples, SeriesSink};

use super::samples::SamplesColumns;
use super::series_cache::IdentifiedSeries;

/// The size up to which the memory of a batch is kept for the next query of the session, in bytes.
const KEPT_BYTES_MAX: usize = 6 << 20;

thread_local! {
    /// The memory of batches that no query uses.
    static KEPT: RefCell<Vec<SamplesColumns>> = const { RefCell::new(Vec::new()) };
}

/// Series of one selection, which follow each other, with their samples.
pub struct Batch {
    /// The series of the selection.
    series: Arc<[IdentifiedSeries]>,
    /// Those of the batch.
    range: Range<usize>,
    /// The samples of each of these.
    pub columns: SamplesColumns,
}

impl Default for Batch {
    /// An empty batch. It takes the memory of a batch that this session has dropped.
    fn default() -> Batch {
        let kept = KEPT.with_borrow_mut(Vec::pop);
        Batch {
            series: Arc::default(),
            range: 0..0,
            columns: kept.unwrap_or_default(),
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let columns = std::mem::take(&mut self.columns);
        if columns.allocated_bytes() > KEPT_BYTES_MAX {
            return;
        }
        // A batch may be dropped by another thread, whose list ends with it.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < BATCHES_MAX {
                kept.push(columns);
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
        let with_columns = series.iter().zip(self.columns.series());
        for ((_, labels), columns) in with_columns {
            if !columns.timestamps.is_empty() {
                let samples = Samples {
                    timestamps: &columns.timestamps,
                    values: &columns.values,
                };
                sink(labels, samples)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_few_small_batches_is_kept() {
        let batches: Vec<Batch> = (0..2 * BATCHES_MAX).map(|_| Batch::default()).collect();
        drop(batches);
        assert_eq!(KEPT.with_borrow(Vec::len), BATCHES_MAX);
        let mut large = Batch::default();
        assert_eq!(KEPT.with_borrow(Vec::len), BATCHES_MAX - 1);
        large.columns = SamplesColumns::with_capacity(KEPT_BYTES_MAX);
        drop(large);
        assert_eq!(KEPT.with_borrow(Vec::len), BATCHES_MAX - 1);
    }
}
