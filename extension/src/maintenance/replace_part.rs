//! Replacing a local part by a remote one, after its images were put into object storage.
//!
//! ```text
//! digest    the images are read once more, and a digest of each is computed, to compare it with what comes back
//! write     the part's index is written anew, with digests and without blocks, to blocks that nothing names yet
//! add       one record: an entry with the same range, rows, tombstones and origin; the generation is raised
//! settle    by VACUUM, as after a sealing: once no scan reads the local part any more, its blocks are free
//! ```
//!
//! Row numbers keep their meaning, so nobody has to be kept from using them: deletions and updates in
//! progress continue, and the arena keeps the segments. If replacing ends early, the next sweep frees
//! the blocks that it has written.

use lanes_columnar::digest::Digest;
use lanes_columnar::image::Image;

use super::seal::{self, Numbers};
use crate::error;
use crate::pg::lock::SpaceLock;
use crate::pg::ports;
use crate::pg::table::OpenTable;
use crate::storage::part::{FLAG_PACKED, FLAG_REMOTE, LivePart, PartEntry};
use crate::storage::part_image::{self, BehindIndex};
use crate::table::generation;
use crate::table::reader::Content;

/// Makes a part remote. All of its images are durable in object storage, under the keys that its
/// origin gives them.
pub fn make_remote(table: OpenTable<'_>, content: &Content, part: &LivePart) {
    let remote = part.index(table).to_remote(&digests(table, part));
    let behind = BehindIndex {
        rests: None,
        ..part_image::read_behind_index(table, &part.entry)
    };
    let stream = part_image::stream(&remote, &behind);
    let space = SpaceLock::share(table);
    let (block, bytes) = part_image::write_stream(table, &stream);
    let entry = PartEntry {
        block,
        bytes,
        flags: part.entry.flags & !FLAG_PACKED | FLAG_REMOTE,
        ..part.entry
    };
    let meta = &content.meta;
    let generation = seal::add_parts(table, meta, &mut [entry], Numbers::AsBefore);
    drop(space);
    if let Some(earlier) = content.runs.cached() {
        generation::hand_over(table, earlier, meta.generation, generation, None);
    }
}

/// The digests of a local part's images, computed from its pages. The gateway that took the images
/// is not asked.
fn digests(table: OpenTable<'_>, part: &LivePart) -> Vec<Digest> {
    let index = part.index(table);
    let mut image = Vec::new();
    let digest = |place: usize| {
        image.clear();
        let first_row = index.segments[place].first_row;
        let is_read = read_checked(table, part, place, &mut image);
        if let Err(failure) = is_read {
            error::corrupt(&format!("the segment at row {first_row}: {failure}"));
        }
        ports::CHECK_FOR_INTERRUPTS();
        Digest::of(&image)
    };
    (0..index.segments.len()).map(digest).collect()
}

/// Appends an image of a local part to `image`. `Err`: it is damaged, and must not go to object
/// storage in place of the pages that show where the damage is.
pub fn read_checked(
    table: OpenTable<'_>,
    part: &LivePart,
    place: usize,
    image: &mut Vec<u8>,
) -> Result<(), String> {
    {
        let index = part.index(table);
        part_image::read_image(table, &part.entry, index, place, image)?;
    }
    Image::parse(image).map(drop).map_err(|e| e.to_string())
}
