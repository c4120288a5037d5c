//! Which rows are sealed next, and which parts are merged.
//!
//! A table is a list of *units*: its runs and parts. A unit is *ripe* when everybody sees the same of
//! it:
//! - the transaction of a run committed before every snapshot, or aborted;
//! - no row of the unit is being deleted, updated or locked;
//! - no row was deleted or updated by a transaction that some snapshot does not see yet.
//!
//! 1. Ripe neighbouring runs are sealed together, as many as memory allows, if they have
//!    [`Limits::open_rows_min`] rows.
//! 2. A part of which many rows are deleted is sealed anew.
//! 3. Ripe neighbouring parts are merged when [`choice::MERGED_MIN`] of them are of one size; smaller
//!    ones between them are merged too. Sizes differ by a factor of 8. So each row is written as often
//!    as the logarithm of the largest part's size, to the base of 8. And old parts are not merged with
//!    new rows again and again, so retention can drop them as a whole.

use lanes_columnar::arena::RunEntry;

use crate::pg::ports::CHECK_FOR_INTERRUPTS;
use crate::storage::directory::{FLAG_DEAD, FLAG_FADING, FLAG_FROZEN, FLAG_SEALED};
use crate::storage::tombstone::{Tombstone, Tombstones, kind};
use crate::table::reader::Content;
use crate::table::shape::TableShape;
use crate::table::visibility::{XidStatus, xid_precedes, xid_status};

mod choice;

use choice::{Memory, choose};

/// How much is sealed at a time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Fewer rows than this stay unsealed.
    pub rows_min: u64,
    /// Fewer open rows than this stay unsealed. The number is lower if some rows have to be sealed
    /// soon.
    pub open_rows_min: u64,
    /// The bytes of memory that one range may take.
    pub memory: u64,
    /// Everything that can be sealed and merged is sealed and merged, however little it is.
    pub thorough: bool,
    /// Rows with equal keys have to meet, so thorough sealing takes runs and parts together.
    /// Otherwise the part of rows that dedup took out of the runs would lie between the other
    /// parts, and keep them apart until no snapshot sees it.
    pub dedup: bool,
}

/// Rows to seal together: whole runs or parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    pub first_row: u64,
    pub end_row: u64,
    /// The rows that are kept, as distances from the first row.
    pub rows: Vec<u32>,
}

/// A run or a part.
#[derive(Clone, Copy, Debug)]
struct Unit {
    first_row: u64,
    end_row: u64,
    /// The number of rows that are kept.
    rows: u64,
    deleted: u64,
    /// The stored bytes.
    bytes: u64,
    is_part: bool,
    is_ripe: bool,
}

/// The meaning of a tombstone for its row.
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

/// The number of rows that are not sealed and that somebody may see.
pub fn open_rows(content: &Content) -> u64 {
    (0..content.runs.len())
        .map(|index| content.runs.get(index))
        .filter(|run| run.flags & FLAG_SEALED == 0 && !is_dead(run))
        .map(|run| u64::from(run.rows))
        .sum()
}

/// The number of rows that are not sealed and that some snapshot may not see: they are not
/// committed, or were committed after it was taken.
pub fn unseen_rows(content: &Content, horizon: u32) -> u64 {
    (0..content.runs.len())
        .map(|index| content.runs.get(index))
        .filter(|run| {
            run.flags & FLAG_SEALED == 0 && !is_dead(run) && !is_seen_by_all(run, horizon)
        })
        .map(|run| u64::from(run.rows))
        .sum()
}

/// The number of tombstones of the rows of a range.
pub fn tombstones_within(tombstones: &Tombstones, range: &Range) -> usize {
    tombstones
        .range(range.first_row, range.end_row)
        .map(|(_, list)| list.len())
        .sum()
}

/// The newest transaction whose work on a range counts as seen by everybody once it is sealed. For
/// fading rows it is the transaction that makes them fade.
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

/// The next range to seal, among the units that begin within `rows`; `None`: there is nothing to
/// do.
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
            // Units in object storage stay as they are, and fading parts are dropped as they are.
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

/// The range of some units, with the rows that are kept.
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
