//! The small side of a hash join: its plan is executed, and its rows are kept in batches.
//!
//! All of it lies in memory that is freed when the node starts again.

use lanes_columnar::join::equal::{EqualJoin, SmallKey};
use lanes_columnar::join::series::SeriesColumn;
use lanes_columnar::vector::number::NumberType;
use pgrx::pg_sys;

use super::plan::JoinKind;
use crate::asof_join::executor;
use crate::custom_scan::scalar;
use crate::custom_scan::translate::{number_type, to_scalar};
use crate::pg::call_ports::{datumCopy, datumGetSize};
use crate::pg::{datum, ports};

/// How values of a column are kept.
#[derive(Clone, Copy)]
struct Column {
    number: Option<NumberType>,
    is_uuid: bool,
    by_value: bool,
    length: i16,
}

/// The rows of a batch, and the plan that they come from.
pub struct SmallSide {
    child: *mut pg_sys::PlanState,
    /// The child's columns: the keys first, then the outputs.
    columns: Vec<Column>,
    keys: usize,
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
    /// A node in execution with the small side's plan as this child, which returns this many keys and then the outputs.
    pub unsafe fn of(node: *mut pg_sys::CustomScanState, child: usize, keys: usize) -> SmallSide {
        // SAFETY: the caller's promise.
        unsafe {
            let child: *mut pg_sys::PlanState = ports::list_nth((*node).custom_ps, child as i32);
            let descriptor = (*child).ps_ResultTupleDesc;
            let columns: Vec<Column> = (0..(*descriptor).natts as usize)
                .map(|index| {
                    let attribute = ports::TupleDescAttr(descriptor, index);
                    Column {
                        number: number_type(pg_sys::getBaseType(attribute.atttypid)),
                        is_uuid: pg_sys::getBaseType(attribute.atttypid) == pg_sys::UUIDOID,
                        by_value: attribute.attbyval,
                        length: attribute.attlen,
                    }
                })
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
            let outputs = columns.len().saturating_sub(keys);
            SmallSide {
                child,
                columns,
                keys,
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
                let Some(key) = value(index) else {
                    if !kind.keeps_small_rows() {
                        return;
                    }
                    keys.push(SmallKey::Null);
                    continue;
                };
                keys.push(match self.columns[index].number {
                    Some(NumberType::F32) => {
                        SmallKey::Float(f32::from_bits(key.value() as u32).into())
                    }
                    Some(NumberType::F64) => SmallKey::Float(f64::from_bits(key.value() as u64)),
                    Some(number) => SmallKey::Integer(to_scalar(number, key).0 as i64),
                    None if self.columns[index].is_uuid => SmallKey::Bytes16(datum::bytes16(key)),
                    None => {
                        datum::text_item(key, item);
                        key_bytes += item.len();
                        SmallKey::Text(item)
                    }
                });
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
        self.bytes
    }
}
