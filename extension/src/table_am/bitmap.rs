//! Bitmap scans: the rows of a block of a bitmap of tuple ids.
//!
//! A bitmap has entry numbers ([`crate::table::entry_numbers`]), in virtual blocks of [`BLOCK_ROWS`]. The rows of a
//! block are read in the order in which they lie, so that those of one run are decoded together.

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::routine::ScanState;
use crate::pg::slot::Slot;
use crate::table::scan::Scan;
use crate::table::tid::{self, BLOCK_ROWS};

/// The rows of one block of a bitmap.
#[derive(Default)]
pub struct BitmapRows {
    /// Row numbers that are still to be looked at, the last of the table first.
    rows: Vec<u64>,
    /// Whether the query has to check its conditions for each of them.
    #[cfg(feature = "pg18")]
    recheck: bool,
}

impl BitmapRows {
    /// Takes up the rows with some entry numbers.
    fn start(&mut self, scan: &Scan<'_>, numbers: impl Iterator<Item = u64>) {
        self.rows.clear();
        self.rows.extend(numbers.filter_map(|number| {
            scan.read_entry(number);
            scan.row_of_entry(number)
        }));
        self.rows.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Stores the next row that the scan's snapshot sees; false at the end of the block.
    fn next(&mut self, scan: &mut Scan<'static>, slot: Slot<'static>) -> bool {
        while let Some(row) = self.rows.pop() {
            if scan.store_row(row, slot) {
                return true;
            }
        }
        slot.clear();
        false
    }
}

/// The entry numbers of a block, from offsets; all that the block can have, without them.
fn numbers(block: u32, offsets: Option<&[u16]>) -> impl Iterator<Item = u64> {
    let all = 1..=BLOCK_ROWS as u16;
    let all = offsets.is_none().then_some(all).into_iter().flatten();
    let offsets = offsets.unwrap_or_default().iter().copied();
    offsets
        .chain(all)
        .map(move |offset| tid::number(block, offset))
}

#[cfg(not(feature = "pg18"))]
#[pg_guard]
pub unsafe extern "C-unwind" fn scan_bitmap_next_block(
    descriptor: pg_sys::TableScanDesc,
    block: *mut pg_sys::TBMIterateResult,
) -> bool {
    // SAFETY: made by `scan_begin`; the block is the bitmap's. A negative count says that its offsets were lost.
    unsafe {
        let state = ScanState::of(descriptor);
        let count = (*block).ntuples;
        let exact = (count >= 0).then(|| (*block).offsets.as_slice(count as usize));
        let mut rows = std::mem::take(&mut state.bitmap);
        rows.start(state.scan(), numbers((*block).blockno, exact));
        state.bitmap = rows;
        true
    }
}

#[cfg(not(feature = "pg18"))]
#[pg_guard]
pub unsafe extern "C-unwind" fn scan_bitmap_next_tuple(
    descriptor: pg_sys::TableScanDesc,
    _block: *mut pg_sys::TBMIterateResult,
    slot: *mut pg_sys::TupleTableSlot,
) -> bool {
    // SAFETY: made by `scan_begin`; the slot is of the scanned table.
    unsafe { next_row(ScanState::of(descriptor), Slot::new(slot)) }
}

fn next_row(state: &mut ScanState, slot: Slot<'static>) -> bool {
    let mut rows = std::mem::take(&mut state.bitmap);
    let found = rows.next(state.scan(), slot);
    state.bitmap = rows;
    found
}

/// The next row of all blocks: this version leaves the bitmap to the access method.
#[cfg(feature = "pg18")]
#[pg_guard]
pub unsafe extern "C-unwind" fn scan_bitmap_next_tuple(
    descriptor: pg_sys::TableScanDesc,
    slot: *mut pg_sys::TupleTableSlot,
    recheck: *mut bool,
    lossy_blocks: *mut u64,
    exact_blocks: *mut u64,
) -> bool {
    const OFFSETS_MAX: usize = BLOCK_ROWS as usize;
    // SAFETY: made by `scan_begin`; the bitmap's iterator, the slot and the places for results are the executor's.
    unsafe {
        let state = ScanState::of(descriptor);
        loop {
            if next_row(state, Slot::new(slot)) {
                *recheck = state.bitmap.recheck;
                return true;
            }
            let mut block = pg_sys::TBMIterateResult::default();
            let iterator = &raw mut (*descriptor).st.rs_tbmiterator;
            if !pg_sys::tbm_iterate(iterator, &raw mut block) {
                return false;
            }
            let mut offsets = [0u16; OFFSETS_MAX];
            let exact = (!block.lossy).then(|| {
                let count = pg_sys::tbm_extract_page_tuple(
                    &raw mut block,
                    offsets.as_mut_ptr(),
                    OFFSETS_MAX as u32,
                );
                count as usize
            });
            *(if block.lossy {
                lossy_blocks
            } else {
                exact_blocks
            }) += 1;
            let mut rows = std::mem::take(&mut state.bitmap);
            rows.start(
                state.scan(),
                numbers(block.blockno, exact.map(|count| &offsets[..count])),
            );
            rows.recheck = block.recheck;
            state.bitmap = rows;
        }
    }
}
