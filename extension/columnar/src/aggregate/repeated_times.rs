//! Times that come once more, and the runs of buckets that they were cut into.
//!
//! In a table sorted by series and time, a *stretch* of rows is a series, or the part of it that a vector has. Series
//! that were sampled together have equal times. So a stretch is compared with one that was cut before; as far as both
//! are equal, its runs are those of the other, and no bucket is looked for.

use super::runs::RunList;

/// Rows that are compared at a time.
const BLOCK_ROWS: usize = 32;
/// A stretch of which fewer rows were not like those remembered is not remembered instead.
const CUT_ROWS_MIN: usize = 32;

/// A stretch that was cut before; empty if there is none.
#[derive(Default)]
pub(super) struct RepeatedTimes {
    times: Vec<i64>,
    /// Where each of its runs begins, counted from its first row, and the group of each.
    starts: Vec<u32>,
    groups: Vec<u32>,
}

/// The stretch under way.
#[derive(Default)]
pub(super) struct Stretch {
    /// Its first row, and the first of its runs.
    row: usize,
    run: usize,
    /// Rows that were cut on their own.
    pub(super) cut_rows: usize,
    /// The run of the remembered stretch that comes next.
    next: usize,
    /// The row of the remembered stretch that has the time of this stretch's first row.
    first: usize,
    /// The row of the remembered stretch up to which both stretches have equal times.
    equal_to: usize,
}

impl RepeatedTimes {
    /// Begins a stretch at a row of a vector.
    pub(super) fn begin(&self, row: usize, times: &[i64], runs: &RunList) -> Stretch {
        let mut stretch = Stretch {
            row,
            run: runs.count(),
            ..Stretch::default()
        };
        let times = &times[row..];
        // Where times of a stretch decrease, this finds nothing, or something equal all the same.
        let first = self.times.partition_point(|time| *time < times[0]);
        let known = &self.times[first..];
        if known.first() == times.first() {
            let after = self
                .starts
                .partition_point(|start| *start as usize <= first);
            stretch.next = after - 1;
            stretch.first = first;
            stretch.equal_to = first + count_equal(known, times);
        }
        stretch
    }

    /// The group of the next run, and the row after it; none if nothing is known of that.
    #[inline]
    pub(super) fn next_run(&self, stretch: &mut Stretch) -> Option<(u32, usize)> {
        let end = *self.starts.get(stretch.next + 1)? as usize;
        // The row after the run has to be equal too: it is what ends the run.
        if end >= stretch.equal_to {
            return None;
        }
        let group = self.groups[stretch.next];
        stretch.next += 1;
        Some((group, stretch.row + end - stretch.first))
    }

    /// Remembers a stretch up to the last of these times if many of its rows were cut on their own.
    pub(super) fn remember(&mut self, stretch: &Stretch, times: &[i64], runs: &RunList) {
        let runs = runs.runs_from(stretch.run);
        // The first run may have begun before the stretch.
        let begins_here = runs.0.first() == Some(&(stretch.row as u32));
        if stretch.cut_rows < CUT_ROWS_MIN || !begins_here {
            return;
        }
        self.times.clear();
        self.times.extend_from_slice(&times[stretch.row..]);
        self.starts.clear();
        let starts = runs.0.iter().map(|start| start - stretch.row as u32);
        self.starts.extend(starts);
        self.groups.clear();
        self.groups.extend_from_slice(runs.1);
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.times.capacity() * size_of::<i64>()
            + (self.starts.capacity() + self.groups.capacity()) * size_of::<u32>()
    }
}

/// How many of the first times are equal.
fn count_equal(a: &[i64], b: &[i64]) -> usize {
    let blocks = a.chunks_exact(BLOCK_ROWS).zip(b.chunks_exact(BLOCK_ROWS));
    let equal = blocks.take_while(|(a, b)| a == b).count() * BLOCK_ROWS;
    let rest = a[equal..].iter().zip(&b[equal..]);
    equal + rest.take_while(|(a, b)| a == b).count()
}
