//! Single rows of sealed segments that are not decoded in the arena.
//!
//! An index scan asks for rows by their numbers. To open a segment takes milliseconds if its image has to be read from
//! pages, or if it has long texts. A single row takes a small part of that. So the first 16 rows that a scan wants of a
//! segment, one after the other, are decoded each for itself. For the next row the scan opens the segment.
//!
//! | the segment's image is | a single row is decoded from | the segment is opened instead |
//! |---|---|---|
//! | kept by the arena | the image | when it was opened so often that it is to be decoded, and the arena has room |
//! | on pages, and the arena has room | the pages with the row's vectors | for each fourth row of a backend; the arena then keeps the image |
//! | on pages, and the arena is full | the pages with the row's vectors | for each 64th row; the image takes the place of others |

use std::cell::Cell;
use std::rc::Rc;

use lanes_columnar::arena::RunEntry;
use lanes_columnar::limits::{segment_of, segment_rows_max};

use super::Scan;
use super::open_view::{OPENS_A_LOOK, has_room};
use crate::gucs;
use crate::pg::slot::{RowHeader, Slot};
use crate::table::reader::{Content, SegmentView};
use crate::table::stream::SealedRows;
use crate::table::{decode, tid};

/// The most rows of a segment, one after the other, that are decoded each for itself.
const ROWS_A_SEGMENT_MAX: u32 = 16;
/// One of so many single rows from pages has its segment opened if the arena has room.
const ROWS_AN_OPENING: u32 = 4;
/// One of so many single rows from pages has its segment opened if its image displaces others.
const ROWS_A_DISPLACEMENT: u32 = 64;

thread_local! {
    /// How many single rows this backend has read from pages. A scan often reads only one, so scans share the count.
    static FROM_PAGES: Cell<u32> = const { Cell::new(0) };
}

/// The single rows of a scan so far.
#[derive(Default)]
pub struct SingleRows {
    /// The segment of the last one.
    segment: u32,
    /// How many rows of this segment were decoded each for itself.
    of_segment: u32,
}

impl SingleRows {
    /// Whether the next row of this segment may be decoded for itself.
    fn may_take(&mut self, segment: u32) -> bool {
        if self.segment != segment {
            (self.segment, self.of_segment) = (segment, 0);
        }
        self.of_segment += 1;
        self.of_segment <= ROWS_A_SEGMENT_MAX
    }
}

/// Counts a row on pages. Returns whether its segment is opened, so that the arena keeps the image of so many bytes.
fn opens_segment(image_bytes: u64) -> bool {
    let count = FROM_PAGES.get().wrapping_add(1);
    FROM_PAGES.set(count);
    count.is_multiple_of(match has_room(image_bytes) {
        true => ROWS_AN_OPENING,
        false => ROWS_A_DISPLACEMENT,
    })
}

impl<'a> Scan<'a> {
    /// Stores a row of a sealed run in the slot, decoded for itself. Returns false if its segment is to be opened.
    pub(super) fn store_single(
        &mut self,
        content: &Content,
        run: &RunEntry,
        row: u64,
        slot: Slot<'a>,
    ) -> bool {
        let after = gucs::decode_after();
        if after == 0 || !self.single_rows.may_take(segment_of(row)) {
            return false;
        }
        let Some(sealed) = SealedRows::find(&content.runs, row, row + 1) else {
            return false;
        };
        match sealed.reads() {
            Some((_, opens)) => {
                let segment = u64::from(segment_rows_max(segment_of(row)));
                let decoded_bytes = segment * self.reader.shape.bytes_a_row();
                if opens / OPENS_A_LOOK >= after && has_room(decoded_bytes) {
                    return false;
                }
            }
            None => {
                if opens_segment(sealed.bytes) && self.may_load(content, sealed.bytes) {
                    return false;
                }
            }
        }
        let (table, kept) = (self.reader.table, sealed.kept_image(run));
        let shape = &self.reader.shape;
        let decoded = decode::decode_sealed_row(table, shape, run, row, kept.as_deref());
        let Some(decoded) = decoded else {
            return false;
        };
        if kept.is_some() {
            table.count_blocks_found(1);
        }
        let view = SegmentView::of_decoded(&self.reader, Rc::new(decoded));
        let header = RowHeader::new(run.xmin, run.cmin);
        let place = view.place(row);
        slot.store(
            view.outlet(),
            place,
            tid::from_row(row),
            table.oid(),
            header,
        );
        // The slot may be read after the view is gone.
        slot.detach();
        true
    }
}
