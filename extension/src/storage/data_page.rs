//! Data pages: one run's image as a byte stream over consecutive blocks.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 24 | 4 | magic `LDAT` |
//! | 28 | 4 | first block of the run |
//! | 32 | 4 | this page's place in the run, from 0 |
//! | 36 | 4 | unused |
//! | 40 | ≤ 8152 | the image's next bytes, up to `pd_lower` |
//!
//! Reads use a ring of few shared buffers, as a large sequential scan does, and pages at the end of the
//! file are written past the shared buffers ([`crate::pg::fresh`]): columns stay in memory in the
//! arena, and should not take memory twice. An image that does not fit into the arena is read from the
//! operating system's cache each time.

use std::ops::Range;

use super::extent::Allocation;
use crate::pg::fresh::FreshPages;
use crate::pg::page::{self, LockedPage, get_u32, log_fresh, put_u32};
use crate::pg::ports::{BLCKSZ, CHECK_FOR_INTERRUPTS};
use crate::pg::table::OpenTable;

const MAGIC: u32 = u32::from_le_bytes(*b"LDAT");
const AT_MAGIC: usize = 24;
const AT_RUN: usize = 28;
const AT_SEQUENCE: usize = 32;
const AT_UNUSED: usize = 36;
const AT_STREAM: usize = 40;
/// Bytes of an image that one page holds.
pub const STREAM_BYTES: usize = BLCKSZ - AT_STREAM;

/// The number of blocks that an image of so many bytes takes.
pub fn blocks_for(bytes: usize) -> u32 {
    bytes.div_ceil(STREAM_BYTES) as u32
}

/// Writes an image to its blocks and WAL-logs them.
pub fn write(table: OpenTable<'_>, blocks: Allocation, image: &[u8]) {
    let first = blocks.first;
    let streams = image.chunks(STREAM_BYTES).enumerate();
    if blocks.is_fresh {
        let mut pages = FreshPages::begin(table, first);
        for (sequence, stream) in streams {
            pages.fill(|page| fill(page, first, sequence, stream));
        }
        return pages.finish();
    }
    for (sequence, stream) in streams {
        {
            let mut page = LockedPage::zeroed(table, first + sequence as u32);
            page.overwrite(|bytes| fill(bytes, first, sequence, stream));
        }
        CHECK_FOR_INTERRUPTS();
    }
    log_fresh(table, first, blocks_for(image.len()))
}

/// Writes a page except for its header.
fn fill(page: &mut [u8], first: u32, sequence: usize, stream: &[u8]) {
    let end = AT_STREAM + stream.len();
    put_u32(page, AT_MAGIC, MAGIC);
    put_u32(page, AT_RUN, first);
    put_u32(page, AT_SEQUENCE, sequence as u32);
    put_u32(page, AT_UNUSED, 0);
    page[AT_STREAM..end].copy_from_slice(stream);
    page[end..].fill(0);
    page::set_lower(page, end);
}

/// Fills `into` with the bytes that the blocks from `first` on hold, beginning at the byte `from`.
/// The caller knows that there are so many bytes. Unlike [`read`], this function is for pages that
/// should stay in shared buffers, because others read them too. `Err`: a block belongs to another
/// run.
pub fn copy(
    table: OpenTable<'_>,
    first: u32,
    from: usize,
    mut into: &mut [u8],
) -> Result<(), String> {
    let mut at = from;
    while !into.is_empty() {
        let (sequence, within) = ((at / STREAM_BYTES) as u32, at % STREAM_BYTES);
        let page = LockedPage::share(table, first + sequence);
        let bytes = checked(page.bytes(), first, sequence)?;
        let (here, rest) = into.split_at_mut((STREAM_BYTES - within).min(into.len()));
        here.copy_from_slice(&bytes[AT_STREAM + within..][..here.len()]);
        at += here.len();
        into = rest;
    }
    Ok(())
}

/// The bytes of a page, if it is the one with this number of the run.
fn checked(bytes: &[u8], first: u32, sequence: u32) -> Result<&[u8], String> {
    let is_it = get_u32(bytes, AT_MAGIC) == MAGIC
        && get_u32(bytes, AT_RUN) == first
        && get_u32(bytes, AT_SEQUENCE) == sequence;
    is_it.then_some(bytes).ok_or_else(|| {
        format!(
            "block {} is not part {sequence} of the run at block {first}",
            first + sequence
        )
    })
}

/// Appends a range of the bytes that the blocks from `first` on hold to `image`. `Err`: a block
/// belongs to another run.
pub fn read(
    table: OpenTable<'_>,
    first: u32,
    range: Range<usize>,
    image: &mut Vec<u8>,
) -> Result<(), String> {
    let blocks = table.blocks();
    if blocks < first.saturating_add(blocks_for(range.end)) {
        return Err(format!(
            "the run at block {first} is longer than the file of {blocks} blocks"
        ));
    }
    for sequence in (range.start / STREAM_BYTES) as u32..blocks_for(range.end) {
        let page = LockedPage::share_in_passing(table, first + sequence);
        let bytes = checked(page.bytes(), first, sequence)?;
        let before = sequence as usize * STREAM_BYTES;
        let from = range.start.saturating_sub(before);
        let to = (range.end - before).min(STREAM_BYTES);
        image.extend_from_slice(&bytes[AT_STREAM + from..AT_STREAM + to]);
        drop(page);
        CHECK_FOR_INTERRUPTS();
    }
    Ok(())
}
