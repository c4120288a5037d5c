//! ANALYZE and TABLESAMPLE.
//!
//! ANALYZE samples physical blocks: block `b` of `n` stands for the rows from `b/n` to `(b+1)/n` of the table.
//! TABLESAMPLE samples virtual blocks of 2,048 rows, the blocks that tuple ids name.

use pgrx::pg_sys;

use super::reader::Window;
use super::scan::{self, Scan};
use super::tid::{self, BLOCK_ROWS};
use crate::pg::ports;
use crate::pg::slot::{self, RowHeader};
use crate::pg::snapshot::{XidStatus, xid_status};
use crate::storage::directory::{FLAG_DEAD, FLAG_FROZEN};
use crate::storage::metapage;
use lanes_columnar::limits::{segment_first_row, segment_of, segment_rows_max};
use lanes_columnar::streamed::StreamMemory;

/// The rows of the block that ANALYZE is at.
#[derive(Default)]
pub struct AnalyzeBlock {
    row: u64,
    end: u64,
    window: Option<Window>,
    window_end: u64,
    memory: StreamMemory,
}

impl AnalyzeBlock {
    /// Moves to a block.
    pub fn start(&mut self, scan: &Scan, block: u32) {
        // SAFETY: the scan's relation is open.
        let blocks = unsafe { metapage::blocks(scan.reader.relation) }.max(1) as u128;
        let rows = scan.reader.end_row() as u128;
        self.row = (block as u128 * rows / blocks) as u64;
        self.end = ((block as u128 + 1) * rows / blocks).min(rows) as u64;
    }

    /// Stores the block's next live row into the slot, counting live and dead ones on the way; false at its end.
    ///
    /// # Safety
    /// `target` is a slot of the scan's table.
    pub unsafe fn next(
        &mut self,
        scan: &Scan,
        live: &mut f64,
        dead: &mut f64,
        target: *mut pg_sys::TupleTableSlot,
    ) -> bool {
        let Some(content) = scan.reader.content.as_ref() else {
            return false;
        };
        while self.row < self.end {
            let row = self.row;
            self.row += 1;
            let Some((_, run)) = content.run_of(row) else {
                // A hole, perhaps a large one.
                let next = content.runs.first_ending_after(row);
                if next == content.runs.len() {
                    return false;
                }
                self.row = content.runs.get(next).first_row.max(self.row);
                ports::CHECK_FOR_INTERRUPTS();
                continue;
            };
            let inserted = if run.flags & FLAG_DEAD != 0 {
                XidStatus::Aborted
            } else if run.flags & FLAG_FROZEN != 0 {
                XidStatus::Committed
            } else {
                xid_status(run.xmin)
            };
            match inserted {
                XidStatus::Running => continue,
                XidStatus::Aborted => {
                    *dead += 1.0;
                    continue;
                }
                XidStatus::Current | XidStatus::Committed => {}
            }
            let deleted = content.tombstones.borrow().of_row(row).iter().any(|t| {
                t.deletes()
                    && (t.is_frozen()
                        || matches!(
                            xid_status(t.xmax),
                            XidStatus::Committed | XidStatus::Current
                        ))
            });
            if deleted {
                *dead += 1.0;
                continue;
            }
            *live += 1.0;
            let segment_start = segment_first_row(segment_of(row));
            // Statistics are not worth waiting for object storage, which may be nowhere: rows beside remote ones are
            // counted only.
            if scan::holds_remote(
                content,
                segment_start,
                segment_start + segment_rows_max(segment_of(row)) as u64,
            ) {
                continue;
            }
            // SAFETY: the reader is open and holds the row; the window outlives the slot's use of it, since the
            // sampled row is copied out before the next call.
            unsafe {
                if self
                    .window
                    .as_ref()
                    .is_none_or(|w| row < w.first_row || row >= self.window_end)
                {
                    if let Some(memory) = self.window.take().and_then(Window::into_memory) {
                        self.memory = memory;
                    }
                    let segment = segment_of(row);
                    let segment_end = segment_first_row(segment) + segment_rows_max(segment) as u64;
                    self.window_end = segment_end.min(scan.reader.end_row());
                    let (reader, memory) = (&scan.reader, &mut self.memory);
                    let end = self.window_end;
                    self.window = Some(Window::open_once(reader, content, row, end, memory));
                }
                let Some(window) = &mut self.window else {
                    return false;
                };
                window.fill(window.place(row)..window.place(row) + 1, None);
                slot::store(
                    target,
                    window.outlet(),
                    window.place(row),
                    tid::from_row(row),
                    (*scan.reader.relation).rd_id,
                    RowHeader {
                        xmin: run.xmin,
                        cmin: run.cmin,
                    },
                );
            }
            return true;
        }
        false
    }
}

/// Where TABLESAMPLE is.
#[derive(Default)]
pub struct SampleBlock {
    next_block: u32,
    block: u32,
}

impl SampleBlock {
    /// Moves to the next block that the sampling method picks; false when there is none.
    ///
    /// # Safety
    /// `state` is the executor's sampling state of this scan.
    pub unsafe fn next_block(
        &mut self,
        scan: &mut Scan,
        state: *mut pg_sys::SampleScanState,
    ) -> bool {
        let blocks = scan.reader.end_row().div_ceil(BLOCK_ROWS) as u32;
        // SAFETY: the caller's promise.
        unsafe {
            loop {
                let block = match (*(*state).tsmroutine).NextSampleBlock {
                    Some(pick) => pick(state, blocks),
                    None if self.next_block < blocks => self.next_block,
                    None => pg_sys::InvalidBlockNumber,
                };
                if block == pg_sys::InvalidBlockNumber {
                    self.next_block = 0;
                    return false;
                }
                self.next_block = block + 1;
                self.block = block;
                let from = block as u64 * BLOCK_ROWS;
                if scan.open_rows(from, (from + BLOCK_ROWS).min(scan.reader.end_row())) {
                    scan.fill_visible();
                    return true;
                }
                ports::CHECK_FOR_INTERRUPTS();
            }
        }
    }

    /// Stores the block's next row that the sampling method picks and the snapshot sees; false at its end.
    ///
    /// # Safety
    /// As for [`SampleBlock::next_block`]; `target` is a slot of the scan's table.
    pub unsafe fn next_row(
        &mut self,
        scan: &mut Scan,
        state: *mut pg_sys::SampleScanState,
        target: *mut pg_sys::TupleTableSlot,
    ) -> bool {
        let from = self.block as u64 * BLOCK_ROWS;
        let rows = (scan.reader.end_row() - from).min(BLOCK_ROWS) as u16;
        // SAFETY: the caller's promise.
        unsafe {
            let Some(pick) = (*(*state).tsmroutine).NextSampleTuple else {
                return false;
            };
            loop {
                let offset = pick(state, self.block, rows);
                if offset == pg_sys::InvalidOffsetNumber {
                    ports::ExecClearTuple(target);
                    return false;
                }
                if scan.store_if_open(from + offset as u64 - 1, target) {
                    return true;
                }
            }
        }
    }
}
