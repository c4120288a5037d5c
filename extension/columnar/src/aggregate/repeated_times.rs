//! A memo of a sequence of times and the stretches of buckets into which it was cut.
//!
//! In a table sorted by series and time, a *part* of a vector is the rows of one series in it.
//! Series that were sampled together have equal times. A part is therefore compared with the stored
//! part. As far as both are equal, they have equal stretches, and no bucket is searched for.

use super::stretches::StretchList;

/// The number of rows that are compared at a time.
const BLOCK_ROWS: usize = 32;
/// A part is not remembered if fewer of its rows differ from the stored part.
const CUT_ROWS_MIN: usize = 32;

/// The stored part; empty if there is none.
#[derive(Default)]
pub(super) struct RepeatedTimes {
    times: Vec<i64>,
    /// Where each of its stretches begins, counted from its first row, and the group of each.
    starts: Vec<u32>,
    groups: Vec<u32>,
}

/// The current part.
#[derive(Default)]
pub(super) struct SeriesPart {
    /// Its first row, and the first of its stretches.
    row: usize,
    stretch: usize,
    /// The number of rows that were cut on their own.
    pub(super) cut_rows: usize,
    /// The stretch of the remembered part that comes next.
    next: usize,
    /// The row of the remembered part that has the time of this part's first row.
    first: usize,
    /// The row of the remembered part up to which both parts have equal times.
    equal_to: usize,
}

impl RepeatedTimes {
    /// Begins a part at a row of a vector.
    pub(super) fn begin(&self, row: usize, times: &[i64], stretches: &StretchList) -> SeriesPart {
        let mut part = SeriesPart {
            row,
            stretch: stretches.count(),
            ..SeriesPart::default()
        };
        let times = &times[row..];
        // If the times of a part decrease, the search finds nothing, or a place that is equal
        // nevertheless.
        let first = self.times.partition_point(|time| *time < times[0]);
        let known = &self.times[first..];
        if known.first() == times.first() {
            let after = self
                .starts
                .partition_point(|start| *start as usize <= first);
            part.next = after - 1;
            part.first = first;
            part.equal_to = first + count_equal(known, times);
        }
        part
    }

    /// The group of the next stretch, and the row after it; `None` if the stored part does not
    /// contain it.
    #[inline]
    pub(super) fn next_stretch(&self, part: &mut SeriesPart) -> Option<(u32, usize)> {
        let end = *self.starts.get(part.next + 1)? as usize;
        // The row after the stretch must be equal too, because it ends the stretch.
        if end >= part.equal_to {
            return None;
        }
        let group = self.groups[part.next];
        part.next += 1;
        Some((group, part.row + end - part.first))
    }

    /// Remembers a part up to the last of these times if many of its rows were cut on their own.
    pub(super) fn remember(&mut self, part: &SeriesPart, times: &[i64], stretches: &StretchList) {
        let stretches = stretches.stretches_from(part.stretch);
        // The first stretch may have begun before the part.
        let begins_here = stretches.0.first() == Some(&(part.row as u32));
        if part.cut_rows < CUT_ROWS_MIN || !begins_here {
            return;
        }
        self.times.clear();
        self.times.extend_from_slice(&times[part.row..]);
        self.starts.clear();
        let starts = stretches.0.iter().map(|start| start - part.row as u32);
        self.starts.extend(starts);
        self.groups.clear();
        self.groups.extend_from_slice(stretches.1);
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.times.capacity() * size_of::<i64>()
            + (self.starts.capacity() + self.groups.capacity()) * size_of::<u32>()
    }
}

/// The number of leading times that are equal.
fn count_equal(a: &[i64], b: &[i64]) -> usize {
    let blocks = a.chunks_exact(BLOCK_ROWS).zip(b.chunks_exact(BLOCK_ROWS));
    let equal = blocks.take_while(|(a, b)| a == b).count() * BLOCK_ROWS;
    let rest = a[equal..].iter().zip(&b[equal..]);
    equal + rest.take_while(|(a, b)| a == b).count()
}
