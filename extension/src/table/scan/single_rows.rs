//! Single rows of sealed segments that are not decoded in the arena.
//!
//! An index scan asks for rows by their numbers. Opening a segment takes milliseconds if its image has to be read from
//! pages, or if it has long texts, and a single row takes a small part of that. So the first rows of a segment are
//! decoded each for itself, and the segment is opened once more of its rows are wanted in a row.
//!
//! | the segment's image is | a row is decoded from |
//! |---|---|
//! | kept by the arena | that, until it was opened so often that the segment is decoded, if there is room |
//! | on pages, and the arena has no room for it | the pages with the row's vectors |
//! | on pages, and the arena has room | the pages, but each fourth time the segment is opened, and the arena keeps the image |

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

/// So many rows of a segment in a row are decoded each for itself.
const ROWS_A_SEGMENT_MAX: u32 = 16;
/// Of so many single rows of images that the arena could keep, one has its segment opened.
const ROWS_AN_OPENING: u32 = 4;

/// The single rows of a scan so far.
#[derive(Default)]
pub struct SingleRows {
    /// The segment of the last one.
    segment: u32,
    /// How many rows of this segment were decoded each for itself.
    of_segment: u32,
    /// How many rows were read from pages.
    from_pages: u32,
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

    /// Whether the next row from pages has its segment opened instead.
    fn opens_segment(&mut self) -> bool {
        self.from_pages += 1;
        self.from_pages.is_multiple_of(ROWS_AN_OPENING)
    }
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
                if self.single_rows.opens_segment() && self.may_load(content, sealed.bytes) {
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
