//! Where series come from.

use crate::error::Error;
use crate::labels::Labels;
use crate::matcher::Matcher;

/// Which samples are read.
#[derive(Debug, Clone, Copy)]
pub struct Selection<'s> {
    /// What the labels of a series have to match.
    pub matchers: &'s [Matcher],
    /// The first time that counts, in milliseconds.
    pub start: i64,
    /// The last time that counts.
    pub end: i64,
}

impl Selection<'_> {
    /// Whether a series matches.
    pub fn matches(&self, labels: &Labels) -> bool {
        let mut matchers = self.matchers.iter();
        matchers.all(|matcher| matcher.matches(labels.get(matcher.name())))
    }
}

/// Samples of one series: two columns of one length, with strictly increasing times.
#[derive(Debug, Clone, Copy)]
pub struct Samples<'s> {
    /// Milliseconds since 1970.
    pub timestamps: &'s [i64],
    /// The values; stale markers included, all bits kept.
    pub values: &'s [f64],
}

/// Takes the series that a source reads, one by one.
pub type SeriesSink<'k> = &'k mut dyn FnMut(&Labels, Samples<'_>) -> Result<(), Error>;

/// A store of series.
pub trait Source {
    /// Reads all series that match a selection and hands each of them on once, always in one
    /// order. The samples have to include those of the selection's time and may include others.
    /// The columns are borrowed for the call only, so a source may decode all series into one
    /// buffer.
    ///
    /// # Errors
    /// The error of the sink, or the source's own.
    fn read(&self, selection: &Selection<'_>, each: SeriesSink<'_>) -> Result<(), Error>;

    /// What the source has done since it was made, by name, for explanations. The names and their
    /// order are always the same.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
