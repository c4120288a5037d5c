//! Row numbers as tuple ids: 256 rows in each virtual block, with offsets from 1.
//!
//! PostgreSQL's bitmaps of tuple ids take at most `MaxHeapTuplesPerPage` offsets in a block, which is
//! 291 for pages of 8 KiB. So a virtual block has no more rows than that. Block numbers end at
//! `MaxBlockNumber`, so a table has at most 1.1 × 10¹² rows.

use pgrx::pg_sys;

use crate::pg::ports::{MAX_BLOCK, MaxHeapTuplesPerPage};

/// The rows of a virtual block.
pub const BLOCK_ROWS: u64 = 256;
/// The number of rows that tuple ids can name.
pub const ROWS_MAX: u64 = BLOCK_ROWS * MAX_BLOCK as u64;

const _: () = assert!(BLOCK_ROWS as usize <= MaxHeapTuplesPerPage);

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

/// The row of a tuple id; `None`: the id names no row (offset 0 or past a virtual block's end).
pub fn to_row(tid: &pg_sys::ItemPointerData) -> Option<u64> {
    let offset = tid.ip_posid;
    let names_row = (1..=BLOCK_ROWS).contains(&u64::from(offset));
    names_row.then(|| number(block(tid), offset))
}

fn block(tid: &pg_sys::ItemPointerData) -> u32 {
    u32::from(tid.ip_blkid.bi_hi) << 16 | u32::from(tid.ip_blkid.bi_lo)
}

/// The row of a block and an offset that name one.
pub fn number(block: u32, offset: u16) -> u64 {
    u64::from(block) * BLOCK_ROWS + u64::from(offset) - 1
}

/// The first row at or after a tuple id, for ranges. Any offset is allowed.
pub fn lower_bound(tid: &pg_sys::ItemPointerData) -> u64 {
    u64::from(block(tid)) * BLOCK_ROWS + (tid.ip_posid as u64).saturating_sub(1).min(BLOCK_ROWS)
}

/// The row after the last one at or before a tuple id, for ranges. Any offset is allowed.
pub fn upper_bound(tid: &pg_sys::ItemPointerData) -> u64 {
    u64::from(block(tid)) * BLOCK_ROWS + (tid.ip_posid as u64).min(BLOCK_ROWS)
}
