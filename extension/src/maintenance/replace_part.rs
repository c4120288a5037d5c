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

use super::seal::{self, Numbers};
use crate::error;
use crate::pg::lock::SpaceLock;
use crate::pg::ports;
use crate::pg::table::OpenTable;
use crate::storage::part::{FLAG_PACKED, FLAG_REMOTE, LivePart, PartEntry};
use crate::storage::part_image::{self, BehindIndex};
use crate::table::generation;
use crate::table::reader::Content;

/// Makes a part remote. All of its images are durable elsewhere, under the keys that its origin gives them.
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

/// The digests of a local part's images, as its pages have them: whoever took them away is not asked.
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

/// Appends an image of a local part to `image`. One that is damaged must not take the place of a page that tells where
/// the damage is.
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
