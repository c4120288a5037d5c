//! A resident segment, pinned for reading.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::dictionary;
use super::held;
use super::layout::Layout;
use super::relation::Relation;
use super::segment_head::{self, ColumnHead, SegmentHead};
use super::{Locks, core::Core};
use crate::decimal_lane::DecimalLane;
use crate::kind::LaneKind;
use crate::lane::{DictionaryView, Lane, LaneData};
use crate::zone_map::Zone;

/// A pinned segment: it is neither evicted nor freed while this value lives, and its rows up to
/// [`rows_resident`](Self::rows_resident) do not change. Dropping it touches two atomics and takes
/// no lock, so it may happen anywhere, also while an error unwinds.
pub struct Segment<L: Locks> {
    pin: SegmentPin,
    // This field follows the pin so that it is dropped after it: the entry is in the relation's
    // table.
    relation: Relation<L>,
}

/// The pin of a segment. Its owner also has the relation pinned.
pub(super) struct SegmentPin {
    core: Core,
    entry: u64,
    segment: u64,
}

impl SegmentPin {
    /// Pins the segment of the entry at this offset, if it is resident.
    pub(super) fn new(core: Core, entry: u64) -> Option<Self> {
        // SAFETY: the elements of the table are entry words.
        let segment = segment_head::pin(unsafe { core.memory.head(entry) })?;
        Some(Self::adopt(core, entry, segment))
    }

    /// Takes over a pin that the caller has.
    pub(super) fn adopt(core: Core, entry: u64, segment: u64) -> Self {
        held::note_segment(&core, entry, segment);
        SegmentPin {
            core,
            entry,
            segment,
        }
    }

    #[inline]
    pub(super) fn core(&self) -> &Core {
        &self.core
    }

    pub(super) fn segment(&self) -> u64 {
        self.segment
    }

    pub(super) fn entry(&self) -> &AtomicU64 {
        // SAFETY: the entry lives as long as the relation is pinned.
        unsafe { self.core.head(self.entry) }
    }

    #[inline]
    pub(super) fn head(&self) -> &SegmentHead {
        // SAFETY: a pinned segment is not freed.
        unsafe { self.core.head(self.segment) }
    }

    /// The head of a column below the segment's number of columns.
    #[inline]
    pub(super) fn column(&self, column: usize) -> &ColumnHead {
        // SAFETY: the heads of all columns follow the head of the pinned segment.
        unsafe {
            self.core
                .head(segment_head::column_offset(self.segment, column))
        }
    }

    #[inline]
    pub(super) fn columns(&self) -> usize {
        self.head().columns.load(Acquire) as usize
    }

    #[inline]
    pub(super) fn rows(&self) -> u32 {
        self.head().rows.load(Acquire)
    }

    /// Whether images are kept here, and no lanes.
    pub(super) fn is_images(&self) -> bool {
        self.head().rows_max.load(Relaxed) == 0
    }

    #[inline]
    pub(super) fn layout(&self, column: usize) -> Layout {
        Layout::of_word(self.column(column).layout.load(Acquire))
    }
}

impl Drop for SegmentPin {
    fn drop(&mut self) {
        held::forget_segment(&self.core, self.entry, self.segment);
        segment_head::unpin(&self.core, self.entry(), self.segment);
    }
}

impl<L: Locks> Segment<L> {
    pub(super) fn new(pin: SegmentPin, relation: Relation<L>) -> Self {
        Segment { pin, relation }
    }

    /// The number of rows that may be read now, gaps between runs included. Read it before
    /// [`lane`](Self::lane): a lane contains at least the rows that were resident when it was
    /// created, and a bitmap of NULLs may be created together with the first NULL.
    #[inline]
    pub fn rows_resident(&self) -> u32 {
        self.pin.rows()
    }

    /// Columns that the segment was made with.
    #[inline]
    pub fn columns(&self) -> usize {
        self.pin.columns()
    }

    /// The layout of a column in memory; `None` past the last column.
    #[inline]
    pub fn kind(&self, column: usize) -> Option<LaneKind> {
        (column < self.columns()).then(|| self.pin.layout(column).kind)
    }

    /// One column, good for the rows that were resident before the call, as long as the segment is
    /// pinned. All NULL past the last column.
    #[inline]
    pub fn lane(&self, column: usize) -> Lane {
        if column >= self.columns() {
            return Lane::NULL;
        }
        let (head, layout) = (self.pin.column(column), self.pin.layout(column));
        let memory = self.pin.core.memory;
        // SAFETY: offsets in a column's head name bytes of the area, freed with the segment.
        let bytes = |offset: &AtomicU64| unsafe { memory.bytes(offset.load(Acquire)) }.cast_const();
        let lane = bytes(&head.lane);
        let heap = memory.base().cast_const();
        let data = match layout.kind {
            LaneKind::Absent => return Lane::NULL,
            LaneKind::Bool => LaneData::Bool(lane.cast()),
            LaneKind::Fixed { stride, .. } => LaneData::Fixed {
                values: lane,
                stride: stride.into(),
            },
            LaneKind::Varlena { .. } if layout.coded => LaneData::Codes {
                codes: lane.cast(),
                slots: bytes(&head.dictionary).cast(),
                heap,
            },
            LaneKind::Varlena { .. } => LaneData::Offsets {
                slots: lane.cast(),
                heap,
            },
        };
        let validity = match head.validity.load(Acquire) {
            0 => std::ptr::null(),
            _ => bytes(&head.validity).cast(),
        };
        let decimals = match layout.kind {
            LaneKind::Varlena { .. } if !layout.coded => self.pin.decimals(column),
            _ => DecimalLane::NONE,
        };
        Lane {
            data,
            validity,
            decimals,
        }
    }

    /// Makes room for the integers of numerics that readers wanted, as far as the arena has room to spare. Lanes that
    /// are created afterwards have it.
    pub fn make_wanted_room(&self) {
        for column in (0..self.columns()).filter(|&column| self.pin.wants_decimals(column)) {
            self.relation
                .with_allocator(|| self.pin.make_room_for_decimals(column));
        }
    }

    /// The dictionary of a column whose lane is [`LaneData::Codes`]; `None` for other columns. Read
    /// it before [`lane`](Self::lane): the lane then has a slot for each of these items, and each
    /// of them may be read.
    #[inline]
    pub fn dictionary(&self, column: usize) -> Option<DictionaryView> {
        let is_coded = column < self.columns() && self.pin.layout(column).coded;
        is_coded.then(|| dictionary::view(self.pin.column(column)))
    }

    /// The zone of one vector of a column: of [`VECTOR_ROWS`](crate::limits::VECTOR_ROWS) rows, or
    /// of those that are resident. Returns `None` past the last column or the resident rows. The
    /// zone covers every row that was resident before the call. It is [exact](Zone::exact) if the
    /// vector is full, because no append can then change it; otherwise it serves only to skip rows.
    ///
    /// Rows of runs that are not visible to the caller are included. Gaps between runs are not
    /// included, whatever their lanes contain: they count as NULL.
    #[inline]
    pub fn zone(&self, column: usize, vector: usize) -> Option<Zone> {
        self.pin.zone(column, vector)
    }
}
