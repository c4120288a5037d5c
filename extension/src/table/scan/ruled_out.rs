//! Segments and runs that a scan need not read, because their zones rule them out or answer the
//! query.

use lanes_columnar::arena::RunEntry;
use lanes_columnar::limits::{segment_first_row, segment_of, segment_rows_max};
use lanes_columnar::part::SealedSegment;
use lanes_columnar::zone_map::Zone;

use super::ranges::visible_ranges;
use super::{Range, Scan};
use crate::storage::directory::{FLAG_REMOTE, FLAG_SEALED};
use crate::table::reader::Content;

/// Whether zones, given by attribute, rule out that any of their rows is wanted.
pub type RulesOut<'a> = &'a dyn Fn(&dyn Fn(usize) -> Option<Zone>) -> bool;

/// The zones of the rows of a sealed run, by attribute. Some row has the minimum, and some row the
/// maximum. Old zones have no sums.
pub type StoredZones<'a> = &'a dyn Fn(usize) -> Option<Zone>;

/// A reader for which zones may be enough, if all of their rows are visible.
pub trait AnsweredByZones {
    /// Whether the zones of so many rows answer the whole query for these rows.
    fn are_answered(&self, rows: u32, zones: StoredZones<'_>) -> bool;

    /// Adds these rows to the answer by their zones; false: the zones are not enough.
    fn take(&self, rows: u32, zones: StoredZones<'_>) -> bool;
}

/// How a scan uses zones.
#[derive(Clone, Copy)]
pub struct ByZone<'a> {
    pub rules_out: RulesOut<'a>,
    pub answered_by: Option<&'a dyn AnsweredByZones>,
}

impl Scan<'_> {
    /// Passes segments from `segment` on in which all rows are sealed and ruled out. Returns the
    /// segment after them, if there are any. Each zone is tested once, whereas
    /// [`Scan::open_segment`] first determines which rows are visible. A parallel scan passes only
    /// `segment`, because others may have taken the segments after it.
    pub fn pass_ruled_out(&mut self, segment: u32, rules_out: RulesOut<'_>) -> Option<u32> {
        // A serializable transaction has to report conflicts with those who deleted rows, even of
        // rows that nobody wants.
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
            // Nobody wants rows after the end.
            _ if row == end => segment_of(end - 1) + 1,
            _ => segment_of(row),
        };
        self.segments_skipped += passed;
        (next > segment).then_some(next)
    }

    /// Passes segments from `segment` back to the first, as [`Scan::pass_ruled_out`] does forwards.
    /// Returns the segment before them, which is -1 if no row lies before.
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

    /// Removes from the visible ranges of a segment the sealed runs that are answered by their
    /// zones as a whole. Returns whether nothing remains to be read. There is at least one range.
    ///
    /// The first segments of a table are small, so a run may extend into later ones. These are then
    /// passed too.
    pub fn answer_whole_runs(
        &mut self,
        ranges: &mut Vec<Range>,
        answers: &dyn AnsweredByZones,
    ) -> bool {
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
            return false;
        };
        // Open rows belong to very many runs, and looking up each of them would take noticeable
        // time.
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

    /// The end of the sealed run that a range begins with, if all of its rows are visible and it
    /// was answered.
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
            // Some of its rows were deleted, or lie in later segments. No other participant scans
            // those.
            let (snapshot, rows) = (self.snapshot, (run.first_row, run.end_row()));
            let all = visible_ranges(table, content, snapshot, serializable, rows.0, rows.1);
            seen_until = all.first().map_or(0, |range| range.to);
        }
        // Rows in object storage that are to be left out are left out of answers too.
        let is_left_out = run.flags & FLAG_REMOTE != 0 && self.leaves_remote();
        if seen_until != run.end_row() || is_left_out {
            return None;
        }
        let content = self.reader.content.as_ref()?;
        answers
            .take(run.rows, &self.stored_zones(content, &run))
            .then_some(run.end_row())
    }

    /// Whether a run need not be read, judging by its zones and by its tombstones.
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

    /// The stored zones of a sealed run.
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

    /// Whether the open rows belong to one sealed run and are sorted by an attribute that has no
    /// NULLs.
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
            // Deleted rows divide one run into several ranges.
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
