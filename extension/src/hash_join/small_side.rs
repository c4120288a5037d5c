//! The small side of a hash join: its plan is executed, and its rows are kept in batches.
//!
//! All of it lies in memory that is freed when the node starts again.

use lanes_columnar::join::equal::{EqualJoin, SmallKey};
use lanes_columnar::join::key_codes::KeyCodes;
use lanes_columnar::join::series::SeriesColumn;
use lanes_columnar::vector::number::NumberType;
use pgrx::pg_sys;

use super::plan::JoinKind;
use super::small_column::Column;
use crate::asof_join::executor;
use crate::custom_scan::scalar;
use crate::custom_scan::translate::to_scalar;
use crate::pg::call_ports::{datumCopy, datumGetSize};
use crate::pg::ports;

/// The rows of a batch, and the plan that they come from.
pub struct SmallSide {
    child: *mut pg_sys::PlanState,
    /// The child's columns: the keys first, then the outputs.
    columns: Vec<Column>,
    keys: usize,
    /// Codes of the keys that are compared with columns of sides joined before.
    codes: Vec<Option<KeyCodes>>,
    /// Holds the values of a batch that are passed by reference.
    memory: pg_sys::MemoryContext,
    /// Bytes that a batch may take.
    limit: usize,
    is_done: bool,
    /// Outputs, a column each; `None` is NULL.
    values: Vec<Vec<Option<pg_sys::Datum>>>,
    bytes: usize,
    /// Rows of all batches so far.
    rows: u64,
    batches: u64,
    /// A row of the batch, for expressions over it.
    slot: *mut pg_sys::TupleTableSlot,
}

/// Bytes that a row takes beside its values.
pub const ROW_BYTES: usize = 48;
/// Rows of a batch have numbers of 32 bits.
const ROWS_MAX: usize = u32::MAX as usize - 1;

impl SmallSide {
    /// The small side before its first row is read.
    ///
    /// # Safety
    /// A node in execution with the small side's plan as this child, which returns a column for each of the keys and
    /// then the outputs. Of each key it is said whether it is compared with columns of a side joined before.
    pub unsafe fn of(node: *mut pg_sys::CustomScanState, child: usize, keys: &[bool]) -> SmallSide {
        // SAFETY: the caller's promise.
        unsafe {
            let child: *mut pg_sys::PlanState = ports::list_nth((*node).custom_ps, child as i32);
            let descriptor = (*child).ps_ResultTupleDesc;
            let columns: Vec<Column> = (0..(*descriptor).natts as usize)
                .map(|index| Column::of(ports::TupleDescAttr(descriptor, index).atttypid))
                .collect();
            let lasting = scalar::memory(&raw mut (*node).ss.ps);
            let memory = pg_sys::AllocSetContextCreateInternal(
                lasting,
                c"lanes hash join".as_ptr(),
                pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            );
            let slot = executor::in_context(lasting, || {
                pg_sys::MakeSingleTupleTableSlot(descriptor, &raw const pg_sys::TTSOpsVirtual)
            });
            let outputs = columns.len().saturating_sub(keys.len());
            let codes = keys.iter().map(|given| given.then(KeyCodes::default));
            SmallSide {
                child,
                columns,
                keys: keys.len(),
                codes: codes.collect(),
                memory,
                limit: pg_sys::get_hash_memory_limit(),
                is_done: false,
                values: vec![Vec::new(); outputs],
                bytes: 0,
                rows: 0,
                batches: 0,
                slot,
            }
        }
    }

    /// Reads the next batch into `join`, which is empty. A [divisible](super::plan::HashJoinPlan::is_divisible) join
    /// is done in several batches where one would take too much memory. Any other needs all rows at once: false says
    /// that they take too much.
    ///
    /// # Safety
    /// The node is in execution.
    pub unsafe fn read(
        &mut self,
        join: &mut EqualJoin,
        kind: JoinKind,
        is_divisible: bool,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            pg_sys::MemoryContextReset(self.memory);
            self.values.iter_mut().for_each(Vec::clear);
            self.bytes = 0;
            self.batches += 1;
            let codes = self.codes.iter_mut().flatten();
            codes.for_each(|codes| *codes = KeyCodes::default());
            let mut items = vec![Vec::new(); self.keys];
            while !self.is_done {
                // An ERROR becomes a panic here, as this owns memory.
                let slot = pg_sys::ffi::pg_guard_ffi_boundary(|| executor::next_row(self.child));
                if slot.is_null() || (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 != 0 {
                    self.is_done = true;
                    break;
                }
                ports::slot_getallattrs(slot);
                self.rows += 1;
                self.take(slot, join, &mut items, kind);
                if self.bytes > self.limit || join.rows() >= ROWS_MAX {
                    if !is_divisible {
                        return false;
                    }
                    break;
                }
            }
            join.finish();
            self.codes.iter_mut().flatten().for_each(KeyCodes::close);
            true
        }
    }

    /// Takes in a row, unless a key of it is NULL and the join returns no small rows without a match.
    unsafe fn take(
        &mut self,
        slot: *mut pg_sys::TupleTableSlot,
        join: &mut EqualJoin,
        items: &mut [Vec<u8>],
        kind: JoinKind,
    ) {
        // SAFETY: the slot's values are all there, of the types of the columns.
        unsafe {
            let value = |index: usize| {
                (!*(*slot).tts_isnull.add(index)).then(|| *(*slot).tts_values.add(index))
            };
            let mut keys = Vec::with_capacity(self.keys);
            let mut key_bytes = 0;
            for (index, item) in items.iter_mut().enumerate() {
                let mut key = self.columns[index].key(value(index), item);
                if let SmallKey::Text(item) = key {
                    key_bytes += item.len();
                }
                if let Some(codes) = &mut self.codes[index] {
                    let code = codes.code(key);
                    key = code.map_or(SmallKey::Null, |code| SmallKey::Integer(code.into()));
                }
                if matches!(key, SmallKey::Null) && !kind.keeps_small_rows() {
                    return;
                }
                keys.push(key);
            }
            let before = join.rows();
            match kind.wants_keys_alone() {
                true => join.push_key(&keys),
                false => drop(join.push(&keys)),
            }
            if join.rows() == before {
                return;
            }
            self.bytes += ROW_BYTES + key_bytes;
            if kind.wants_keys_alone() {
                return;
            }
            for (place, kept) in self.values.iter_mut().enumerate() {
                let column = self.columns[self.keys + place];
                let copy = value(self.keys + place).map(|datum| {
                    if column.by_value {
                        return datum;
                    }
                    self.bytes += datumGetSize(datum, false, column.length);
                    executor::in_context(self.memory, || datumCopy(datum, false, column.length))
                });
                self.bytes += size_of::<Option<pg_sys::Datum>>();
                kept.push(copy);
            }
        }
    }

    /// The code that a value has as a key compared with columns of a side joined before; none if no row has it.
    pub fn code(&mut self, key: usize, value: SmallKey<'_>) -> Option<u32> {
        self.codes[key].as_mut()?.code(value)
    }

    /// Whether there may be another batch.
    pub fn has_more(&self) -> bool {
        !self.is_done
    }

    /// The value of an output in a row of the batch; NULL past the last.
    pub fn value(&self, output: usize, row: u32) -> Option<pg_sys::Datum> {
        self.values[output].get(row as usize).copied().flatten()
    }

    /// The number type of a key.
    pub fn key_number(&self, key: usize) -> Option<NumberType> {
        self.columns[key].number
    }

    /// The number type of an output.
    pub fn number(&self, output: usize) -> Option<NumberType> {
        self.columns[self.keys + output].number
    }

    /// An output that is a number, for the engine: after the last row comes one that is NULL.
    pub fn numbers(&self, output: usize) -> Option<SeriesColumn> {
        let number = self.number(output)?;
        let values = &self.values[output];
        let values = || values.iter().copied().chain([None]);
        let scalar = |value: Option<pg_sys::Datum>| value.map_or(0, |v| to_scalar(number, v).0);
        Some(SeriesColumn {
            number,
            values: values().map(scalar).collect(),
            valid: Some(values().map(|value| value.is_some()).collect()),
            failed: None,
        })
    }

    /// A row of the batch in a slot: the keys are NULL, then come the outputs. All are NULL past the last row.
    ///
    /// # Safety
    /// The node is in execution.
    pub unsafe fn slot(&self, row: u32) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: the slot has a place for each column.
        unsafe {
            ports::ExecClearTuple(self.slot);
            for index in 0..self.columns.len() {
                let output = index.checked_sub(self.keys);
                let value = output.and_then(|output| self.value(output, row));
                *(*self.slot).tts_isnull.add(index) = value.is_none();
                *(*self.slot).tts_values.add(index) = value.unwrap_or(pg_sys::Datum::null());
            }
            ports::ExecStoreVirtualTuple(self.slot)
        }
    }

    /// Rows of all batches so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Batches so far.
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// Bytes that the batch takes.
    pub fn bytes(&self) -> usize {
        let codes = self.codes.iter().flatten();
        self.bytes + codes.map(KeyCodes::bytes).sum::<usize>()
    }
}
