//! A part whose images are in object storage takes the place of the part that they were read from.
//!
//! ```text
//! write     the part's index anew, with no blocks, to blocks that nothing names yet
//! add       one record: an entry for the same range, with the same rows, tombstones and origin; the generation is raised
//! settle    by VACUUM, as after a sealing: once no scan can be left that reads the local part, its blocks are free
//! ```
//!
//! Row numbers mean what they meant, so nobody has to be kept from using them: deletions and updates under way go on, and
//! the arena keeps its segments. Ending early leaves blocks for the next sweep, or a part that is remote.

use pgrx::pg_sys;

use super::part::{FLAG_PACKED, FLAG_REMOTE, LivePart, PartEntry};
use super::part_image;
use super::seal::{self, Numbers};
use crate::pg::lock::SpaceLock;
use crate::table_am::reader::Content;

/// Makes a part remote. All of its images are durable elsewhere, under the keys that its origin gives them.
///
/// # Safety
/// `relation` is an open lanes table, locked in ShareUpdateExclusive mode; the part is a live one of `content`, which was
/// read under that lock.
pub unsafe fn make_remote(relation: pg_sys::Relation, content: &Content, part: &LivePart) {
    // SAFETY: the caller's promise: nobody else adds parts.
    unsafe {
        let stream = part_image::stream(&part.index(relation).to_remote(), None);
        let space = SpaceLock::share(relation);
        let (block, bytes) = part_image::write_stream(relation, &stream);
        let entry = PartEntry {
            block,
            bytes,
            flags: part.entry.flags & !FLAG_PACKED | FLAG_REMOTE,
            ..part.entry
        };
        let meta = &content.meta;
        let generation = seal::add_parts(relation, meta, &mut [entry], Numbers::AsBefore);
        drop(space);
        if let Some(earlier) = content.runs.cached() {
            seal::hand_over(relation, earlier, meta.generation, generation, None);
        }
    }
}
