//! An expression over columns of a table that PostgreSQL evaluates for rows of a vector.
//!
//! ```text
//! selected rows ──► a slot with the columns that the expression reads ──► the expression's state ──► datums ──► take
//!                   └──────────────── up to 256 rows within one error boundary ───────────────┘
//! ```
//! Slot and context are those of the node's [conditions](super::condition_test). The memory of the values is freed once
//! for many rows, and at the latest when they take a megabyte.

use lanes_columnar::lane::Lane;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::selection::Selection;
use pgrx::pg_sys::{self, Datum};

use super::condition_test::{Room, reset};
use super::memory::Memory;
use super::scalar::{self, RunningNode};
use crate::pg::datum::{self, Outlet};
use crate::pg::descriptor::Descriptor;
use crate::pg::ports;
use crate::pg::tree::{Expr, View};

/// The most rows within one boundary.
const BATCH: usize = 256;
/// Values of one batch take at most this many bytes, but for those of its last row.
const BATCH_BYTES: usize = 1 << 20;

/// A column that an expression reads.
#[derive(Clone, Copy)]
struct ReadColumn {
    attribute: usize,
    outlet: Outlet,
    lane: Lane,
}

/// Columns of a table, ready to be read into the row that expressions look at.
pub struct RowReader {
    room: *mut Room,
    columns: Vec<ReadColumn>,
}

impl RowReader {
    /// A reader of these attributes of the node's table.
    ///
    /// # Errors
    /// If the node has no table.
    pub fn new(attributes: &[usize], node: RunningNode) -> Result<RowReader, String> {
        let plan = node.as_ptr();
        // SAFETY: the node has started and its table is open.
        unsafe {
            let room = scalar::room(plan);
            (*room).open(plan)?;
            let descriptor = Descriptor::at((*(*room).slot).tts_tupleDescriptor);
            let outlets = datum::outlets(descriptor, &datum::kinds(descriptor));
            let column = |&attribute: &usize| ReadColumn {
                attribute,
                outlet: outlets[attribute],
                lane: Lane::NULL,
            };
            Ok(RowReader {
                room,
                columns: attributes.iter().map(column).collect(),
            })
        }
    }

    /// Goes on to another vector.
    pub fn enter(&mut self, frame: &Frame<'_>) {
        for column in &mut self.columns {
            column.lane = frame.lane(column.attribute);
        }
    }

    /// Reads a row of the vector into the node's slot.
    ///
    /// # Safety
    /// The place is one of the lanes that were entered last, which are filled there.
    #[inline]
    pub unsafe fn read(&self, place: usize) {
        // SAFETY: the slot has an element for each attribute; see above for the lanes.
        unsafe {
            let slot = (*self.room).slot;
            for column in &self.columns {
                let (value, is_null) = column.outlet.value(&column.lane, place);
                *(*slot).tts_values.add(column.attribute) = value;
                *(*slot).tts_isnull.add(column.attribute) = is_null;
            }
        }
    }

    /// The context that expressions over the slot are evaluated in.
    pub fn context(&self) -> *mut pg_sys::ExprContext {
        // SAFETY: the room was opened.
        unsafe { (*self.room).context }
    }

    /// The memory of values, which is freed once for many rows.
    fn memory(&self) -> Memory {
        // SAFETY: the room was opened, and its context lives as long as the query.
        unsafe { Memory::of((*self.context()).ecxt_per_tuple_memory) }
    }

    /// Counts rows that were evaluated.
    pub fn count(&self, rows: usize) {
        // SAFETY: the node's state lives as long as the query.
        unsafe { (*self.room).evaluated += rows as u64 }
    }
}

/// An expression, ready to be evaluated for rows of vectors.
pub struct RowEvaluator {
    state: *mut pg_sys::ExprState,
    reader: RowReader,
    results: Box<[(Datum, bool); BATCH]>,
}

impl RowEvaluator {
    /// An expression that reads these attributes of the node's table and no other.
    ///
    /// # Errors
    /// If the node has no table.
    pub fn new(
        expression: Expr<'_>,
        attributes: &[usize],
        node: RunningNode,
    ) -> Result<RowEvaluator, String> {
        let reader = RowReader::new(attributes, node)?;
        Ok(RowEvaluator {
            // SAFETY: the node has started, and the expression is part of its plan.
            state: unsafe { scalar::initialised(expression.as_ptr().cast(), node.as_ptr()) },
            reader,
            results: Box::new([(Datum::null(), true); BATCH]),
        })
    }

    /// Evaluates the expression for each row, in order, and passes the results to `take`. A result by reference lives
    /// until `take` returns. The frame's lanes are filled, as for every evaluation.
    pub fn each(
        &mut self,
        frame: &Frame<'_>,
        rows: &Selection,
        mut take: impl FnMut(usize, Option<Datum>),
    ) {
        self.reader.enter(frame);
        let mut next = rows.next(0);
        while let Some(first) = next {
            ports::CHECK_FOR_INTERRUPTS();
            // SAFETY: the rows are of the frame's vector; the frames within the boundary have nothing to drop, and do
            // not panic.
            let count = unsafe {
                pg_sys::ffi::pg_guard_ffi_boundary(|| self.batch(frame.place, rows, first))
            };
            self.reader.count(count);
            // What `take` allocates is freed with the results.
            self.reader.memory().enter(|| {
                for (value, is_null) in &self.results[..count] {
                    let Some(row) = next else {
                        break;
                    };
                    take(row, (!is_null).then_some(*value));
                    next = rows.next(row + 1);
                }
            });
        }
    }

    /// Evaluates some rows from `first` on, at least one, and returns how many.
    ///
    /// # Safety
    /// `first` is one of the rows, and as for [`Self::each`]. An error boundary surrounds the call, and no frame
    /// between them has anything to drop.
    unsafe fn batch(&mut self, place: usize, rows: &Selection, first: usize) -> usize {
        let mut count = 0;
        // SAFETY: slot and context live as long as the query; the boundary restores the context when an ERROR passes.
        unsafe {
            let context = self.reader.context();
            let memory = (*context).ecxt_per_tuple_memory;
            if !(*memory).isReset || !(*memory).firstchild.is_null() {
                reset(memory);
            }
            // The first evaluation replaces the function by a faster one.
            let before = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = memory;
            let mut next = Some(first);
            while let Some(row) = next
                && let Some(evaluate) = (*self.state).evalfunc
            {
                self.reader.read(place + row);
                let mut is_null = false;
                let value = evaluate(self.state, context, &raw mut is_null);
                self.results[count] = (value, is_null);
                count += 1;
                let is_full = count == BATCH || (*memory).mem_allocated >= BATCH_BYTES;
                if is_full || std::ptr::read_volatile(&raw const pg_sys::InterruptPending) != 0 {
                    break;
                }
                next = rows.next(row + 1);
            }
            pg_sys::CurrentMemoryContext = before;
        }
        count
    }
}
