//! The steps of a source: from window to window, and from vector to vector within a window.

use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::number::Scalar;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::zone_map::Zone;

use super::VectorSource;
use crate::table::scan::{AnsweredByZones, ByZone};
use crate::vectors::prune::Filter;

impl VectorSource {
    /// Opens the next window, before its first vector; false at the end.
    pub(super) fn open_window(
        &mut self,
        filter: &Filter,
        scalars: &[Option<Scalar>],
        answered_by: Option<&dyn AnsweredByZones>,
    ) -> bool {
        let zone_maps = self.zone_maps;
        let rules_out =
            |zone: &dyn Fn(usize) -> Option<Zone>| zone_maps && filter.rules_out(zone, scalars);
        let by_zone = ByZone {
            rules_out: &rules_out,
            answered_by: answered_by.filter(|_| zone_maps),
        };
        let opened = self.scan.next_window(!self.backward, by_zone).is_some();
        let Some((ranges, window)) = self.scan.current().filter(|_| opened) else {
            return false;
        };
        self.lanes.clear();
        self.lanes.extend(window.lanes());
        self.dictionaries.clear();
        self.dictionaries.extend_from_slice(window.dictionaries());
        let attributes = self.lanes.len();
        self.zones.clear();
        self.zones.resize(attributes, None);
        self.ranges.clear();
        self.ranges.extend_from_slice(ranges);
        self.first_row = window.first_row;
        let mut restricted = filter.search_attributes();
        self.sorted_by =
            restricted.find(|&attribute| zone_maps && self.scan.is_sorted_by(attribute));
        self.range = if self.backward { self.ranges.len() } else { 0 };
        self.rows = 0;
        self.is_narrowed = false;
        // The vector before the first.
        let first = (self.ranges[0].from - self.first_row) as usize;
        self.place = first / VECTOR_ROWS * VECTOR_ROWS;
        self.open = true;
        self.counters.segments += 1;
        true
    }

    /// Goes on to the next vector of the window that has visible rows; false at the end of the window.
    pub(super) fn next_vector(&mut self) -> bool {
        self.widen();
        if self.rows > 0 {
            self.place += VECTOR_ROWS;
        }
        let Some(range) = self.ranges.get(self.range) else {
            return false;
        };
        let first = (range.from.max(self.first_row + self.place as u64) - self.first_row) as usize;
        self.place = first / VECTOR_ROWS * VECTOR_ROWS;
        let start = self.first_row + self.place as u64;
        let end = start + VECTOR_ROWS as u64;
        if range.from <= start && range.to >= end {
            self.range += usize::from(range.to == end);
            self.rows = VECTOR_ROWS;
            self.see_all();
            return true;
        }
        self.visible = Selection::NONE;
        while let Some(range) = self.ranges.get(self.range) {
            if range.from >= end {
                break;
            }
            let to = range.to.min(end);
            let (from, to) = (range.from.max(start) - start, to - start);
            self.visible.insert(from as usize, to as usize);
            self.rows = to as usize;
            if range.to > end {
                break;
            }
            self.range += 1;
        }
        self.visible_rows = self.visible.count();
        true
    }

    /// Goes back to the previous vector of the window that has visible rows; false at the window's beginning.
    pub(super) fn previous_vector(&mut self) -> bool {
        self.widen();
        let current = self.first_row + self.place as u64;
        let before = if self.rows > 0 { current } else { u64::MAX };
        let Some(range) = self.ranges[..self.range].last() else {
            return false;
        };
        let last = (range.to.min(before) - 1 - self.first_row) as usize;
        self.place = last / VECTOR_ROWS * VECTOR_ROWS;
        self.rows = last + 1 - self.place;
        let start = self.first_row + self.place as u64;
        let end = start + self.rows as u64;
        self.visible = Selection::NONE;
        while let Some(range) = self.ranges[..self.range].last() {
            if range.to <= start {
                break;
            }
            let (from, to) = (range.from.max(start) - start, range.to.min(end) - start);
            self.visible.insert(from as usize, to as usize);
            if range.from < start {
                break;
            }
            self.range -= 1;
        }
        self.visible_rows = self.visible.count();
        true
    }

    /// Restores the place of the whole vector.
    fn widen(&mut self) {
        self.place -= self.place % VECTOR_ROWS;
        self.is_narrowed = false;
    }

    /// Makes all rows of a whole vector visible.
    fn see_all(&mut self) {
        if self.visible_rows != VECTOR_ROWS {
            self.visible = Selection::first(VECTOR_ROWS);
            self.visible_rows = VECTOR_ROWS;
        }
    }
}
