//! Plans, expressions, rows and memory in execution.

use std::ffi::{CStr, c_void};

use pgrx::pg_sys::{self, Datum, Oid};

use super::{Answer, Null, functions};
use crate::pg::descriptor::Descriptor;
use crate::pg::exec::child::{Child, Instrument};
use crate::pg::exec::expression::{RowContext, RowExpression, RowQual};
use crate::pg::exec::memory::Memory;
use crate::pg::exec::node::Estate;
use crate::pg::exec::row_store::{SortState, StoreState};
use crate::pg::exec::slot::Slot;
use crate::pg::explain::Output;
use crate::pg::table::OpenTable;
use crate::pg::temporary_file::BufferedFile;
use crate::pg::tree::{Expr, List, Plan, Relids, View};

functions! {
    /// A new memory context below another one. PostgreSQL keeps a pointer to the name.
    fn AllocSetContextCreateInternal(
        parent: Memory,
        name: &'static CStr,
        bytes_min: usize,
        bytes_first: usize,
        bytes_max: usize,
    ) -> Memory;

    /// Closes a temporary file, which deletes it.
    fn BufFileClose(file: BufferedFile<'_>);

    /// A new temporary file, under the current resource owner.
    fn BufFileCreateTemp(is_shared: bool) -> BufferedFile<'p>;

    /// A context for expressions, which lives as long as the query.
    fn CreateExprContext(estate: Estate) -> RowContext;

    /// A new descriptor of so many columns, which have to be initialised.
    fn CreateTemplateTupleDesc(columns: i32) -> Descriptor<'p>;

    /// A copy of a descriptor without its constraints.
    fn CreateTupleDescCopy(descriptor: Descriptor<'_>) -> Descriptor<'p>;

    /// Frees a slot that was made by itself.
    fn ExecDropSingleTupleTableSlot(slot: Slot);

    /// Ends the execution of a plan.
    fn ExecEndNode(plan: Child);

    /// Initialises an expression.
    fn ExecInitExpr(expr: Expr<'_>, parent: Option<Child>) -> RowExpression;

    /// Initialises a plan.
    fn ExecInitNode(plan: Plan<'_>, estate: Estate, flags: i32) -> Child;

    /// Initialises a list of conditions.
    fn ExecInitQual(conditions: List<'_, Expr<'_>>, parent: Option<Child>) -> RowQual;

    /// Starts a plan again.
    fn ExecReScan(plan: Child);

    /// Writes a number, with its unit.
    fn ExplainPropertyInteger(label: &CStr, unit: Option<&CStr>, value: i64, output: Output<'_>);

    /// Writes a text.
    fn ExplainPropertyText(label: &CStr, text: &CStr, output: Output<'_>);

    /// Begins to measure a call.
    fn InstrStartNode(counters: Instrument);

    /// Ends the measurement of a call that returned so many rows.
    fn InstrStopNode(counters: Instrument, rows: f64);

    /// Frees a memory context and its children.
    fn MemoryContextDelete(memory: Memory);

    /// Bytes that a memory context has allocated, and its children if so wished.
    fn MemoryContextMemAllocated(memory: Memory, with_children: bool) -> usize;

    /// Initialises a column of a new descriptor as one of another.
    fn TupleDescCopyEntry(to: Descriptor<'_>, column: i16, from: Descriptor<'_>, of: i16);

    /// Initialises a column of a new descriptor.
    fn TupleDescInitEntry(
        descriptor: Descriptor<'_>,
        column: i16,
        name: &CStr,
        type_of: Oid,
        modifier: i32,
        dimensions: i32,
    );

    /// Notes that parameters have changed that a plan may depend on.
    fn UpdateChangedParamSet(plan: Child, changed: Relids<'_>);

    /// An expression as SQL.
    fn deparse_expression(
        expr: Option<Expr<'_>>,
        context: List<'_, Expr<'_>>,
        with_tables: bool,
        with_casts: bool,
    ) -> Option<String>;

    /// The plans and tables in which EXPLAIN looks up the names of a plan's columns.
    fn set_deparse_context_plan(
        context: List<'p, Expr<'p>>,
        plan: Plan<'p>,
        ancestors: List<'p, Expr<'p>>,
    ) -> List<'p, Expr<'p>>;

    /// A slot for rows of a table, in the current memory context.
    fn table_slot_create(table: OpenTable<'_>, slots: Null) -> Slot;

    /// Frees a sort.
    fn tuplesort_end(sort: SortState<'_>);

    /// The next row of a sort, which is valid until the one after it.
    fn tuplesort_gettupleslot(
        sort: SortState<'_>,
        is_forward: bool,
        copies: bool,
        slot: Slot,
        abbreviated: Null,
    ) -> bool;

    /// Sorts the rows that were added.
    fn tuplesort_performsort(sort: SortState<'_>);

    /// Adds a row to a sort.
    fn tuplesort_puttupleslot(sort: SortState<'_>, slot: Slot);

    /// An empty store of rows.
    fn tuplestore_begin_heap(random_access: bool, across_transactions: bool, kilobytes: i32) -> StoreState<'p>;

    /// Empties a store.
    fn tuplestore_clear(store: StoreState<'_>);

    /// Frees a store.
    fn tuplestore_end(store: StoreState<'_>);

    /// The next row of a store, which is valid until the one after it.
    fn tuplestore_gettupleslot(store: StoreState<'_>, is_forward: bool, copies: bool, slot: Slot) -> bool;

    /// Adds a row to a store.
    fn tuplestore_puttupleslot(store: StoreState<'_>, slot: Slot);
}

/// A virtual slot for rows of a descriptor, which lives as long as the slot, in the current memory context.
pub fn virtual_slot(descriptor: Descriptor<'_>) -> Slot {
    slot(descriptor, &raw const pg_sys::TTSOpsVirtual)
}

/// A slot of minimal tuples for rows of a descriptor, which lives as long as the slot, in the current memory context.
pub fn minimal_slot(descriptor: Descriptor<'_>) -> Slot {
    slot(descriptor, &raw const pg_sys::TTSOpsMinimalTuple)
}

fn slot(descriptor: Descriptor<'_>, operations: *const pg_sys::TupleTableSlotOps) -> Slot {
    // SAFETY: the descriptor is live, and the operations are PostgreSQL's.
    unsafe {
        Answer::of_c(pg_sys::MakeSingleTupleTableSlot(
            descriptor.as_ptr(),
            operations,
        ))
    }
}

/// Adds a row of as many values as the descriptor has columns to a store.
pub fn tuplestore_putvalues(
    store: StoreState<'_>,
    descriptor: Descriptor<'_>,
    values: &mut [Datum],
    nulls: &mut [bool],
) {
    let columns = descriptor.len();
    assert!(
        values.len() == columns && nulls.len() == columns,
        "a row of {columns} columns"
    );
    let (values, nulls) = (values.as_mut_ptr(), nulls.as_mut_ptr());
    // SAFETY: the row has a value for each column, which the store copies.
    unsafe { pg_sys::tuplestore_putvalues(store.as_ptr(), descriptor.as_ptr(), values, nulls) }
}

/// A sort of rows by the ascending order of bigint columns, NULL last. The descriptor lives as long as the sort.
pub fn sort_by_bigints<'p, const KEYS: usize>(
    descriptor: Descriptor<'_>,
    mut columns: [i16; KEYS],
    kilobytes: i32,
) -> SortState<'p> {
    let mut operators: [Oid; KEYS] = [pg_sys::Int8LessOperator.into(); KEYS];
    let (mut collations, mut nulls_first) = ([pg_sys::InvalidOid; KEYS], [false; KEYS]);
    // SAFETY: the sort copies the keys, and the arrays have one element for each.
    unsafe {
        Answer::of_c(pg_sys::tuplesort_begin_heap(
            descriptor.as_ptr(),
            KEYS as i32,
            columns.as_mut_ptr(),
            operators.as_mut_ptr(),
            collations.as_mut_ptr(),
            nulls_first.as_mut_ptr(),
            kilobytes,
            std::ptr::null_mut(),
            pg_sys::TUPLESORT_NONE as i32,
        ))
    }
}

/// A table of the query's range table, which was locked when the plan was made ready. PostgreSQL closes it after all
/// nodes have ended.
pub fn ExecGetRangeTableRelation<'p>(estate: Estate, index: u32) -> OpenTable<'p> {
    let tables = estate.range_table().len();
    assert!(
        (1..=tables).contains(&(index as usize)),
        "table {index} of {tables}"
    );
    // SAFETY: the range table has an entry of this number.
    unsafe {
        OpenTable::new(pg_sys::ExecGetRangeTableRelation(
            estate.as_ptr(),
            index,
            #[cfg(feature = "pg18")]
            false,
        ))
    }
}

/// Appends bytes to a temporary file.
pub fn BufFileWrite(file: BufferedFile<'_>, bytes: &[u8]) {
    let at = bytes.as_ptr().cast_mut().cast::<c_void>();
    // SAFETY: PostgreSQL only reads the bytes.
    unsafe { pg_sys::BufFileWrite(file.as_ptr(), at.cast(), bytes.len()) };
}

/// Reads bytes from a temporary file; how many.
pub fn BufFileRead(file: BufferedFile<'_>, into: &mut [u8]) -> usize {
    // SAFETY: the buffer has this length.
    unsafe { pg_sys::BufFileRead(file.as_ptr(), into.as_mut_ptr().cast(), into.len()) }
}

/// Goes to the first byte of a temporary file; whether that is possible.
pub fn rewind(file: BufferedFile<'_>) -> bool {
    // SAFETY: the file is open.
    unsafe { pg_sys::BufFileSeek(file.as_ptr(), 0, 0, 0) == 0 }
}

/// A virtual slot for rows of a descriptor, which lives as long as the execution.
pub fn ExecInitExtraTupleSlot(estate: Estate, descriptor: Descriptor<'_>) -> Slot {
    let operations = &raw const pg_sys::TTSOpsVirtual;
    // SAFETY: live structures; the operations are PostgreSQL's.
    unsafe {
        let (estate, descriptor) = (estate.as_ptr(), descriptor.as_ptr());
        Answer::of_c(pg_sys::ExecInitExtraTupleSlot(
            estate, descriptor, operations,
        ))
    }
}
