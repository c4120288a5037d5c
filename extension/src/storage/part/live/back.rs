//! Passing sealed segments backwards, from the last to the first.

use std::rc::Rc;

use crate::pg::table::OpenTable;
use lanes_columnar::limits::segment_of;
use lanes_columnar::part::SealedSegment;

use super::{LivePart, PartIndex, Parts};

impl Parts {
    /// As [`pass`](Self::pass), from the row before `to` back to a row `from`. Returns the row
    /// behind which it stops, and how many segments of row numbers that have rows lie from there
    /// on.
    pub fn pass_back(
        &self,
        table: OpenTable<'_>,
        from: u64,
        to: u64,
        is_passed: impl Fn(&SealedSegment) -> bool,
    ) -> (u64, u64) {
        self.pass_back_with(from, to, is_passed, |part| part.index(table))
    }

    fn pass_back_with(
        &self,
        from: u64,
        to: u64,
        is_passed: impl Fn(&SealedSegment) -> bool,
        index_of: impl Fn(&LivePart) -> &Rc<PartIndex>,
    ) -> (u64, u64) {
        let (mut row, mut passed, mut first) = (to, 0, None);
        let behind = (self.place(to.saturating_sub(1)) + 1).min(self.live.len());
        'parts: for part in self.live[..behind].iter().rev() {
            if row <= from || !part.entry.covers(row - 1) {
                break;
            }
            let segments = &index_of(part).segments;
            let behind = segments.partition_point(|segment| segment.first_row < row);
            for segment in segments[..behind].iter().rev() {
                if segment.end_row() <= from || !is_passed(segment) {
                    row = row.min(segment.end_row());
                    break 'parts;
                }
                let end = segment.end_row().min(row);
                row = segment.first_row;
                let numbers = segment_of(row.max(from))..=segment_of(end - 1);
                let is_same = first == Some(*numbers.end());
                passed += u64::from(numbers.end() - numbers.start()) + u64::from(!is_same);
                first = Some(*numbers.start());
            }
            row = part.entry.first_row;
        }
        if row <= from {
            return (from, passed);
        }
        // The first segment may have more rows.
        (row, passed - u64::from(first == Some(segment_of(row - 1))))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::part_of;
    use super::*;

    #[test]
    fn passes_back_over_segments_and_ranges_without_rows() {
        let parts = Parts {
            generation: 1,
            live: vec![
                part_of(
                    0,
                    8192,
                    &[(0, 1000), (1000, 1000), (2048, 2048), (6144, 10)],
                ),
                part_of(8192, 12_288, &[]),
                part_of(12_288, 14_336, &[(12_288, 2048)]),
                part_of(20_480, 22_528, &[(20_480, 2048)]),
            ],
        };
        let pass = |from, to, wanted: &[u64]| {
            let is_passed = |segment: &SealedSegment| !wanted.contains(&segment.first_row);
            parts.pass_back_with(from, to, is_passed, |part| part.index.get().unwrap())
        };
        assert_eq!(pass(0, 14_336, &[]), (0, 4));
        assert_eq!(pass(0, 14_336, &[12_288]), (14_336, 0));
        assert_eq!(pass(0, 14_336, &[6144]), (6154, 1));
        assert_eq!(pass(0, 14_336, &[2048]), (4096, 2));
        // The second half of a segment is not one.
        assert_eq!(pass(0, 14_336, &[0]), (1000, 3));
        assert_eq!(pass(0, 14_336, &[1000]), (2000, 3));
        // Rows that belong to no part are not known here.
        assert_eq!(pass(0, 22_528, &[]), (20_480, 1));
        assert_eq!(pass(0, 30_000, &[]), (30_000, 0));
        assert_eq!(pass(0, 15_000, &[]), (15_000, 0));
        // Bounds within segments, and up to a row that one of them has.
        assert_eq!(pass(500, 13_000, &[]), (500, 4));
        assert_eq!(pass(2048, 3000, &[]), (2048, 1));
        assert_eq!(pass(2048, 3000, &[2048]), (3000, 0));
        assert_eq!(pass(5000, 7000, &[]), (5000, 1));
        let parts = Parts {
            generation: 1,
            live: vec![part_of(0, 70_000, &[(0, 65_536), (65_536, 4464)])],
        };
        let passed = parts.pass_back_with(0, 70_000, |_| true, |part| part.index.get().unwrap());
        assert_eq!(passed, (0, 33));
    }
}
