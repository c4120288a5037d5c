//! Which rows are sealed next, and which parts are merged.
//!
//! The table is seen as a list of *units*: runs, and parts. A unit is *ripe* when everybody sees what it holds: a run whose
//! transaction committed before every snapshot, or aborted; no row of it is being deleted, updated or locked, nor was by
//! a transaction that some snapshot does not see yet.
//!
//! 1. Ripe neighbouring runs are sealed together, as many as memory allows, if they have [`Limits::open_rows_min`] rows.
//! 2. A part of whose rows many are deleted is sealed anew.
//! 3. Ripe neighbouring parts are merged when [`MERGED_MIN`] of them are of a size, with smaller ones between them; sizes differ
//!    by a factor of 8. So a row is written again as often as the logarithm of the largest part's size, to that base, and
//!    parts that retention will drop whole do not go on taking in newer rows.

use lanes_columnar::arena::RunEntry;

use crate::pg::ports::CHECK_FOR_INTERRUPTS;
use crate::storage::directory::{FLAG_DEAD, FLAG_FADING, FLAG_FROZEN, FLAG_SEALED};
use crate::storage::tombstone::{Tombstone, Tombstones, kind};
use crate::table::reader::Content;
use crate::table::shape::TableShape;
use crate::table::visibility::{XidStatus, xid_precedes, xid_status};

/// Parts of a size that are merged at least.
const MERGED_MIN: usize = 8;
/// The parts of the smallest size have fewer than so many times the rows that are sealed at least.
const SMALL_PART_TIMES: u64 = 8;
/// A part is sealed anew when this share of its rows is deleted.
const DELETED_SHARE: u64 = 5;
/// Bytes that stored ones may take in memory.
const EXPANSION: u64 = 4;

/// How much is sealed at a time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Fewer rows are left unsealed.
    pub rows_min: u64,
    /// The same of open rows, of which some may have to be sealed soon.
    pub open_rows_min: u64,
    /// Bytes of memory that one range may take.
    pub memory: u64,
    /// Everything that can be is sealed and merged, however little it is.
    pub thorough: bool,
    /// Equal keys are to meet: what is sealed thoroughly takes runs and parts together. A part of rows that dedup took out of
    /// the runs alone would lie between the others, and keep them apart until no snapshot sees it.
    pub dedup: bool,
}

/// Rows to seal together: whole runs or parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    pub first_row: u64,
    pub end_row: u64,
    /// Rows that are kept, as distances from the first.
    pub rows: Vec<u32>,
}

/// A run or a part.
#[derive(Clone, Copy, Debug)]
struct Unit {
    first_row: u64,
    end_row: u64,
    /// Rows that are kept.
    rows: u64,
    deleted: u64,
    /// Bytes stored.
    bytes: u64,
    is_part: bool,
    is_ripe: bool,
}

/// What a tombstone means for its row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Nothing,
    Deleted,
    InUse,
}

fn state(tombstone: &Tombstone, horizon: u32) -> State {
    if tombstone.kind == kind::VOID {
        return State::Nothing;
    }
    if tombstone.deletes() && tombstone.is_frozen() {
        return State::Deleted;
    }
    match (xid_status(tombstone.xmax), tombstone.deletes()) {
        (XidStatus::Aborted, _) | (XidStatus::Committed, false) => State::Nothing,
        (XidStatus::Committed, true) if xid_precedes(tombstone.xmax, horizon) => State::Deleted,
        _ => State::InUse,
    }
}

/// Whether nobody will ever see a run's rows.
pub fn is_dead(run: &RunEntry) -> bool {
    run.flags & FLAG_DEAD != 0
        || (run.flags & FLAG_FROZEN == 0 && xid_status(run.xmin) == XidStatus::Aborted)
}

fn is_seen_by_all(run: &RunEntry, horizon: u32) -> bool {
    run.flags & FLAG_FROZEN != 0
        || (xid_precedes(run.xmin, horizon) && xid_status(run.xmin) == XidStatus::Committed)
}

/// Rows that are not sealed, and that somebody may see.
pub fn open_rows(content: &Content) -> u64 {
    (0..content.runs.len())
        .map(|index| content.runs.get(index))
        .filter(|run| run.flags & FLAG_SEALED == 0 && !is_dead(run))
        .map(|run| u64::from(run.rows))
        .sum()
}

/// Rows that are not sealed and that some snapshot may not see, because they are not committed or were after it was
/// taken.
pub fn unseen_rows(content: &Content, horizon: u32) -> u64 {
    (0..content.runs.len())
        .map(|index| content.runs.get(index))
        .filter(|run| {
            run.flags & FLAG_SEALED == 0 && !is_dead(run) && !is_seen_by_all(run, horizon)
        })
        .map(|run| u64::from(run.rows))
        .sum()
}

/// How many tombstones rows of a range have.
pub fn tombstones_within(tombstones: &Tombstones, range: &Range) -> usize {
    tombstones
        .range(range.first_row, range.end_row)
        .map(|(_, list)| list.len())
        .sum()
}

/// The newest transaction whose work on a range everybody is taken to see once it is sealed; for rows that are fading, the
/// one that they fade by.
pub fn newest_xid(content: &Content, range: &Range) -> Option<u32> {
    let runs = (content.runs.first_ending_after(range.first_row)..content.runs.len())
        .map(|index| content.runs.get(index))
        .take_while(|run| run.first_row < range.end_row)
        .filter(|run| run.flags & (FLAG_FROZEN | FLAG_FADING) != FLAG_FROZEN && !is_dead(run))
        .map(|run| run.xmin);
    let tombstones = content.tombstones.borrow();
    let deletions = tombstones
        .range(range.first_row, range.end_row)
        .flat_map(|(_, list)| list)
        .filter(|t| t.deletes() && !t.is_frozen() && xid_status(t.xmax) == XidStatus::Committed)
        .map(|t| t.xmax);
    runs.chain(deletions).reduce(|newest, xid| {
        if xid_precedes(newest, xid) {
            xid
        } else {
            newest
        }
    })
}

/// The next range to seal, of what begins within some rows; `None` when there is nothing to do.
pub fn next(
    content: &Content,
    shape: &TableShape,
    horizon: u32,
    limits: &Limits,
    rows: &std::ops::Range<u64>,
) -> Option<Range> {
    let units = next_units(content, shape, horizon, limits, rows)?;
    Some(range_of(content, horizon, &units))
}

/// Whether there is a range to seal.
pub fn is_any(content: &Content, shape: &TableShape, horizon: u32, limits: &Limits) -> bool {
    next_units(content, shape, horizon, limits, &(0..u64::MAX)).is_some()
}

fn next_units(
    content: &Content,
    shape: &TableShape,
    horizon: u32,
    limits: &Limits,
    rows: &std::ops::Range<u64>,
) -> Option<Vec<Unit>> {
    let mut units = units(content, horizon);
    units.retain(|unit| rows.contains(&unit.first_row));
    let memory = Memory::of(shape, limits);
    let chosen = choose(&units, &memory, limits)?;
    Some(units[chosen].to_vec())
}

fn units(content: &Content, horizon: u32) -> Vec<Unit> {
    let tombstones = content.tombstones.borrow();
    let mut units: Vec<Unit> = Vec::new();
    for index in 0..content.runs.len() {
        if index % 65_536 == 0 {
            CHECK_FOR_INTERRUPTS();
        }
        let run = content.runs.get(index);
        let part = (run.flags & FLAG_SEALED != 0)
            .then(|| content.parts.of_row(run.first_row))
            .flatten();
        if let (Some(part), Some(last)) = (part, units.last_mut())
            && last.is_part
            && last.end_row == part.end_row
        {
            last.bytes += u64::from(run.bytes);
            continue;
        }
        let (first_row, end_row, rows) = match part {
            Some(part) => (part.first_row, part.end_row, part.rows),
            None => (run.first_row, run.end_row(), u64::from(run.rows)),
        };
        let dead = part.is_none() && is_dead(&run);
        let mut unit = Unit {
            first_row,
            end_row,
            rows: if dead { 0 } else { rows },
            deleted: 0,
            bytes: run.bytes.into(),
            is_part: part.is_some(),
            // What is in object storage stays as it is, and what is fading goes as it is.
            is_ripe: part.map_or_else(
                || dead || is_seen_by_all(&run, horizon),
                |part| !part.is_remote() && !part.is_fading(),
            ),
        };
        if unit.is_ripe && !dead {
            for (_, list) in tombstones.range(first_row, end_row) {
                let states = || list.iter().map(|t| state(t, horizon));
                unit.is_ripe &= states().all(|state| state != State::InUse);
                unit.deleted += u64::from(states().any(|state| state == State::Deleted));
            }
            unit.rows -= unit.deleted.min(unit.rows);
        }
        units.push(unit);
    }
    units
}

/// How much fits into memory.
struct Memory {
    bytes: u64,
    bytes_a_row: u64,
}

impl Memory {
    fn of(shape: &TableShape, limits: &Limits) -> Memory {
        // The row's number, twice its widest key while it is sorted, and its place before and after in a place map.
        let sorting = 4 + 2 * 16 + 2 * 4;
        Memory {
            bytes: limits.memory,
            bytes_a_row: shape.bytes_a_row() + sorting,
        }
    }

    /// Where the units from `from` on end of which `fits` holds and that fit together; one always does.
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

    /// Whether so many rows, holes among them, fit, of so many bytes stored.
    fn takes(&self, span: u64, stored: u64) -> bool {
        span <= u64::from(u32::MAX)
            && span.saturating_mul(self.bytes_a_row) <= self.bytes
            && stored.saturating_mul(EXPANSION) <= self.bytes
    }
}

fn choose(units: &[Unit], memory: &Memory, limits: &Limits) -> Option<std::ops::Range<usize>> {
    runs_and_parts(units, memory, limits)
        .or_else(|| open_runs(units, memory, limits))
        .or_else(|| thinned_part(units, limits))
        .or_else(|| parts_of_a_size(units, memory, limits))
}

/// Ripe neighbours, runs and parts, where equal keys are to meet.
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

/// A part of which much is deleted.
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

/// The size that a part of so many rows is of.
fn size_of_part(rows: u64, limits: &Limits) -> u32 {
    match rows / limits.rows_min.saturating_mul(SMALL_PART_TIMES).max(1) {
        0 => 0,
        times => times.ilog2() / 3 + 1,
    }
}

/// Ripe neighbouring parts, enough of them of one size and the others smaller; a thorough sealer takes any.
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

/// The rows of some units that are kept.
fn range_of(content: &Content, horizon: u32, units: &[Unit]) -> Range {
    let (first_row, end_row) = match units {
        [first, .., last] => (first.first_row, last.end_row),
        [only] => (only.first_row, only.end_row),
        [] => (0, 0),
    };
    let tombstones = content.tombstones.borrow();
    let mut rows = Vec::with_capacity(units.iter().map(|unit| unit.rows as usize).sum());
    for index in content.runs.first_ending_after(first_row)..content.runs.len() {
        let run = content.runs.get(index);
        if run.first_row >= end_row {
            break;
        }
        if is_dead(&run) {
            continue;
        }
        let mut next = run.first_row;
        let mut keep = |to: u64, after: u64| {
            rows.extend((next..to).map(|row| (row - first_row) as u32));
            next = after;
        };
        for (row, list) in tombstones.range(run.first_row, run.end_row()) {
            if list.iter().any(|t| state(t, horizon) == State::Deleted) {
                keep(row, row + 1);
            }
        }
        keep(run.end_row(), 0);
    }
    Range {
        first_row,
        end_row,
        rows,
    }
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

    /// Units one after the other: rows of each, and whether it is a part.
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
        // Rows that dedup took out lie between.
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
        // Small ones beside a large one do not make it be written again.
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
