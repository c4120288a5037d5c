//! Rows that PostgreSQL inserts one at a time are gathered into runs. In INSERT … SELECT, CREATE
//! TABLE AS, REFRESH and rewrites by ALTER TABLE, PostgreSQL passes on one row at a time and never
//! says which one is the last. Without gathering, each row would be a run of its own.
//!
//! A [`Frame`] stands for one call of `ExecutorRun` (see [`crate::hooks::executor`]) or for one
//! ALTER TABLE statement (see `crate::hooks::utility`). The rows that it has gathered are written
//! - when the frame ends, or when PostgreSQL ends the bulk insert of the table: before AFTER
//!   triggers, and before any later command,
//! - when another executor run starts inside it (a volatile function's query), which may look at the table,
//! - when anything else opens the table for reading.
//!
//! So gathering changes nothing that anybody can observe, except the tuple ids of the rows, which
//! are unknown until the rows are written. A frame therefore gathers only where nothing needs them:
//! without RETURNING, triggers and ON CONFLICT DO UPDATE. Rows keep the transaction and command ids
//! that they came with. How rows of ON CONFLICT DO NOTHING are gathered is at the head of
//! [`conflict`].
//!
//! Indexes do need tuple ids. So an INSERT into a table with indexes gathers only if it is the only
//! such statement of its frame, and only after a number of single rows: [`SINGLE_ROWS`], or
//! [`SINGLE_ROWS_PASSING_OVER`] with ON CONFLICT DO NOTHING. From then on the
//! executor is shown no indexes, and this module makes the index entries after the rows
//! ([`crate::pg::insert_indexes`]), as COPY does.
//!
//! Invariants, for tables with indexes:
//! 1. An index entry is made after the run of its row is in the directory, so its WAL follows the
//!    WAL of the row. After a crash no entry names a row that does not exist.
//! 2. All index entries of a batch are made before anything else of this backend looks at the
//!    table, and before the frame ends.
//! 3. Until the transaction commits, nobody else sees the rows. Of two sessions that insert the
//!    same key, the one that makes its entry later finds the other's entry, and waits for the
//!    other's transaction.
//!
//! | event | effect on the batch |
//! |---|---|
//! | a key is there already, or twice in the batch | the ERROR of the constraint, when the batch is written; the rows go with the (sub)transaction |
//! | a key is there already, with ON CONFLICT DO NOTHING | [`conflict`] passes over the row |
//! | another transaction has inserted the key | the check waits for it, holding no lock but those of transactions |
//! | a later row of the statement fails first | its ERROR; what was gathered is forgotten |
//! | a crash or an abort between rows and entries | rows whose transaction aborted, without entries, which VACUUM frees |
//! | the ERROR is caught by a function inside the statement | the frame is broken, as below |
//!
//! When an ERROR ends the call, the abort of its (sub)transaction drops the frame. The rows belong
//! to that transaction and are dropped with it. When writing the rows of a frame fails inside a
//! nested subtransaction, and the statement survives that ERROR, the frame is *broken*: it keeps the
//! ERROR and raises it again at its next row or its end, so that its statement cannot succeed without
//! its rows.

use std::cell::RefCell;
use std::collections::HashSet;

use lanes_columnar::column::Column;
use lanes_columnar::kind::LaneKind;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::{insert, kept, tid};
use crate::error;
use crate::pg::datum::{self, RowIntake, RowOutlet};
use crate::pg::insert_indexes::{InsertIndexes, InsertTarget};
use crate::pg::slot::{RowHeader, Slot};
use crate::pg::table::OpenTable;
use crate::pg::transaction;
use crate::pg::whole_error::{self, WholeError};

mod conflict;

/// One call of the executor, or one ALTER TABLE.
struct Frame {
    gathers: Gathers,
    /// Rows were lost while they were written: see the head of this file.
    broken: bool,
    /// The error by which they were lost.
    failure: Option<WholeError>,
    /// The depth of the subtransaction in which the frame began.
    nest_level: i32,
    gathered: Vec<Gathered>,
    /// The number of rows of a table with indexes that were not gathered.
    single_rows: usize,
    /// The indexes of the target, once its rows are gathered.
    indexes: Option<InsertIndexes>,
    /// Numbers of the keys of the gathered rows of the target, for ON CONFLICT DO NOTHING.
    keys: HashSet<u64>,
    /// Whether the call of the executor has returned.
    is_over: bool,
}

/// The number of rows that a statement writes one by one into a table with indexes before it
/// gathers more. So a short statement does not open the indexes again, and raises the error of the
/// first row that fails.
const SINGLE_ROWS: usize = 64;

/// The number of rows that INSERT … ON CONFLICT DO NOTHING writes one by one into a table with indexes before it gathers
/// rows. It is smaller than [`SINGLE_ROWS`], because a single row costs more here.
const SINGLE_ROWS_PASSING_OVER: usize = 16;

/// What a frame gathers.
#[derive(Clone, Copy)]
pub enum Gathers {
    Nothing,
    /// Rows of tables without indexes, and of the target.
    Rows(Option<InsertTarget>),
    /// Only rows that PostgreSQL inserts in bulk, because it says when a bulk insert ends.
    BulkRows,
}

/// Rows for one table, all of them of one command.
struct Gathered {
    /// Open until the frame ends, or until Postgres ends the bulk insert.
    table: OpenTable<'static>,
    kinds: Vec<LaneKind>,
    intake: RowIntake,
    columns: Vec<Column>,
    rows: usize,
    xid: u32,
    command: pg_sys::CommandId,
    options: i32,
    /// The table's indexes, if it has any.
    indexes: Option<InsertIndexes>,
}

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

/// Begins a frame. Returns the depth that [`end`] takes.
pub fn begin(gathers: Gathers) -> usize {
    flush(|_| true);
    FRAMES.with_borrow_mut(|frames| {
        let nest_level = transaction::nest_level();
        frames.push(Frame {
            gathers,
            broken: false,
            failure: None,
            nest_level,
            gathered: Vec::new(),
            single_rows: 0,
            indexes: None,
            keys: HashSet::new(),
            is_over: false,
        });
        frames.len()
    })
}

/// Ends the frame at this depth without an error: writes the rows that it has gathered.
pub fn end(depth: usize) {
    FRAMES.with_borrow_mut(|frames| {
        if let Some(frame) = frames.get_mut(depth - 1) {
            frame.is_over = true;
        }
    });
    flush(|_| true);
    raise_failure(depth);
    let indexes = FRAMES.with_borrow_mut(|frames| {
        let indexes = frames.get(depth - 1).and_then(|frame| frame.indexes);
        frames.truncate(depth - 1);
        indexes
    });
    if let Some(indexes) = indexes {
        indexes.give_back();
    }
}

/// Raises the error by which the frame at this depth is broken, if it is.
fn raise_failure(depth: usize) {
    FRAMES.with_borrow(|frames| match frames.get(depth - 1) {
        Some(Frame {
            broken: true,
            failure: Some(failure),
            ..
        }) => failure.raise_here(),
        Some(Frame { broken: true, .. }) => error::raise(
            PgSqlErrorCode::ERRCODE_IO_ERROR,
            "rows of this statement could not be written",
            "An error while writing them was caught inside the statement. Mend its cause and repeat the statement.",
        ),
        _ => {}
    });
}

/// Drops the frames of a (sub)transaction at this depth, and of all within it, because it aborted.
pub fn forget(nest_level: i32) {
    FRAMES.with_borrow_mut(|frames| frames.retain(|frame| frame.nest_level < nest_level));
}

/// Writes the rows that were gathered for one table.
pub fn flush_table(table: pg_sys::Oid) {
    if FRAMES.with_borrow(|frames| frames.iter().any(|frame| !frame.gathered.is_empty())) {
        flush(|gathered| gathered.table.oid() == table);
    }
}

/// Writes those gathered rows of all frames for which `wanted` holds.
fn flush(wanted: impl Fn(&Gathered) -> bool) {
    loop {
        let next = FRAMES.with_borrow_mut(|frames| {
            frames.iter_mut().enumerate().find_map(|(depth, frame)| {
                let index = frame.gathered.iter().position(&wanted)?;
                Some(frame.take_out(depth, index))
            })
        });
        match next {
            Some(taken) => taken.write(),
            None => return,
        }
    }
}

/// Rows that were taken out of a frame.
struct TakenOut {
    /// The frame's place among the frames.
    frame: usize,
    /// Whether the frame was broken before. It is broken while the rows are out.
    was_broken: bool,
    /// Whether the frame's call of the executor has returned.
    is_over: bool,
    gathered: Gathered,
}

impl Frame {
    /// The place of the rows of a table and a command, which are none at first.
    fn index_of(
        &mut self,
        table: OpenTable<'static>,
        command: pg_sys::CommandId,
        options: i32,
        indexes: Option<InsertIndexes>,
    ) -> usize {
        let is_same =
            |g: &Gathered| g.table == table && g.command == command && g.options == options;
        let index = self.gathered.iter().position(is_same);
        index.unwrap_or_else(|| {
            self.gathered
                .push(Gathered::new(table, command, options, indexes));
            self.gathered.len() - 1
        })
    }

    /// Takes rows out, to be written. The frame is whole again, if it was, when they are.
    fn take_out(&mut self, frame: usize, index: usize) -> TakenOut {
        let gathered = self.gathered.swap_remove(index);
        if gathered.indexes.is_some() {
            self.keys.clear();
        }
        TakenOut {
            frame,
            was_broken: std::mem::replace(&mut self.broken, true),
            is_over: self.is_over,
            gathered,
        }
    }
}

impl TakenOut {
    fn write(self) {
        let written = whole_error::attempt(|| self.gathered.write(self.is_over));
        FRAMES.with_borrow_mut(|frames| match (written, frames.get_mut(self.frame)) {
            (Ok(()), Some(frame)) => frame.broken = self.was_broken,
            (Ok(()), None) => {}
            (Err(failure), Some(frame)) => frame.failure.get_or_insert(failure).raise(),
            (Err(failure), None) => failure.raise(),
        });
    }
}

/// Gathers the row in the slot if the current frame gathers rows; false: the caller has to write
/// it. The table stays open until its frame ends or its bulk insert is finished. `is_bulk`:
/// PostgreSQL inserts in bulk.
pub fn gather(
    is_bulk: bool,
    table: OpenTable<'static>,
    slot: Slot<'_>,
    command: pg_sys::CommandId,
    options: i32,
) -> bool {
    let target = match current_gathers() {
        Gathers::Nothing => return false,
        Gathers::Rows(target) => target,
        Gathers::BulkRows if is_bulk => None,
        Gathers::BulkRows => return false,
    };
    if table.has_trigger_descriptor() {
        return false;
    }
    let mut indexes = None;
    if kept::indexes(table).any {
        // COPY also inserts in bulk, and makes index entries itself.
        let target = target.filter(|target| !is_bulk && target.is(table));
        indexes = target.and_then(take_over);
        if indexes.is_none() {
            return false;
        }
    }
    // Reading attributes may raise an ERROR, so they are read before anything is borrowed.
    slot.read_all();
    slot.set_table(table.oid());
    if let Some(indexes) = indexes.filter(|indexes| indexes.passes_over())
        && !conflict::admits(indexes, table, slot)
    {
        indexes.pass_over(1, false);
        return true;
    }
    let full = FRAMES.with_borrow_mut(|frames| {
        let depth = frames.len() - 1;
        let frame = &mut frames[depth];
        let index = frame.index_of(table, command, options, indexes);
        let gathered = &mut frame.gathered[index];
        gathered.intake.push_slot(&mut gathered.columns, slot);
        gathered.rows += 1;
        if !gathered.is_full() {
            return None;
        }
        Some(frame.take_out(depth, index))
    });
    if let Some(full) = full {
        full.write();
    }
    true
}

/// What the current frame gathers. Raises the error by which the frame is broken, if it is.
fn current_gathers() -> Gathers {
    let (gathers, depth, has_failed) = FRAMES.with_borrow(|frames| {
        let last = frames.last();
        let (gathers, has_failed) = last.map_or((Gathers::Nothing, false), |frame| {
            (frame.gathers, frame.failure.is_some())
        });
        (gathers, frames.len(), has_failed)
    });
    if has_failed {
        raise_failure(depth);
    }
    gathers
}

impl Gathered {
    fn new(
        table: OpenTable<'static>,
        command: pg_sys::CommandId,
        options: i32,
        indexes: Option<InsertIndexes>,
    ) -> Gathered {
        let kinds = datum::kinds(table.descriptor());
        Gathered {
            table,
            intake: RowIntake::new(table.descriptor(), &kinds),
            columns: kinds.iter().map(|kind| Column::new(*kind)).collect(),
            kinds,
            rows: 0,
            xid: transaction::current_xid(),
            command,
            options,
            indexes,
        }
    }

    /// Whether its rows have to be written before another row is added.
    fn is_full(&self) -> bool {
        let passes_over = self.indexes.is_some_and(InsertIndexes::passes_over);
        (passes_over && self.rows >= conflict::ROWS_MAX)
            || insert::is_full(&self.columns, self.rows)
    }

    fn write(self, is_over: bool) {
        let first_row = insert::append(
            self.table,
            &self.kinds,
            &self.columns,
            self.rows,
            self.xid,
            self.command,
            match self.indexes.is_some_and(InsertIndexes::passes_over) {
                // Each row is logged when it is sure to stay.
                true => self.options | pg_sys::TABLE_INSERT_NO_LOGICAL as i32,
                false => self.options,
            },
        );
        if let Some(indexes) = self.indexes {
            self.enter(indexes, first_row, is_over);
        }
    }

    /// Makes the index entries of the rows that were written, from `first_row` on.
    fn enter(self, indexes: InsertIndexes, first_row: u64, is_over: bool) {
        let (count, header) = (self.rows, RowHeader::new(self.xid, self.command));
        let written = conflict::Written {
            table: self.table,
            indexes: indexes.indexes,
            xid: self.xid,
            command: self.command,
            options: self.options,
            first_row,
            rows: self.rows,
        };
        let passes_over = indexes.passes_over();
        let shape = kept::shape(self.table);
        let lanes = self.columns.iter().map(Column::lane);
        let outlet = RowOutlet::new(&shape.outlets, lanes);
        let rows = indexes.indexes.hold(outlet, self.columns);
        // From here on this frame owns nothing, so an ERROR may jump over it.
        drop((shape, self.kinds, self.intake));
        if passes_over {
            let passed_over = written.enter(&rows);
            indexes.pass_over(passed_over, is_over);
        } else {
            let id_of = |row| tid::from_row(first_row + row as u64);
            indexes.indexes.enter(&rows, count, header, id_of);
        }
        rows.release();
    }
}

/// The indexes of the current frame's target, once enough rows have been written singly; `None`:
/// not yet.
fn take_over(target: InsertTarget) -> Option<InsertIndexes> {
    if target.passes_over() {
        // The executor hands over rows by `insert` only once it sees no indexes.
        return FRAMES.with_borrow(|frames| frames.last()?.indexes);
    }
    let known = FRAMES.with_borrow_mut(|frames| {
        let frame = frames.last_mut()?;
        if frame.indexes.is_none() && frame.single_rows < SINGLE_ROWS {
            frame.single_rows += 1;
            return None;
        }
        Some(frame.indexes)
    });
    if let Some(indexes) = known? {
        return Some(indexes);
    }
    let indexes = target.take_over();
    note_indexes(indexes);
    indexes
}

fn note_indexes(indexes: Option<InsertIndexes>) {
    FRAMES.with_borrow_mut(|frames| {
        if let Some(frame) = frames.last_mut() {
            frame.indexes = indexes;
        }
    });
}

/// Notes that the executor has written a row by itself, for ON CONFLICT, and has made its index entries.
pub fn note_single_row(table: OpenTable<'_>) {
    let is_target = |target: &InsertTarget| target.passes_over() && target.is(table);
    let enough = FRAMES.with_borrow_mut(|frames| {
        let frame = frames.last_mut()?;
        let Gathers::Rows(Some(target)) = frame.gathers else {
            return None;
        };
        frame.single_rows += 1;
        Some(target).filter(|it| frame.single_rows == SINGLE_ROWS_PASSING_OVER && is_target(it))
    });
    if let Some(target) = enough {
        note_indexes(target.take_over());
    }
}
