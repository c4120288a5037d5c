//! Bitmap scans: the rows of a block of a bitmap of tuple ids.
//!
//! A bitmap has entry numbers ([`crate::table::entry_numbers`]), in virtual blocks of [`BLOCK_ROWS`]. The rows of a
//! block are read in the order in which they lie, so that those of one run are decoded together.

use crate::pg::slot::Slot;
use crate::table::scan::Scan;
use crate::table::tid::{self, BLOCK_ROWS};

/// The rows of one block of a bitmap.
#[derive(Default)]
pub struct BitmapRows {
    /// Row numbers that are still to be looked at, the last of the table first.
    rows: Vec<u64>,
}

impl BitmapRows {
    /// Looks up the rows that have these offsets in a block. `None` stands for all offsets of the block.
    pub fn start(&mut self, scan: &Scan<'_>, block: u32, offsets: Option<&[u16]>) {
        self.rows.clear();
        self.rows
            .extend(numbers(block, offsets).filter_map(|number| {
                scan.read_entry(number);
                scan.row_of_entry(number)
            }));
        self.rows.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Stores the next row that the scan's snapshot sees; false at the end of the block.
    pub fn next(&mut self, scan: &mut Scan<'static>, slot: Slot<'static>) -> bool {
        while let Some(row) = self.rows.pop() {
            if scan.store_row(row, slot) {
                return true;
            }
        }
        slot.clear();
        false
    }
}

/// The entry numbers of some offsets in a block. `None` stands for all offsets of the block.
fn numbers(block: u32, offsets: Option<&[u16]>) -> impl Iterator<Item = u64> {
    let all = 1..=BLOCK_ROWS as u16;
    let all = offsets.is_none().then_some(all).into_iter().flatten();
    let offsets = offsets.unwrap_or_default().iter().copied();
    offsets
        .chain(all)
        .map(move |offset| tid::number(block, offset))
}
