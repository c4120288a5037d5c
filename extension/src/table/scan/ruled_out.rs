//! What zones rule out is not read, nor what they tell all of that is wanted.

use lanes_columnar::arena::RunEntry;
use lanes_columnar::limits::{segment_first_row, segment_of, segment_rows_max};
use lanes_columnar::part::SealedSegment;
use lanes_columnar::zone_map::Zone;

use super::ranges::visible_ranges;
use super::{Range, Scan};
use crate::storage::directory::{FLAG_REMOTE, FLAG_SEALED};
use crate::table::reader::Content;

/// Whether no row with these zones, by attribute, is wanted.
pub type RulesOut<'a> = &'a dyn Fn(&dyn Fn(usize) -> Option<Zone>) -> bool;

/// The zones of the rows of a sealed run, by attribute: their bounds are met; older ones have no sums.
pub type StoredZones<'a> = &'a dyn Fn(usize) -> Option<Zone>;

/// Who needs no more than zones of rows that all count.
pub trait AnsweredByZones {
    /// Whether these zones, of so many rows, tell all that is wanted of them.
    fn are_answered(&self, rows: u32, zones: StoredZones<'_>) -> bool;

    /// Takes in what they tell; false if that is not all.
    fn take(&self, rows: u32, zones: StoredZones<'_>) -> bool;
}

/// What whoever scans does by zones alone.
#[derive(Clone, Copy)]
pub struct ByZone<'a> {
    pub rules_out: RulesOut<'a>,
    pub answered_by: Option<&'a dyn AnsweredByZones>,
}

impl Scan<'_> {
    /// Passes segments from one on that hold none but sealed rows and are ruled out: the one after them, if there are any. One look at
    /// each zone, where [`Scan::open_segment`] first finds out what is to be seen. Of a parallel scan, that segment alone is passed:
    /// others may have taken those behind it.
    pub fn pass_ruled_out(&mut self, segment: u32, rules_out: RulesOut<'_>) -> Option<u32> {
        // There, conflicts with those who deleted rows are told even if nobody wants the rows.
        if self.serializable {
            return None;
        }
        let from = segment_first_row(segment).max(self.bounds.0);
        let end = match self.shared.is_none() {
            true => u64::MAX,
            false => segment_first_row(segment + 1),
        };
        let end = end.min(self.bounds.1).min(self.reader.end_row());
        let content = self.reader.content.as_ref()?;
        let is_passed = |sealed: &SealedSegment| rules_out(&|at| sealed.zones.get(at).copied());
        let (row, passed) = {
            let table = self.reader.table;
            content.parts.pass(table, from, end, is_passed)
        };
        let next = match row {
            // What is behind the end is nobody's.
            _ if row == end => segment_of(end - 1) + 1,
            _ => segment_of(row),
        };
        self.segments_skipped += passed;
        (next > segment).then_some(next)
    }

    /// Passes segments from one back to the first, as [`Scan::pass_ruled_out`] does forwards: the segment before them,
    /// which is none where no row lies before.
    pub fn pass_ruled_out_back(&mut self, segment: u32, rules_out: RulesOut<'_>) -> Option<i64> {
        if self.serializable || self.shared.is_some() {
            return None;
        }
        let content = self.reader.content.as_ref()?;
        let from = content.runs.first_row().max(self.bounds.0);
        let end = segment_first_row(segment) + u64::from(segment_rows_max(segment));
        let end = end.min(self.bounds.1).min(self.reader.end_row());
        if end <= from {
            return None;
        }
        let is_passed = |sealed: &SealedSegment| rules_out(&|at| sealed.zones.get(at).copied());
        let (row, passed) = {
            let table = self.reader.table;
            content.parts.pass_back(table, from, end, is_passed)
        };
        self.segments_skipped += passed;
        let before = match row == from {
            true => i64::from(segment_of(from)) - 1,
            false => i64::from(segment_of(row - 1)),
        };
        (before < i64::from(segment)).then_some(before)
    }

    /// Takes out of the visible ranges of a segment, of which there are some, the sealed runs that are taken as a whole. Whether nothing
    /// is left to be read of it.
    ///
    /// A table's first segments are small, so a run may go on in those behind: they are entered behind it then.
    pub fn answer_whole_runs(
        &mut self,
        ranges: &mut Vec<Range>,
        answers: &dyn AnsweredByZones,
    ) -> bool {
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
            return false;
        };
        // Open rows are of very many runs: each look for one is felt.
        let has_any = |content: &Content| content.parts.has_any(first.from, last.to);
        if !self.reader.content.as_ref().is_some_and(has_any) {
            return false;
        }
        let mut left = Vec::with_capacity(ranges.len());
        for range in ranges.drain(..) {
            match self.answer_run(range, answers) {
                Some(end) => self.taken_until = end,
                None => left.push(range),
            }
        }
        *ranges = left;
        self.segments_taken += u64::from(ranges.is_empty());
        ranges.is_empty()
    }

    /// The end of the sealed run that a range begins with, if all of its rows are visible and it is taken.
    fn answer_run(&mut self, range: Range, answers: &dyn AnsweredByZones) -> Option<u64> {
        let end = self.bounds.1.min(self.reader.end_row());
        let (table, serializable) = (self.reader.table, self.serializable);
        let content = self.reader.content.as_mut()?;
        content.parts.of_row(range.from)?;
        let (_, run) = content.run_of(range.from)?;
        if run.flags & FLAG_SEALED == 0 || range.from != run.first_row || run.end_row() > end {
            return None;
        }
        let mut seen_until = range.to;
        if seen_until < run.end_row() && self.shared.is_none() {
            // A part of it was deleted, or lies in segments behind, which others have no hand in.
            let (snapshot, rows) = (self.snapshot, (run.first_row, run.end_row()));
            let all = visible_ranges(table, content, snapshot, serializable, rows.0, rows.1);
            seen_until = all.first().map_or(0, |range| range.to);
        }
        // Who leaves rows in object storage out does so whatever is asked.
        let is_left_out = run.flags & FLAG_REMOTE != 0 && self.leaves_remote();
        if seen_until != run.end_row() || is_left_out {
            return None;
        }
        let content = self.reader.content.as_ref()?;
        answers
            .take(run.rows, &self.stored_zones(content, &run))
            .then_some(run.end_row())
    }

    /// Whether a run need not be read, as far as its zones and those who deleted rows tell.
    pub fn is_spared(&self, content: &Content, run: &RunEntry, by_zone: ByZone<'_>) -> bool {
        let is_answered = |answers: &dyn AnsweredByZones| {
            let tombstones = content.tombstones.borrow();
            let is_whole = tombstones
                .range(run.first_row, run.end_row())
                .next()
                .is_none();
            is_whole && answers.are_answered(run.rows, &self.stored_zones(content, run))
        };
        self.rules_out_run(content, run, by_zone.rules_out)
            || by_zone.answered_by.is_some_and(is_answered)
    }

    /// The zones that are stored of a sealed run.
    fn stored_zones<'a>(
        &'a self,
        content: &'a Content,
        run: &'a RunEntry,
    ) -> impl Fn(usize) -> Option<Zone> + 'a {
        let table = self.reader.table;
        move |attribute| content.parts.zone(table, run.first_row, attribute)
    }

    /// Whether the zones of a sealed run rule it out.
    pub fn rules_out_run(
        &self,
        content: &Content,
        run: &RunEntry,
        rules_out: RulesOut<'_>,
    ) -> bool {
        run.flags & FLAG_SEALED != 0 && rules_out(&self.stored_zones(content, run))
    }

    /// Whether the rows that are open are of one sealed run, and lie in the order of an attribute without NULLs.
    pub fn is_sorted_by(&self, attribute: usize) -> bool {
        let (Some(content), Some((ranges, _))) = (&self.reader.content, self.current()) else {
            return false;
        };
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
            return false;
        };
        let Some((_, run)) = content.run_of(first.from) else {
            return false;
        };
        let is_sealed = run.flags & FLAG_SEALED != 0 && last.to <= run.end_row();
        is_sealed && self.stored_zones(content, &run)(attribute).is_some_and(|zone| zone.sorted)
    }

    /// Whether all of these rows are sealed, and their zones rule them out.
    pub fn is_ruled_out(&self, ranges: &[Range], rules_out: RulesOut<'_>) -> bool {
        let Some(content) = &self.reader.content else {
            return false;
        };
        let mut judged = 0;
        ranges.iter().all(|range| {
            // Rows that were deleted part the ranges of one run.
            if range.to <= judged {
                return true;
            }
            let Some((_, run)) = content.run_of(range.from) else {
                return false;
            };
            judged = run.end_row();
            self.rules_out_run(content, &run, rules_out)
        })
    }
}
