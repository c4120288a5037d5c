//! Rows as tuple ids: 2,048 rows a virtual block, offsets from 1.
//!
//! Postgres asserts that an offset is at most `MaxOffsetNumber` (page bytes / 4 = 2,048 for 8 KiB pages), so a virtual
//! block can be no larger; block numbers end at `MaxBlockNumber`, which leaves 8.8 × 10¹² rows a table. (Bitmap heap
//! scans assume at most 291 offsets a block: the routine offers none.)

use pgrx::pg_sys;

use crate::pg::ports::MAX_BLOCK;

/// Rows of a virtual block.
pub const BLOCK_ROWS: u64 = 2048;
/// Rows that tuple ids can name.
pub const ROWS_MAX: u64 = BLOCK_ROWS * MAX_BLOCK as u64;

const _: () =
    assert!(BLOCK_ROWS as usize <= pg_sys::BLCKSZ as usize / size_of::<pg_sys::ItemIdData>());

/// The tuple id of a row.
pub fn from_row(row: u64) -> pg_sys::ItemPointerData {
    let mut tid = pg_sys::ItemPointerData::default();
    pgrx::itemptr::item_pointer_set_all(
        &mut tid,
        (row / BLOCK_ROWS) as u32,
        (row % BLOCK_ROWS) as u16 + 1,
    );
    tid
}

/// The row of a tuple id; `None` for ids that name no row (offset 0 or past a virtual block's end).
pub fn to_row(tid: &pg_sys::ItemPointerData) -> Option<u64> {
    let block = ((tid.ip_blkid.bi_hi as u64) << 16) | tid.ip_blkid.bi_lo as u64;
    match tid.ip_posid as u64 {
        offset @ 1..=BLOCK_ROWS => Some(block * BLOCK_ROWS + offset - 1),
        _ => None,
    }
}

/// The first row at or after a tuple id, for ranges: any offset is legal.
pub fn lower_bound(tid: &pg_sys::ItemPointerData) -> u64 {
    let block = ((tid.ip_blkid.bi_hi as u64) << 16) | tid.ip_blkid.bi_lo as u64;
    block * BLOCK_ROWS + (tid.ip_posid as u64).saturating_sub(1).min(BLOCK_ROWS)
}

/// The row after the last one at or before a tuple id, for ranges: any offset is legal.
pub fn upper_bound(tid: &pg_sys::ItemPointerData) -> u64 {
    let block = ((tid.ip_blkid.bi_hi as u64) << 16) | tid.ip_blkid.bi_lo as u64;
    block * BLOCK_ROWS + (tid.ip_posid as u64).min(BLOCK_ROWS)
}
