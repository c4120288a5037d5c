//! Where the rows of a segment are read from: the arena, or their images.

use lanes_columnar::limits::{segment_first_row, segment_of};
use lanes_columnar::streamed::StreamMemory;

use super::Scan;
use super::remote_rows::is_resident;
use crate::gucs;
use crate::pg::shmem;
use crate::table::reader::{Access, Content, SegmentView, Streaming};
use crate::table::stream::SealedRows;

/// A segment is decoded after it was opened for few of its rows as often as this times
/// `lanes.decode_after`. Opening it takes some 20 µs, decoding it 1 ms.
pub(super) const OPENS_A_LOOK: u32 = 8;

/// How many rows of a segment a reader wants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// All that pass its conditions: a scan.
    Many,
    /// Rows that it knows by their numbers, so few that the segment is not decoded for them.
    Few,
}

impl Scan<'_> {
    /// Opens the window on rows of one segment.
    ///
    /// | the rows are | they are read |
    /// |---|---|
    /// | in the arena, decoded | there |
    /// | all sealed | from their images, which the arena keeps if it can |
    /// | all sealed, most of them looked at `lanes.decode_after` times, and many wanted | from the arena, to which they are decoded |
    /// | all sealed, opened [`OPENS_A_LOOK`] times as often, and there is room in the arena | from the arena, to which they are decoded |
    /// | others | from the arena, to which they are decoded |
    ///
    /// Once the arena is full and this scan has taken its share of it from other rows, the scan
    /// adds nothing more. So the rows that others read again and again stay in the arena.
    pub fn open_within_share(
        &self,
        content: &Content,
        (from, to): (u64, u64),
        wanted: Wanted,
        memory: &mut StreamMemory,
    ) -> SegmentView {
        let segment = segment_of(from);
        let decoded_bytes = || (to - segment_first_row(segment)) * self.reader.shape.bytes_a_row();
        if is_resident(content, segment, to) {
            return self.view(content, from..to, Access::Resident);
        }
        let sealed = SealedRows::find(&content.runs, from, to);
        // Whether the segment is streamed, and whether its images are kept in that case.
        let (streams, keep) = match &sealed {
            Some(sealed) if gucs::decode_after() > 0 => {
                let after = gucs::decode_after();
                match sealed.reads() {
                    Some((looks, _)) if looks >= after && wanted == Wanted::Many => {
                        (!self.may_load(content, decoded_bytes()), false)
                    }
                    Some((_, opens)) => {
                        let is_opened_often = opens / OPENS_A_LOOK >= after;
                        (!is_opened_often || !has_room(decoded_bytes()), false)
                    }
                    None => (true, self.may_load(content, sealed.bytes)),
                }
            }
            _ => (!self.may_load(content, decoded_bytes()), false),
        };
        if streams {
            let streaming = Streaming {
                attributes: self.wanted.as_deref(),
                sealed,
                keep_images: keep,
                memory,
            };
            return self.view(content, from..to, Access::Streamed(streaming));
        }
        // Images make way for lanes only when nobody has pinned them.
        drop(sealed);
        self.view(content, from..to, Access::Resident)
    }

    /// Whether so many bytes of a table may be put into the arena: it has room, or this scan may
    /// still take some from other rows.
    pub(super) fn may_load(&self, content: &Content, bytes: u64) -> bool {
        let budget = content.runs.cached().map_or(0, |c| c.stats().bytes_max);
        if budget != 0 && bytes > budget {
            return false;
        }
        if has_room(bytes) {
            return true;
        }
        let left = self.may_displace.get().checked_sub(bytes);
        self.may_displace
            .set(left.unwrap_or(self.may_displace.get()));
        left.is_some()
    }
}

/// Whether the arena has room for so many bytes of lanes and what belongs to them, without evicting
/// anything.
pub(super) fn has_room(bytes: u64) -> bool {
    shmem::arena().is_some_and(|arena| {
        let stats = arena.stats();
        stats.bytes_usable.saturating_sub(stats.bytes_used) >= 2 * bytes
    })
}
