//! Moving a scan: from row to row, and from segment to segment.

use lanes_columnar::limits::{segment_first_row, segment_of, segment_rows_max};

use super::open_view::Wanted;
use super::ranges::visible_ranges;
use super::{ByZone, OpenSegment, Place, Range, Scan, SegmentView, holds_remote};
use crate::pg::ports;
use crate::remote::recall::Recalled;

impl Place {
    /// Past the last row in the direction.
    fn at_end(forward: bool) -> Place {
        if forward {
            Place::AfterLast
        } else {
            Place::BeforeFirst
        }
    }
}

impl OpenSegment {
    /// Goes to the row that comes first in the direction.
    fn go_to_first(&mut self, forward: bool) {
        if forward {
            self.row = self.ranges[0].from;
        } else {
            self.range = self.ranges.len() - 1;
            self.row = self.ranges[self.range].to - 1;
        }
    }
}

impl Scan<'_> {
    /// Moves to the next row; false at the end.
    pub(super) fn step(&mut self, forward: bool) -> bool {
        if let Place::In(open) = &mut self.place {
            let range = open.ranges[open.range];
            if forward {
                if open.row + 1 < range.to {
                    open.row += 1;
                    return true;
                }
                if open.range + 1 < open.ranges.len() {
                    open.range += 1;
                    open.row = open.ranges[open.range].from;
                    return true;
                }
            } else {
                if open.row > range.from {
                    open.row -= 1;
                    return true;
                }
                if open.range > 0 {
                    open.range -= 1;
                    open.row = open.ranges[open.range].to - 1;
                    return true;
                }
            }
        }
        self.enter_next_segment(forward, None)
    }

    pub(super) fn enter_next_segment(
        &mut self,
        forward: bool,
        by_zone: Option<ByZone<'_>>,
    ) -> bool {
        let end = self.reader.end_row().min(self.bounds.1);
        if end <= self.bounds.0 {
            self.place = Place::at_end(forward);
            return false;
        }
        // The rows before the first run were dropped, perhaps very many of them.
        let content = self.reader.content.as_ref();
        let first_run = content.map_or(0, |content| content.runs.first_row());
        let (first, last) = (
            segment_of(self.bounds.0.max(first_run)) as i64,
            segment_of(end - 1) as i64,
        );
        let mut candidate = match (&self.place, forward) {
            (Place::BeforeFirst, true) => first - 1,
            (Place::AfterLast, false) => last + 1,
            (Place::In(open), _) => open.segment as i64,
            (Place::AfterLast, true) | (Place::BeforeFirst, false) => return false,
        };
        loop {
            candidate = self.claim(candidate, forward, first);
            if candidate < first || candidate > last {
                self.leave();
                self.place = Place::at_end(forward);
                return false;
            }
            ports::CHECK_FOR_INTERRUPTS();
            if let Some(by_zone) = by_zone
                && let Some(passed) = self.pass_by_zone(candidate as u32, forward, by_zone)
            {
                candidate = passed;
                continue;
            }
            if let Some(mut open) = self.open_segment(candidate as u32, by_zone, Wanted::Many) {
                if by_zone.is_none() {
                    // These are read row by row.
                    open.fill_visible();
                }
                open.go_to_first(forward);
                self.place = Place::In(Box::new(open));
                return true;
            }
        }
    }

    /// Passes segments from `segment` on, in the direction, whose rows are ruled out. Returns the
    /// last of them, if there are any.
    fn pass_by_zone(&mut self, segment: u32, forward: bool, by_zone: ByZone<'_>) -> Option<i64> {
        if forward {
            let next = self.pass_ruled_out(segment, by_zone.rules_out)?;
            Some(i64::from(next) - 1)
        } else {
            let before = self.pass_ruled_out_back(segment, by_zone.rules_out)?;
            Some(before + 1)
        }
    }

    /// The segment after `from` in the direction. In a parallel scan it is the next that no
    /// participant has taken.
    fn claim(&mut self, from: i64, forward: bool, first: i64) -> i64 {
        if let Some(shared) = &mut self.shared {
            let sealings = self.reader.meta().map_or(0, |meta| meta.sealings);
            let taken = shared.next(sealings, first as u64);
            return taken.map_or(i64::MAX, |segment| segment as i64);
        }
        if forward { from + 1 } else { from - 1 }
    }

    pub(super) fn open_segment(
        &mut self,
        segment: u32,
        by_zone: Option<ByZone<'_>>,
        wanted: Wanted,
    ) -> Option<OpenSegment> {
        let (start, end) = self.rows_left(segment);
        if start >= end {
            self.segments_taken += u64::from(self.taken_until >= end);
            return None;
        }
        // The old window is dropped first, because it may have to be evicted to make room for the
        // next.
        self.leave();
        let (table, serializable) = (self.reader.table, self.serializable);
        let content = self.reader.content.as_mut()?;
        let mut ranges = visible_ranges(table, content, self.snapshot, serializable, start, end);
        let rules_out = by_zone.map(|by_zone| by_zone.rules_out);
        if ranges.is_empty() {
            return None;
        }
        if let Some(rules_out) = rules_out
            && self.is_ruled_out(&ranges, rules_out)
        {
            self.segments_skipped += 1;
            return None;
        }
        if let Some(answers) = by_zone.and_then(|by_zone| by_zone.answered_by)
            && self.answer_whole_runs(&mut ranges, answers)
        {
            return None;
        }
        let window = self.open_window(segment, &mut ranges, by_zone, wanted)?;
        if window.is_private() {
            self.segments_streamed += 1;
        } else {
            self.count_blocks_found(end - start);
        }
        Some(OpenSegment {
            segment,
            ranges,
            window,
            range: 0,
            row: 0,
        })
    }

    /// The first of the rows of a segment that the scan has not returned yet, and their end.
    fn rows_left(&self, segment: u32) -> (u64, u64) {
        let start = segment_first_row(segment)
            .max(self.bounds.0)
            .max(self.taken_until);
        let end = (segment_first_row(segment) + segment_rows_max(segment) as u64)
            .min(self.bounds.1)
            .min(self.reader.end_row());
        (start, end)
    }

    /// The window of these ranges of a segment; `None`: no row is left of them.
    fn open_window(
        &mut self,
        segment: u32,
        ranges: &mut Vec<Range>,
        by_zone: Option<ByZone<'_>>,
        wanted: Wanted,
    ) -> Option<SegmentView> {
        let (from, to) = (ranges.first()?.from, ranges.last()?.to);
        let content = self.reader.content.as_ref()?;
        let before = Recalled::so_far();
        let mut memory = std::mem::take(&mut self.stream_memory);
        let window = {
            if holds_remote(content, segment_first_row(segment), to) {
                self.open_partly_remote(content, segment, ranges, by_zone, &mut memory)
            } else {
                Some(self.open_within_share(content, (from, to), wanted, &mut memory))
            }
        };
        self.stream_memory = memory;
        self.recalled.add_since(before);
        window
    }

    /// Counts rows that are read in memory, as the blocks that they have a share in.
    fn count_blocks_found(&mut self, rows: u64) {
        let (table, all_rows) = (self.reader.table, self.reader.end_row().max(1));
        let blocks = *self
            .blocks
            .get_or_insert_with(|| table.counted_blocks().into());
        table.count_blocks_found((blocks * rows).div_ceil(all_rows));
    }
}
