//! The choice of the units that are sealed or merged next.

use super::{Limits, Unit};
use crate::table::shape::TableShape;

/// The least number of parts of one size that are merged.
pub(super) const MERGED_MIN: usize = 8;
/// A part of the smallest size has fewer rows than this times the rows that are worth sealing.
const SMALL_PART_TIMES: u64 = 8;
/// A part is sealed anew when one in so many of its rows is deleted.
const DELETED_SHARE: u64 = 5;
/// The bytes that one stored byte may take in memory.
const EXPANSION: u64 = 4;

/// The memory that sealing may take.
pub(super) struct Memory {
    bytes: u64,
    bytes_a_row: u64,
}

impl Memory {
    pub fn of(shape: &TableShape, limits: &Limits) -> Memory {
        // The row's number, twice its widest key while it is sorted, and its places before and
        // after in a place map.
        let sorting = 4 + 2 * 16 + 2 * 4;
        Memory {
            bytes: limits.memory,
            bytes_a_row: shape.bytes_a_row() + sorting,
        }
    }

    /// The end of the units from `from` on for which `fits` holds and that fit into memory
    /// together. One unit always fits.
    fn end_of(&self, units: &[Unit], from: usize, fits: impl Fn(&Unit) -> bool) -> usize {
        let (mut to, mut stored) = (from, 0u64);
        while let Some(unit) = units.get(to).filter(|unit| fits(unit)) {
            stored += unit.bytes;
            if to > from && !self.takes(unit.end_row - units[from].first_row, stored) {
                break;
            }
            to += 1;
        }
        to
    }

    /// Whether so many rows, including holes, fit into memory, with so many stored bytes.
    fn takes(&self, span: u64, stored: u64) -> bool {
        span <= u64::from(u32::MAX)
            && span.saturating_mul(self.bytes_a_row) <= self.bytes
            && stored.saturating_mul(EXPANSION) <= self.bytes
    }
}

/// The units that are sealed next, as a range of their places; `None`: there is nothing to do.
pub(super) fn choose(
    units: &[Unit],
    memory: &Memory,
    limits: &Limits,
) -> Option<std::ops::Range<usize>> {
    runs_and_parts(units, memory, limits)
        .or_else(|| open_runs(units, memory, limits))
        .or_else(|| thinned_part(units, limits))
        .or_else(|| parts_of_a_size(units, memory, limits))
}

/// Ripe neighbouring runs and parts, where rows with equal keys have to meet.
fn runs_and_parts(
    units: &[Unit],
    memory: &Memory,
    limits: &Limits,
) -> Option<std::ops::Range<usize>> {
    let mut from = 0;
    while limits.thorough && limits.dedup && from < units.len() {
        let to = memory.end_of(units, from, |unit| unit.is_ripe);
        let has_rows = |is_part: bool| {
            let mut units = units[from..to].iter();
            units.any(|unit| unit.is_part == is_part && unit.rows > 0)
        };
        if has_rows(true) && has_rows(false) {
            return Some(from..to);
        }
        from = to.max(from + 1);
    }
    None
}

/// Ripe neighbouring runs.
fn open_runs(units: &[Unit], memory: &Memory, limits: &Limits) -> Option<std::ops::Range<usize>> {
    let rows_min = if limits.thorough {
        1
    } else {
        limits.open_rows_min
    };
    let mut from = 0;
    while from < units.len() {
        let to = memory.end_of(units, from, |unit| unit.is_ripe && !unit.is_part);
        let rows: u64 = units[from..to].iter().map(|unit| unit.rows).sum();
        if rows >= rows_min {
            return Some(from..to);
        }
        from = to.max(from + 1);
    }
    None
}

/// A part of which many rows are deleted.
fn thinned_part(units: &[Unit], limits: &Limits) -> Option<std::ops::Range<usize>> {
    let share = if limits.thorough {
        u64::MAX
    } else {
        DELETED_SHARE
    };
    let thinned = |unit: &Unit| {
        unit.is_part
            && unit.is_ripe
            && unit.deleted > 0
            && unit.deleted.saturating_mul(share) >= unit.rows
    };
    let place = units.iter().position(thinned)?;
    Some(place..place + 1)
}

/// The size class of a part of so many rows.
fn size_of_part(rows: u64, limits: &Limits) -> u32 {
    match rows / limits.rows_min.saturating_mul(SMALL_PART_TIMES).max(1) {
        0 => 0,
        times => times.ilog2() / 3 + 1,
    }
}

/// Ripe neighbouring parts, enough of them of one size and the others smaller. Thorough sealing
/// takes any two.
fn parts_of_a_size(
    units: &[Unit],
    memory: &Memory,
    limits: &Limits,
) -> Option<std::ops::Range<usize>> {
    let size_of = |unit: &Unit| size_of_part(unit.rows, limits);
    let largest = units.iter().map(size_of).max()?;
    let sizes = if limits.thorough { largest } else { 0 };
    for size in sizes..=largest {
        let mut from = 0;
        while from < units.len() {
            let to = memory.end_of(units, from, |unit| {
                unit.is_ripe && unit.is_part && size_of(unit) <= size
            });
            let is_enough = if limits.thorough {
                to - from >= 2
            } else {
                let of_size = units[from..to].iter().filter(|unit| size_of(unit) == size);
                of_size.count() >= MERGED_MIN
            };
            if is_enough {
                return Some(from..to);
            }
            from = to.max(from + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Memory = Memory {
        bytes: 1 << 40,
        bytes_a_row: 64,
    };
    const GENTLE: Limits = Limits {
        rows_min: 100,
        open_rows_min: 100,
        memory: 1 << 40,
        thorough: false,
        dedup: false,
    };
    const THOROUGH: Limits = Limits {
        thorough: true,
        ..GENTLE
    };

    /// Consecutive units: the rows of each, and whether it is a part.
    fn units(sizes: &[(u64, bool)]) -> Vec<Unit> {
        let mut next = 0;
        let unit = |&(rows, is_part): &(u64, bool)| {
            let first_row = next;
            next += rows;
            Unit {
                first_row,
                end_row: next,
                rows,
                deleted: 0,
                bytes: rows,
                is_part,
                is_ripe: true,
            }
        };
        sizes.iter().map(unit).collect()
    }

    #[test]
    fn runs_are_sealed_up_to_the_first_that_is_not_ripe() {
        let mut list = units(&[(60, false), (60, false), (60, false)]);
        list[2].is_ripe = false;
        assert_eq!(choose(&list, &ROOM, &GENTLE), Some(0..2));
        list[1].is_ripe = false;
        assert_eq!(choose(&list, &ROOM, &GENTLE), None);
        assert_eq!(choose(&list, &ROOM, &THOROUGH), Some(0..1));
    }

    #[test]
    fn runs_are_sealed_with_the_parts_beside_them_where_equal_keys_are_to_meet() {
        let dedup = Limits {
            dedup: true,
            ..THOROUGH
        };
        let mut list = units(&[(60, true), (60, true), (60, false), (60, false)]);
        assert_eq!(choose(&list, &ROOM, &THOROUGH), Some(2..4));
        assert_eq!(choose(&list, &ROOM, &dedup), Some(0..4));
        // Rows that dedup took out lie between them.
        list[1].is_ripe = false;
        assert_eq!(choose(&list, &ROOM, &dedup), Some(2..4));
        let alone = units(&[(60, true)]);
        assert_eq!(choose(&alone, &ROOM, &dedup), None);
    }

    #[test]
    fn memory_bounds_a_range_but_one_run_always_fits() {
        let list = units(&[(100, false), (100, false), (100, false)]);
        let memory = Memory {
            bytes: 200 * 64,
            bytes_a_row: 64,
        };
        assert_eq!(choose(&list, &memory, &GENTLE), Some(0..2));
        let tight = Memory {
            bytes: 64,
            bytes_a_row: 64,
        };
        assert_eq!(choose(&list, &tight, &GENTLE), Some(0..1));
    }

    #[test]
    fn eight_parts_of_a_size_are_merged() {
        let small = |count: usize| vec![(100, true); count];
        let large = (2 * SMALL_PART_TIMES * GENTLE.rows_min, true);
        let list = units(&small(7));
        assert_eq!(choose(&list, &ROOM, &GENTLE), None);
        assert_eq!(choose(&list, &ROOM, &THOROUGH), Some(0..7));
        let list = units(&[vec![large], small(8), vec![large]].concat());
        assert_eq!(choose(&list, &ROOM, &GENTLE), Some(1..9));
        // Small parts beside a large one do not cause it to be written again.
        let list = units(&[vec![large], small(7)].concat());
        assert_eq!(choose(&list, &ROOM, &GENTLE), None);
        let list = units(&[vec![large; 5], small(1), vec![large; 3], small(1)].concat());
        assert_eq!(choose(&list, &ROOM, &GENTLE), Some(0..10));
    }

    #[test]
    fn runs_between_parts_keep_them_apart() {
        let mut list = units(&[
            (100, true),
            (100, true),
            (50, false),
            (100, true),
            (100, true),
        ]);
        list[2].is_ripe = false;
        assert_eq!(choose(&list, &ROOM, &GENTLE), None);
        assert_eq!(choose(&list, &ROOM, &THOROUGH), Some(0..2));
    }

    #[test]
    fn a_part_is_sealed_anew_when_a_fifth_is_deleted() {
        let mut list = units(&[(100, true)]);
        list[0].deleted = 19;
        assert_eq!(choose(&list, &ROOM, &GENTLE), None);
        assert_eq!(choose(&list, &ROOM, &THOROUGH), Some(0..1));
        list[0].deleted = 20;
        assert_eq!(choose(&list, &ROOM, &GENTLE), Some(0..1));
    }

    #[test]
    fn merging_comes_to_an_end() {
        let memory = Memory {
            bytes: 1_000 * 64,
            bytes_a_row: 64,
        };
        let list = units(&[(600, true), (600, true), (600, true)]);
        assert_eq!(choose(&list, &memory, &THOROUGH), None);
    }
}
