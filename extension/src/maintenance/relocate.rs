//! Moving sealed parts from the end of the file to free blocks before them, so that the end can be cut
//! off ([`super::shorten`]).
//!
//! ```text
//! plan    from the end of the file downwards: free blocks and pages of chains are passed; images of settled parts are
//!         planned to move to the lowest free blocks that take them, if those lie before; any other block ends it
//! move    part by part: the images' own pages are written anew, and then the part's stream (storage::part_image)
//! add     one record: an entry with the same range, rows, tombstones and origin; the generation is raised
//! settle  by the next VACUUM, as after a sealing: then the old blocks of the images are free
//! ```
//!
//! Row numbers keep their meaning, so nobody has to be kept from using them. If moving ends early, the
//! next sweep frees the blocks that it has written. The images are copied unchanged, at most
//! [`MOVED_MAX`] blocks in one VACUUM. They are moved only if shortening the file would be worth it.

use std::collections::{BTreeMap, HashMap};

use pgrx::pg_sys;

use super::seal::{self, Numbers};
use super::shorten::Effort;
use crate::error;
use crate::pg::lock::SpaceLock;
use crate::pg::ports;
use crate::pg::table::OpenTable;
use crate::storage::chain::Chain;
use crate::storage::extent::{self, Allocation, Extent};
use crate::storage::metapage::Meta;
use crate::storage::part::{LivePart, PartEntry};
use crate::storage::{data_page, part_image};
use crate::table::generation;
use crate::table::reader::{Content, Reader};

/// The most blocks that one VACUUM moves: 64 MB.
const MOVED_MAX: u32 = 8192;

/// Consecutive blocks of a part: the own pages of a segment's image, or the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    first: u32,
    blocks: u32,
    /// The part's number.
    part: u64,
    /// The first row of the segment; `None`: the piece is the stream.
    segment: Option<u64>,
}

/// First rows of the segments to move, by the number of their part.
type Moves = BTreeMap<u64, Vec<u64>>;

/// Moves parts down if that is worth the effort. The caller is the table's only VACUUM. `unlinked`
/// are the pages that it has taken out of chains. Returns whether there was something to move: the
/// caller then takes a transaction id ([`seal::let_settle`]).
pub fn move_down(table: OpenTable<'_>, unlinked: &[u32], effort: Effort) -> bool {
    let moves = plan(table, unlinked, effort);
    let is_any = !moves.is_empty();
    for (number, segments) in moves {
        let mut reader = Reader::open(table);
        let Some(content) = reader.content.take() else {
            break;
        };
        let mut live = content.parts.live().iter();
        if let Some(part) = live.find(|part| part.entry.number == number) {
            move_part(table, &content, part, &segments);
        }
        ports::CHECK_FOR_INTERRUPTS();
        // Others that wait for the table, such as an ALTER TABLE, go first.
        if table.has_waiters(pg_sys::ShareUpdateExclusiveLock) {
            break;
        }
    }
    is_any
}

fn plan(table: OpenTable<'_>, unlinked: &[u32], effort: Effort) -> Moves {
    let mut moves = Moves::new();
    {
        if Meta::load(table).is_none() {
            return moves;
        }
        let (length, free) = extent::survey(table);
        if !effort.is_worth(free.iter().map(|e| e.blocks).sum(), length) {
            return moves;
        }
        let mut reader = Reader::open(table);
        let Some(content) = reader.content.take() else {
            return moves;
        };
        let mut passable = unlinked.to_vec();
        for chain in Chain::ALL {
            passable.extend(chain.blocks(table, &content.meta));
        }
        passable.sort_unstable();
        let pieces = pieces(table, &content);
        let planned = choose(length, &free, &passable, &pieces);
        if !effort.is_worth(planned.gained, length) {
            return moves;
        }
        for piece in &pieces[..planned.pieces] {
            moves.entry(piece.part).or_default().extend(piece.segment);
        }
    }
    moves
}

/// The pieces that can be moved, beginning with the last in the file.
fn pieces(table: OpenTable<'_>, content: &Content) -> Vec<Piece> {
    let mut pieces = Vec::new();
    // Images that old snapshots may still read would stay where they are, and fading parts are
    // dropped soon.
    let settled = content.parts.live().iter().filter(|p| p.entry.xid == 0);
    for part in settled.filter(|part| part.entry.bytes > 0 && !part.entry.is_fading()) {
        let entry = &part.entry;
        let mut add = |first, bytes, segment| {
            pieces.push(Piece {
                first,
                blocks: data_page::blocks_for(bytes),
                part: entry.number,
                segment,
            });
        };
        add(entry.block, entry.bytes as usize, None);
        if !entry.is_remote() {
            for segment in &part.index(table).segments {
                let own = part_image::own_bytes(entry, segment.bytes);
                if own > 0 {
                    add(segment.block, own, Some(segment.first_row));
                }
            }
        }
    }
    pieces.sort_unstable_by_key(|piece| std::cmp::Reverse(piece.first));
    pieces
}

/// How many of the pieces to move, and by how much that lowers the last block in use.
#[derive(Debug, Default, PartialEq, Eq)]
struct Planned {
    pieces: usize,
    gained: u32,
}

/// Goes down from the end of the file. `free` and `passable` ascend, `pieces` descend.
fn choose(length: u32, free: &[Extent], passable: &[u32], pieces: &[Piece]) -> Planned {
    let (mut at, mut trail, mut room) = (length, free, free.to_vec());
    let (mut moved, mut targets_end) = (0, 0);
    let mut end_before = None;
    // A part whose images move gets a new stream, which takes room wherever the old one lies.
    let is_stream = |piece: &&Piece| piece.segment.is_none();
    let mut streams: HashMap<u64, u32> = pieces
        .iter()
        .filter(is_stream)
        .map(|stream| (stream.part, stream.blocks))
        .collect();
    let mut planned = Planned::default();
    while let Some(last) = at.checked_sub(1)
        && at > targets_end
    {
        match trail {
            [before @ .., extent] if extent.first + extent.blocks == at => {
                at = extent.first;
                trail = before;
            }
            _ if passable.binary_search(&last).is_ok() => at = last,
            _ => {
                // Up to here nothing has to be moved.
                let end = *end_before.get_or_insert(at);
                planned.gained = end - at.max(targets_end);
                let Some(piece) = pieces
                    .get(planned.pieces)
                    .filter(|piece| piece.first + piece.blocks == at)
                else {
                    return planned;
                };
                let image = piece.segment.map(|_| piece.blocks);
                for blocks in image.into_iter().chain(streams.remove(&piece.part)) {
                    let Some(target) = extent::take(&mut room, blocks, piece.first) else {
                        return planned;
                    };
                    targets_end = targets_end.max(target + blocks);
                    moved += blocks;
                    if moved > MOVED_MAX {
                        return planned;
                    }
                }
                at = piece.first;
                planned.pieces += 1;
            }
        }
    }
    planned.gained = end_before.map_or(0, |end| end - at.max(targets_end));
    planned
}

/// Moves the own pages of some segments of a part, and its stream.
fn move_part(table: OpenTable<'_>, content: &Content, part: &LivePart, segments: &[u64]) {
    let space = SpaceLock::share(table);
    let mut index = part.index(table).as_ref().clone();
    let behind = part_image::read_behind_index(table, &part.entry);
    let mut image = Vec::new();
    let moved = |first_row: &u64| segments.contains(first_row);
    for segment in index.segments.iter_mut().filter(|s| moved(&s.first_row)) {
        let own = part_image::own_bytes(&part.entry, segment.bytes);
        let blocks = data_page::blocks_for(own);
        // Others have taken the free blocks since: the image stays where it is.
        let Some(target) = extent::allocate_below(table, blocks, segment.block) else {
            continue;
        };
        image.clear();
        if let Err(failure) = data_page::read(table, segment.block, 0..own, &mut image) {
            error::corrupt(&format!(
                "the segment at row {}: {failure}",
                segment.first_row
            ));
        }
        data_page::write(table, target, &image);
        segment.block = target.first;
    }
    let bytes = part_image::stream(&index, &behind);
    let target = place_of_stream(table, part, bytes.len());
    data_page::write(table, target, &bytes);
    let entry = PartEntry {
        block: target.first,
        bytes: bytes.len() as u32,
        ..part.entry
    };
    let meta = &content.meta;
    let generation = seal::add_parts(table, meta, &mut [entry], Numbers::AsBefore);
    drop(space);
    if let Some(earlier) = content.runs.cached() {
        generation::hand_over(table, earlier, meta.generation, generation, None);
    }
}

fn place_of_stream(table: OpenTable<'_>, part: &LivePart, bytes: usize) -> Allocation {
    let blocks = data_page::blocks_for(bytes);
    extent::allocate_below(table, blocks, part.entry.block)
        .unwrap_or_else(|| extent::allocate(table, blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents(list: &[(u32, u32)]) -> Vec<Extent> {
        list.iter()
            .map(|&(first, blocks)| Extent { first, blocks })
            .collect()
    }

    /// First block and blocks of each.
    fn pieces(list: &[(u32, u32)]) -> Vec<Piece> {
        list.iter()
            .map(|&(first, blocks)| Piece {
                first,
                blocks,
                part: 7,
                segment: Some(u64::from(first)),
            })
            .collect()
    }

    fn stream(first: u32, blocks: u32) -> Piece {
        let part = 7;
        Piece {
            first,
            blocks,
            part,
            segment: None,
        }
    }

    fn planned(pieces: usize, gained: u32) -> Planned {
        Planned { pieces, gained }
    }

    #[test]
    fn what_lies_at_the_end_goes_to_the_lowest_room() {
        let free = extents(&[(3, 20), (40, 50)]);
        let list = pieces(&[(95, 5), (90, 5), (30, 10)]);
        assert_eq!(choose(100, &free, &[], &list), planned(3, 70));
        // The last of them would not lie lower.
        let free = extents(&[(3, 12), (40, 50)]);
        assert_eq!(choose(100, &free, &[], &list), planned(2, 60));
    }

    #[test]
    fn a_free_end_is_not_counted_and_pages_of_chains_are_passed() {
        let free = extents(&[(3, 20), (30, 60), (96, 4)]);
        let list = pieces(&[(90, 5)]);
        assert_eq!(choose(100, &free, &[95], &list), planned(1, 65));
    }

    #[test]
    fn a_block_in_use_ends_it() {
        let free = extents(&[(3, 20), (30, 60)]);
        let list = pieces(&[(90, 5)]);
        assert_eq!(choose(100, &free, &[], &list), planned(0, 0));
        let free = extents(&[(3, 20), (30, 60), (95, 5)]);
        let open = pieces(&[(80, 10)]);
        assert_eq!(choose(100, &free, &[], &open), planned(0, 0));
    }

    #[test]
    fn a_part_that_moves_needs_room_for_a_stream() {
        let mut list = pieces(&[(95, 5), (90, 5)]);
        list.push(stream(10, 8));
        let room = extents(&[(20, 18)]);
        assert_eq!(choose(100, &room, &[], &list), planned(2, 10));
        // One block less: the first image has it, the stream has not.
        let room = extents(&[(20, 12)]);
        assert_eq!(choose(100, &room, &[], &list), planned(0, 0));
        // At the end itself it takes no more room than that.
        let list = [vec![stream(100, 8)], pieces(&[(95, 5)])].concat();
        let room = extents(&[(20, 13)]);
        assert_eq!(choose(108, &room, &[], &list), planned(2, 13));
    }

    #[test]
    fn nothing_is_moved_twice() {
        // The first one goes right before the second: both are as low as they can be together.
        let free = extents(&[(10, 5), (20, 75)]);
        let list = pieces(&[(95, 5), (15, 5)]);
        assert_eq!(choose(100, &free, &[], &list), planned(1, 80));
    }
}
