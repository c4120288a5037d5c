//! INSERT … SELECT and CREATE TABLE AS: the executor hands over one row at a time and never says which is the last. Within
//! one run of the executor the rows are gathered, so that they become a few long runs instead of many of one row.
//!
//! A [`Frame`] stands for one call of `ExecutorRun` (see [`crate::executor_hook`]). What it gathered is written
//! - when enough has come together,
//! - when the call returns: before AFTER triggers, and before any later command,
//! - when another executor run starts inside it (a volatile function's query), which may look at the table,
//! - when anything else opens the table for reading.
//!
//! So nobody can tell the difference, but for the rows' tuple ids, which are not known before they are written. A frame
//! gathers therefore only where nothing can ask for them: no RETURNING, no trigger, no index. Rows keep the transaction
//! and command ids that they came with. When an ERROR ends the call, its (sub)transaction's abort forgets the frame: the
//! rows are that transaction's and go with it.

use std::cell::RefCell;

use lanes_columnar::column::Column;
use lanes_columnar::kind::LaneKind;
use pgrx::pg_sys;

use super::insert;
use crate::pg::datum::{self, RowIntake};
use crate::storage::append::RUN_ROWS_MAX;

/// Bytes of gathered columns after which they are written.
const GATHERED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How often, in rows, the bytes are counted.
const BYTES_COUNTED_EVERY_ROWS: usize = 512;

/// One call of the executor.
struct Frame {
    gathers: bool,
    /// The subtransaction depth that it began at.
    nest_level: i32,
    gathered: Vec<Gathered>,
}

/// Rows for one table, all of one command.
struct Gathered {
    /// Open as long as the executor runs: it is one of its result relations.
    relation: pg_sys::Relation,
    kinds: Vec<LaneKind>,
    intake: RowIntake,
    columns: Vec<Column>,
    rows: usize,
    xid: u32,
    command: pg_sys::CommandId,
    options: i32,
}

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

/// An executor run begins; returns the depth to give to [`end`].
pub fn begin(gathers: bool) -> usize {
    flush_all();
    FRAMES.with_borrow_mut(|frames| {
        // SAFETY: a plain call.
        let nest_level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
        frames.push(Frame {
            gathers,
            nest_level,
            gathered: Vec::new(),
        });
        frames.len()
    })
}

/// The executor run at this depth has ended well: writes what it gathered.
pub fn end(depth: usize) {
    flush_all();
    FRAMES.with_borrow_mut(|frames| frames.truncate(depth - 1));
}

/// A (sub)transaction at this depth, and all within it, aborted.
pub fn forget(nest_level: i32) {
    FRAMES.with_borrow_mut(|frames| frames.retain(|frame| frame.nest_level < nest_level));
}

/// Writes everything gathered, of every executor run under way.
pub fn flush_all() {
    loop {
        // Taken out first: writing may raise, and what raised is not to be tried again.
        let next = FRAMES
            .with_borrow_mut(|frames| frames.iter_mut().find_map(|frame| frame.gathered.pop()));
        match next {
            // SAFETY: the relation is open while its executor run is under way.
            Some(gathered) => unsafe { gathered.write() },
            None => return,
        }
    }
}

/// Gathers the slot's row if the executor run under way does that; false: the caller is to write it.
///
/// # Safety
/// `relation` is a lanes table, open for the length of the executor run; `slot` is filled and of its row type.
pub unsafe fn gather(
    relation: pg_sys::Relation,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    options: i32,
) -> bool {
    // SAFETY: the caller's promise.
    let full = unsafe {
        let wants_tids = !(*relation).trigdesc.is_null() || (*(*relation).rd_rel).relhasindex;
        if wants_tids
            || !FRAMES.with_borrow(|frames| frames.last().is_some_and(|frame| frame.gathers))
        {
            return false;
        }
        let natts = (*(*relation).rd_att).natts;
        if ((*slot).tts_nvalid as i32) < natts {
            pg_sys::slot_getsomeattrs_int(slot, natts);
        }
        (*slot).tts_tableOid = (*relation).rd_id;
        FRAMES.with_borrow_mut(|frames| {
            let gathered = &mut frames.last_mut().expect("looked at above").gathered;
            let same = |g: &Gathered| g.relation == relation && g.command == command;
            let index = gathered.iter().position(same).unwrap_or_else(|| {
                gathered.push(Gathered::new(relation, command, options));
                gathered.len() - 1
            });
            let target = &mut gathered[index];
            target
                .intake
                .push(&mut target.columns, (*slot).tts_values, (*slot).tts_isnull);
            target.rows += 1;
            target.is_full().then(|| gathered.swap_remove(index))
        })
    };
    if let Some(full) = full {
        // SAFETY: as above.
        unsafe { full.write() };
    }
    true
}

impl Gathered {
    unsafe fn new(
        relation: pg_sys::Relation,
        command: pg_sys::CommandId,
        options: i32,
    ) -> Gathered {
        // SAFETY: an open relation.
        unsafe {
            let kinds = datum::kinds((*relation).rd_att);
            Gathered {
                relation,
                intake: RowIntake::new((*relation).rd_att, &kinds),
                columns: kinds.iter().map(|kind| Column::new(*kind)).collect(),
                kinds,
                rows: 0,
                xid: pg_sys::GetCurrentTransactionId().into_inner(),
                command,
                options,
            }
        }
    }

    fn is_full(&self) -> bool {
        self.rows >= RUN_ROWS_MAX
            || (self.rows.is_multiple_of(BYTES_COUNTED_EVERY_ROWS)
                && self.columns.iter().map(Column::byte_len).sum::<usize>() >= GATHERED_BYTES_MAX)
    }

    unsafe fn write(self) {
        // SAFETY: the relation is open while its executor run is under way.
        unsafe {
            let flags = insert::entry_flags(self.options);
            insert::append(
                self.relation,
                &self.kinds,
                &self.columns,
                self.rows,
                self.xid,
                self.command,
                flags,
            );
        }
    }
}
