//! Sources that read series in batches.
//!
//! A batch owns the samples of some series, so it can be read by one thread and evaluated by
//! another. A batch that was evaluated is given back, and its memory is used for a later one.

use crate::error::Error;
use crate::source::{Selection, SeriesSink, Source};

/// Series with their samples.
pub trait SeriesBatch: Default + Send {
    /// Hands on each series of the batch.
    ///
    /// # Errors
    /// The error of the sink.
    fn each(&self, sink: SeriesSink<'_>) -> Result<(), Error>;
}

/// Takes a batch and returns one whose memory the next batch may use.
pub type BatchSink<'k, B> = &'k mut dyn FnMut(B) -> Result<B, Error>;

/// A store of series that reads them in batches.
pub trait BatchSource {
    /// The batches.
    type Batch: SeriesBatch;

    /// Reads all series that match a selection: each series in one batch, in the order and with
    /// the samples that [`Source::read`] requires.
    ///
    /// # Errors
    /// The error of the sink, or the source's own.
    fn read_batches(
        &self,
        selection: &Selection<'_>,
        each: BatchSink<'_, Self::Batch>,
    ) -> Result<(), Error>;

    /// [`Source::counters`].
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// A source of batches whose series are handed on by the thread that reads them.
#[derive(Debug)]
pub struct OneThread<'s, S>(pub &'s S);

impl<S: BatchSource> Source for OneThread<'_, S> {
    fn read(&self, selection: &Selection<'_>, each: SeriesSink<'_>) -> Result<(), Error> {
        self.0.read_batches(selection, &mut |batch: S::Batch| {
            batch.each(each)?;
            Ok(batch)
        })
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.0.counters()
    }
}
