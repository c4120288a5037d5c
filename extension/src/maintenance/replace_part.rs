//! A part whose images are in object storage takes the place of the part that they were read from.
//!
//! ```text
//! digest    the images are read once more, and a digest of each is taken: what comes back is compared with it
//! write     the part's index anew, with digests and no blocks, to blocks that nothing names yet
//! add       one record: an entry for the same range, with the same rows, tombstones and origin; the generation is raised
//! settle    by VACUUM, as after a sealing: once no scan can be left that reads the local part, its blocks are free
//! ```
//!
//! Row numbers mean what they meant, so nobody has to be kept from using them: deletions and updates under way go on, and
//! the arena keeps its segments. Ending early leaves blocks for the next sweep, or a part that is remote.

use lanes_columnar::digest::Digest;
use lanes_columnar::image::Image;
use pgrx::pg_sys;

use super::seal::{self, Numbers};
use crate::error;
use crate::pg::lock::SpaceLock;
use crate::pg::ports;
use crate::storage::part::{FLAG_PACKED, FLAG_REMOTE, LivePart, PartEntry};
use crate::storage::part_image;
use crate::table::reader::Content;

/// Makes a part remote. All of its images are durable elsewhere, under the keys that its origin gives them.
///
/// # Safety
/// `relation` is an open lanes table, locked in ShareUpdateExclusive mode; the part is a live one of `content`, which was
/// read under that lock.
pub unsafe fn make_remote(relation: pg_sys::Relation, content: &Content, part: &LivePart) {
    // SAFETY: the caller's promise: nobody else adds parts.
    unsafe {
        let remote = part.index(relation).to_remote(&digests(relation, part));
        let stream = part_image::stream(&remote, None);
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

/// The digests of a local part's images, as its pages have them: whoever took them away is not asked.
unsafe fn digests(relation: pg_sys::Relation, part: &LivePart) -> Vec<Digest> {
    // SAFETY: `make_remote`'s caller promised an open table.
    unsafe {
        let index = part.index(relation);
        let mut image = Vec::new();
        let digest = |place: usize| {
            image.clear();
            let first_row = index.segments[place].first_row;
            let is_read = read_checked(relation, part, place, &mut image);
            if let Err(failure) = is_read {
                error::corrupt(&format!("the segment at row {first_row}: {failure}"));
            }
            ports::CHECK_FOR_INTERRUPTS();
            Digest::of(&image)
        };
        (0..index.segments.len()).map(digest).collect()
    }
}

/// Appends an image of a local part to `image`. One that is damaged must not take the place of a page that tells where
/// the damage is.
///
/// # Safety
/// `relation` is the open lanes table that the part is a live and local one of.
pub unsafe fn read_checked(
    relation: pg_sys::Relation,
    part: &LivePart,
    place: usize,
    image: &mut Vec<u8>,
) -> Result<(), String> {
    // SAFETY: the caller's promise.
    unsafe {
        let index = part.index(relation);
        part_image::read_image(relation, &part.entry, index, place, image)?;
    }
    Image::parse(image).map(drop).map_err(|e| e.to_string())
}
