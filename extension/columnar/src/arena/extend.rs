//! Appending rows to a segment.
//!
//! ```text
//! find or make the segment, pinned; check that these are its next rows
//! prepare every column:  everything that needs memory: validity bitmaps, items, dictionary entries
//! write every column:    cannot fail, touches only memory past the resident rows; widen its zones
//! publish the new number of resident rows
//! ```
//!
//! A failure therefore leaves only memory for the next attempt, and dictionary entries that the
//! next attempt finds.
//!
//! Whether a column that may have a dictionary has one in a new segment:
//!
//! | incoming rows | segment before | new segment |
//! |---|---|---|
//! | plain | any | plain |
//! | coded | not resident, or the number of the new one is a multiple of 16: a trial | coded |
//! | coded | its dictionary paid: less than 256 items in use, or 2 rows for each of them | coded |
//! | coded | its dictionary did not pay | plain |
//! | coded, 1,024 rows or more, 4 rows for each item | plain | coded |
//! | coded, others | plain | plain |
//!
//! A new dictionary begins as a copy of the dictionary of the segment before, if that is coded and
//! the new segment is not a trial: see [`super::dictionary`].

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::Locks;
use super::core::Core;
use super::dictionary;
use super::items_write::{self, Prepared};
use super::lane_write;
use super::layout::Layout;
use super::segment::SegmentPin;
use super::segment_head::{self, ColumnHead, SHAPE, SegmentHead};
use super::zones;
use crate::bits;
use crate::column::Column;
use crate::dictionary::ROWS_PER_ITEM_MIN;
use crate::kind::LaneKind;
use crate::limits::{COLUMNS_MAX, SMALL_SEGMENTS, segment_rows_max};

/// The number of distinct items from which on a segment's dictionary must pay.
pub(super) const JUDGED_ITEMS_MIN: usize = 256;

/// The distance of segments in which a column with too few repeated items tries a dictionary again.
/// One of them is the first segment of full size, in which more items repeat.
const TRIAL_SEGMENTS: u32 = 16;
const _: () = assert!(SMALL_SEGMENTS.is_multiple_of(TRIAL_SEGMENTS));

/// The rows, and the rows for each item, that are needed to return to a dictionary after a plain
/// segment.
const RETURN_ROWS_MIN: usize = 1_024;
const RETURN_ROWS_PER_ITEM_MIN: usize = 4;

/// Rows to be copied into a segment.
pub(super) struct Batch<'a> {
    pub(super) kinds: &'a [LaneKind],
    pub(super) from: u32,
    pub(super) columns: &'a [Column],
    pub(super) first: usize,
    pub(super) rows: usize,
    pub(super) gap_ok: bool,
}

impl Batch<'_> {
    /// Whether the columns are of the kinds, have the rows, and the rows fit the segment.
    pub(super) fn is_sound(&self, segment: u32) -> bool {
        let rows_max = segment_rows_max(segment) as usize;
        let Some(end) = self.first.checked_add(self.rows) else {
            return false;
        };
        self.columns.len() == self.kinds.len()
            && self.columns.len() <= COLUMNS_MAX
            && self.rows <= rows_max
            && self.from as usize + self.rows <= rows_max
            && self
                .columns
                .iter()
                .zip(self.kinds)
                .all(|(column, &kind)| column.kind() == kind && column.rows() >= end)
    }

    /// The bitmap of a column if any of these rows is NULL there.
    pub(super) fn validity<'c>(&self, column: &'c Column) -> Option<&'c [u64]> {
        column
            .validity()
            .filter(|words| bits::count_ones(words, self.first, self.rows) < self.rows)
    }
}

/// Allocates what hangs off a segment.
pub(super) struct Room<'a, L> {
    pub(super) core: Core,
    pub(super) locks: &'a L,
    pub(super) pin: &'a SegmentPin,
}

impl<L: Locks> Room<'_, L> {
    pub(super) fn allocate(&self, bytes: u64) -> Option<u64> {
        self.locks
            .with_allocator(|| self.core.allocate_for(self.pin.head(), bytes))
    }
}

/// Extends a segment of the relation in a slot by a sound batch. Under the relation's lock. Whether
/// the rows are resident now.
pub(super) fn extend<L: Locks>(
    core: Core,
    locks: &L,
    slot: u32,
    segment: u32,
    batch: &Batch<'_>,
) -> bool {
    let Some(pin) = find_or_make(core, locks, slot, segment, batch) else {
        return false;
    };
    if pin.is_images() || !has_kinds(&pin, batch.kinds) {
        locks.with_allocator(|| segment_head::retire(&core, pin.entry(), pin.segment()));
        return false;
    }
    let resident = pin.rows();
    if batch.from < resident || (batch.from > resident && !batch.gap_ok) {
        return false;
    }
    let room = Room {
        core,
        locks,
        pin: &pin,
    };
    let Some(prepared) = prepare(&room, batch) else {
        if resident == 0 {
            // An empty segment is useless.
            locks.with_allocator(|| segment_head::retire(&core, pin.entry(), pin.segment()));
        }
        return false;
    };
    for (index, (column, prepared)) in batch.columns.iter().zip(&prepared).enumerate() {
        let (head, layout) = (pin.column(index), pin.layout(index));
        lane_write::clear_gap(core, head, layout, resident, batch.from);
        if let Some(validity) = batch.validity(column) {
            lane_write::write_validity(core, head, validity, batch);
        }
        if matches!(layout.kind, LaneKind::Varlena { .. }) {
            items_write::write(core, head, layout, column, prepared, batch);
        } else {
            lane_write::write_values(core, head, column, batch);
        }
        pin.widen_zones(index, column, batch, resident);
    }
    let rows = batch.from + batch.rows as u32;
    pin.head().rows.store(rows.max(resident), Release);
    true
}

/// Everything that may fail.
fn prepare<L: Locks>(room: &Room<'_, L>, batch: &Batch<'_>) -> Option<Vec<Prepared>> {
    let mut prepared = Vec::with_capacity(batch.columns.len());
    for (index, column) in batch.columns.iter().enumerate() {
        let (head, layout) = (room.pin.column(index), room.pin.layout(index));
        if layout.kind != LaneKind::Absent && batch.validity(column).is_some() {
            lane_write::prepare_validity(room, head)?;
        }
        prepared.push(match layout.kind {
            LaneKind::Varlena { .. } => items_write::prepare(room, head, layout, column, batch)?,
            _ => Prepared::Nothing,
        });
    }
    Some(prepared)
}

/// Whether a segment's columns are of these kinds.
fn has_kinds(pin: &SegmentPin, kinds: &[LaneKind]) -> bool {
    pin.columns() == kinds.len()
        && kinds
            .iter()
            .enumerate()
            .all(|(index, &kind)| pin.layout(index).kind == kind)
}

/// Pins a segment for a batch. If it is not resident and may begin with the batch, it is made.
fn find_or_make<L: Locks>(
    core: Core,
    locks: &L,
    slot: u32,
    segment: u32,
    batch: &Batch<'_>,
) -> Option<SegmentPin> {
    let segments = &core.slot(slot).segments;
    let find = |segment: u32| segments.get(core.memory, SHAPE, segment.into());
    if let Some(entry) = find(segment)
        && let Some(pin) = SegmentPin::new(core, entry)
    {
        return Some(pin);
    }
    if batch.from > 0 && !batch.gap_ok {
        return None;
    }
    let entry = segments.ensure(core.memory, SHAPE, segment.into(), |bytes| {
        locks.with_allocator(|| core.allocate(bytes))
    })?;
    let rows_max = segment_rows_max(segment);
    let mut before = segment
        .checked_sub(1)
        .filter(|_| !segment.is_multiple_of(TRIAL_SEGMENTS))
        .and_then(find)
        .and_then(|entry| SegmentPin::new(core, entry))
        .filter(|before| !before.is_images());
    let (layouts, inherits) = batch
        .columns
        .iter()
        .enumerate()
        .map(|(index, column)| plan_column(core, column, before.as_ref(), index, rows_max))
        .unzip::<_, _, Vec<_>, Vec<_>>();
    let make = || locks.with_allocator(|| make(core, slot, entry, &layouts, rows_max));
    let made = make().or_else(|| {
        // The segment before may have to be evicted for the new one.
        before.take()?;
        make()
    })?;
    let pin = SegmentPin::adopt(core, entry, made);
    map_lanes(core, &pin, &layouts, rows_max);
    if let Some(before) = before {
        let room = Room {
            core,
            locks,
            pin: &pin,
        };
        for index in (0..layouts.len()).filter(|&index| inherits[index]) {
            let packed = items_write::is_packed(layouts[index]);
            // Without room for a copy, the segment begins with an empty dictionary.
            let _ = dictionary::inherit(&room, pin.column(index), packed, before.column(index));
        }
    }
    Some(pin)
}

/// Maps the lanes of a new segment for writing. Not under the allocator's lock: it may take the
/// kernel some hundred microseconds.
fn map_lanes(core: Core, pin: &SegmentPin, layouts: &[Layout], rows_max: u32) {
    for (index, layout) in layouts.iter().enumerate() {
        let (lane, bytes) = (
            pin.column(index).lane.load(Relaxed),
            layout.lane_bytes(rows_max),
        );
        // SAFETY: the lane has so many bytes; a column without a lane has none.
        unsafe { core.memory.map_for_writing(lane, bytes) };
    }
}

/// How a column of a new segment is laid out, and whether it takes over the dictionary of the
/// segment before. See the head of this file.
fn plan_column(
    core: Core,
    column: &Column,
    before: Option<&SegmentPin>,
    index: usize,
    rows_max: u32,
) -> (Layout, bool) {
    let kind = column.kind();
    let layout = |coded| Layout { kind, coded };
    let Some(items) = column.dictionary_items() else {
        return (layout(false), false);
    };
    let Some(before) =
        before.filter(|before| index < before.columns() && before.layout(index).kind == kind)
    else {
        return (layout(true), false);
    };
    if !before.layout(index).coded {
        let rows = column.rows() - column.null_count();
        let returns = rows >= RETURN_ROWS_MIN && rows >= items * RETURN_ROWS_PER_ITEM_MIN;
        return (layout(returns), false);
    }
    let head = before.column(index);
    let used = match head.items.load(Relaxed) as usize {
        items if items < JUDGED_ITEMS_MIN => items,
        _ => dictionary::used_items(core, before, index),
    };
    let coded = used < JUDGED_ITEMS_MIN || before.rows() as usize >= used * ROWS_PER_ITEM_MIN;
    let inherits = coded && dictionary::is_worth_inheriting(core, head, used, rows_max);
    (layout(coded), inherits)
}

/// Makes a segment without rows and puts it into its entry, pinned. Under both locks.
fn make(core: Core, slot: u32, entry: u64, layouts: &[Layout], rows_max: u32) -> Option<u64> {
    let bytes = SegmentHead::bytes(layouts.len()) + zones::bytes(layouts.len(), rows_max);
    let lanes = layouts.iter().map(|layout| layout.lane_bytes(rows_max));
    if !core.keep_budget(slot, bytes + lanes.sum::<u64>()) {
        return None;
    }
    let segment = core.allocate(bytes)?;
    // SAFETY: a fresh payload of that many bytes; zero is a valid state of all heads in it.
    let head = unsafe {
        core.memory.bytes(segment).write_bytes(0, bytes as usize);
        core.memory.head::<SegmentHead>(segment)
    };
    head.bytes.store(core.block_bytes(segment), Relaxed);
    head.entry.store(entry, Relaxed);
    head.rows_max.store(rows_max, Relaxed);
    head.columns.store(layouts.len() as u32, Relaxed);
    for (index, layout) in layouts.iter().enumerate() {
        let offset = segment_head::column_offset(segment, index);
        // SAFETY: the heads of the columns follow that of the segment.
        let column = unsafe { core.memory.head::<ColumnHead>(offset) };
        if make_column(core, head, column, *layout, rows_max).is_none() {
            core.free_segment(segment);
            return None;
        }
    }
    // SAFETY: the elements of the table are entry words.
    let entry = unsafe { core.memory.head::<AtomicU64>(entry) };
    segment_head::publish(entry, segment);
    segment_head::join_ring(&core, segment, slot);
    Some(segment)
}

/// Makes the lane and the dictionary of a column of a new segment.
fn make_column(
    core: Core,
    head: &SegmentHead,
    column: &ColumnHead,
    layout: Layout,
    rows_max: u32,
) -> Option<()> {
    column.layout.store(layout.word(), Relaxed);
    let lane_bytes = layout.lane_bytes(rows_max);
    if lane_bytes > 0 {
        column
            .lane
            .store(core.allocate_for(head, lane_bytes)?, Relaxed);
    }
    if layout.coded {
        dictionary::make(core, head, column)?;
    }
    Some(())
}
