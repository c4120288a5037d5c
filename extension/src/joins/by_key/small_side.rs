//! The small side of a hash join: executes its plan, and keeps its rows in batches.
//!
//! If the plan is a scan or a join of this library, its rows are read [as
//! vectors](super::vector_child).
//!
//! All rows lie in memory that is freed when the node is restarted.

use lanes_columnar::join::equal::{EqualJoin, SmallKey};
use lanes_columnar::join::key_codes::KeyCodes;
use lanes_columnar::join::series::SeriesColumn;
use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::number::NumberType;
use pgrx::pg_sys;

use super::plan::JoinKind;
use super::shared_rows::SharedRows;
use super::small_column::Column;
use super::small_row::{Row, SlotRow, VectorRow};
use super::vector_child::{ColumnSource, OpenVectors, VectorChild};
use super::vector_rows::{NumberColumn, VectorKeys};
use crate::error;
use crate::expressions::translate::to_scalar;
use crate::pg::exec::child::Child;
use crate::pg::exec::memory::{Memory, hash_memory_limit};
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::slot::Slot;

/// The rows of the current batch, and the plan that returns them.
pub struct SmallSide {
    child: Child,
    open: OpenVectors,
    /// The child if its rows are read as vectors. This is decided when the first batch is read.
    by_columns: Option<Box<dyn VectorChild>>,
    has_begun: bool,
    /// The keys, if they are read from vectors a column at a time.
    pub vector_keys: Option<VectorKeys>,
    /// The rows of the child's own small sides.
    shared: Vec<SharedRows>,
    /// The child's columns: the keys first, then the outputs.
    pub columns: Vec<Column>,
    pub keys: usize,
    /// Codes of the keys that are compared with columns of earlier sides.
    pub codes: Vec<Option<KeyCodes>>,
    /// For each key, the shared row whose code was looked up last, with that code.
    last_codes: Vec<Option<(u32, Option<u32>)>>,
    /// Memory for the values of a batch that are passed by reference.
    memory: Memory,
    /// The number of bytes that a batch may take.
    limit: usize,
    /// Whether a batch has all rows, whatever they take: where several processes join, no other plan can take over from
    /// one of them. The planner has checked that the whole table of the side is small.
    takes_all: bool,
    is_done: bool,
    /// The values of each output.
    pub values: Vec<Kept>,
    pub bytes: usize,
    /// The number of rows in all batches so far.
    pub rows: u64,
    batches: u64,
    /// A slot for a row of the batch, over which expressions are evaluated.
    slot: Slot,
}

/// The values of an output.
pub enum Kept {
    /// One value for each row; `None` is NULL.
    Each(Vec<Option<pg_sys::Datum>>),
    /// A column of shared rows.
    Shared { of: usize, column: usize },
    /// Numbers that were read from vectors.
    Numbers(NumberColumn),
}

/// Bytes that a row takes in addition to its values.
pub const ROW_BYTES: usize = 48;
/// Row numbers within a batch have 32 bits, and a vector is always read completely.
const ROWS_MAX: usize = u32::MAX as usize - 1 - VECTOR_ROWS;

impl SmallSide {
    /// Prepares a small side; no row is read yet. For each key, `keys` says whether it is
    /// compared with columns of an earlier side.
    pub fn of(node: ExecNode<'_>, child: usize, keys: &[bool], open: OpenVectors) -> SmallSide {
        let child = node.children()[child];
        let types = child.column_types();
        let columns: Vec<Column> = types.into_iter().map(Column::of).collect();
        let lasting = node.lasting_memory();
        let outputs = columns.len().saturating_sub(keys.len());
        let codes = keys.iter().map(|given| given.then(KeyCodes::default));
        SmallSide {
            child,
            open,
            by_columns: None,
            has_begun: false,
            vector_keys: None,
            shared: Vec::new(),
            columns,
            keys: keys.len(),
            codes: codes.collect(),
            last_codes: vec![None; keys.len()],
            memory: lasting.child(c"LanesHashJoin"),
            limit: hash_memory_limit(),
            takes_all: node.plan().is_parallel_aware(),
            is_done: false,
            values: (0..outputs).map(|_| Kept::Each(Vec::new())).collect(),
            bytes: 0,
            rows: 0,
            batches: 0,
            slot: lasting.enter(|| child.new_slot()),
        }
    }

    /// Reads the next batch into `join`, which is empty. A
    /// [divisible](super::plan::HashJoinPlan::is_divisible) join reads several batches if one
    /// would take too much memory. Any other join needs all rows at once; the result is false if
    /// they take too much.
    pub fn read(&mut self, join: &mut EqualJoin, kind: JoinKind, is_divisible: bool) -> bool {
        self.memory.reset();
        self.takes_all &= !is_divisible;
        self.limit = kind.memory_limit();
        self.begin(join, kind);
        self.bytes = 0;
        self.batches += 1;
        let codes = self.codes.iter_mut().flatten();
        codes.for_each(|codes| *codes = KeyCodes::default());
        let mut items = vec![Vec::new(); self.keys];
        match self.by_columns.take() {
            Some(mut child) => {
                let mut shared = std::mem::take(&mut self.shared);
                self.read_vectors(&mut *child, &mut shared, join, &mut items, kind);
                (self.by_columns, self.shared) = (Some(child), shared);
            }
            None => self.read_slots(join, &mut items, kind),
        }
        if !self.is_done && !is_divisible {
            return false;
        }
        join.finish(self.limit.saturating_sub(self.bytes));
        self.codes.iter_mut().flatten().for_each(KeyCodes::close);
        for kept in &mut self.values {
            if let Kept::Numbers(numbers) = kept
                && !kind.needs_match()
            {
                numbers.finish();
            }
        }
        true
    }

    /// Drops the previous batch. Before the first batch it decides how the child's rows are
    /// read.
    fn begin(&mut self, join: &mut EqualJoin, kind: JoinKind) {
        let by_columns = match std::mem::replace(&mut self.has_begun, true) {
            true => None,
            false => (self.open)(self.child),
        };
        if let Some((child, shared)) = by_columns {
            for (kept, source) in self.values.iter_mut().zip(&child.sources()[self.keys..]) {
                if let ColumnSource::Shared { of, column } = *source {
                    *kept = Kept::Shared { of, column };
                }
            }
            self.begin_vectors(&*child, join, kind);
            (self.by_columns, self.shared) = (Some(child), shared);
        }
        for kept in &mut self.values {
            match kept {
                Kept::Each(values) => values.clear(),
                Kept::Numbers(numbers) => numbers.begin(),
                Kept::Shared { .. } => {}
            }
        }
        self.vector_keys.iter_mut().for_each(VectorKeys::begin);
        self.last_codes.fill(None);
        let shared = self.shared.iter_mut();
        shared.for_each(|shared| shared.begin(self.memory));
    }

    /// Reads slots until the child has no more, or the batch is full.
    fn read_slots(&mut self, join: &mut EqualJoin, items: &mut [Vec<u8>], kind: JoinKind) {
        while !self.is_full(join, &[]) {
            let slot = self.child.next_row_guarded();
            if slot.is_empty() {
                self.is_done = true;
                return;
            }
            slot.read_all();
            self.take(&SlotRow(slot), join, items, kind);
        }
    }

    /// Reads vectors until the child has no more, or the batch is full.
    fn read_vectors(
        &mut self,
        child: &mut dyn VectorChild,
        shared: &mut [SharedRows],
        join: &mut EqualJoin,
        items: &mut [Vec<u8>],
        kind: JoinKind,
    ) {
        loop {
            let Some(rows) = child.next_rows(shared) else {
                self.is_done = true;
                return;
            };
            if let Some(mut keys) = self.vector_keys.take() {
                let is_full = self.is_full(join, shared);
                if !is_full {
                    let taken = self.take_vector(child, &rows, shared, &mut keys, join, kind);
                    taken.unwrap_or_else(|failure| error::evaluation(failure));
                }
                self.vector_keys = Some(keys);
                if is_full {
                    child.leave(rows, 0);
                    return;
                }
                continue;
            }
            let mut next = 0;
            while let Some(row) = rows.selection.next(next) {
                if self.is_full(join, shared) {
                    child.leave(rows, row);
                    return;
                }
                next = row + 1;
                let of_vector = VectorRow {
                    child: &*child,
                    shared: &*shared,
                    rows: &rows,
                    row,
                };
                if self.take(&of_vector, join, items, kind) {
                    shared.iter_mut().for_each(|shared| shared.keep(row));
                }
            }
        }
    }

    /// Whether the batch takes as much memory as it may.
    fn is_full(&self, join: &EqualJoin, shared: &[SharedRows]) -> bool {
        let shared = shared.iter().map(SharedRows::bytes);
        let codes = self.codes.iter().flatten().map(KeyCodes::bytes);
        let bytes = self.bytes + shared.sum::<usize>() + codes.sum::<usize>();
        bytes > self.limit && !self.takes_all || join.rows() >= ROWS_MAX
    }

    /// Adds a row, unless one of its keys is NULL and the join does not return small rows
    /// without a match. Returns whether its outputs are kept.
    fn take(
        &mut self,
        row: &impl Row,
        join: &mut EqualJoin,
        items: &mut [Vec<u8>],
        kind: JoinKind,
    ) -> bool {
        self.rows += 1;
        let mut keys = Vec::with_capacity(self.keys);
        let mut key_bytes = 0;
        for (index, item) in items.iter_mut().enumerate() {
            let column = self.columns[index];
            let key = match &mut self.codes[index] {
                Some(codes) => {
                    let place = row.place(index);
                    let code = match (place, self.last_codes[index]) {
                        (Some(place), Some((last, code))) if place == last => code,
                        _ => codes.code(column.key(row.value(index), item)),
                    };
                    self.last_codes[index] = place.map(|place| (place, code));
                    code.map_or(SmallKey::Null, |code| SmallKey::Integer(code.into()))
                }
                None => column.key(row.value(index), item),
            };
            match key {
                SmallKey::Null if !kind.keeps_unmatched_rows() => return false,
                SmallKey::Text(item) => key_bytes += item.len(),
                _ => {}
            }
            keys.push(key);
        }
        let before = join.rows();
        let keys_alone = self.wants_keys_alone(kind);
        match keys_alone {
            true => join.push_key(&keys),
            false => drop(join.push(&keys)),
        }
        if join.rows() == before {
            return false;
        }
        self.bytes += ROW_BYTES + key_bytes;
        if keys_alone {
            return false;
        }
        for (place, kept) in self.values.iter_mut().enumerate() {
            let Kept::Each(kept) = kept else {
                continue;
            };
            let column = self.columns[self.keys + place];
            let copy = row.value(self.keys + place).map(|datum| {
                self.bytes += column.layout.copied_bytes(datum);
                self.memory.copy(datum, column.layout)
            });
            self.bytes += size_of::<Option<pg_sys::Datum>>();
            kept.push(copy);
        }
        true
    }

    /// Whether the keys of the rows are all that is kept. Of an anti join, PostgreSQL may want columns of the small
    /// side, which are NULL in each row that the join returns: it makes one of `LEFT JOIN … WHERE key IS NULL`.
    pub(super) fn wants_keys_alone(&self, kind: JoinKind) -> bool {
        kind.wants_keys_alone() && self.values.is_empty()
    }

    /// The code of a value as a key that is compared with columns of an earlier side; `None` if
    /// no row has this value.
    pub fn code(&mut self, key: usize, value: SmallKey<'_>) -> Option<u32> {
        self.codes[key].as_mut()?.code(value)
    }

    /// Whether the values of an output are passed by value.
    pub fn is_by_value(&self, output: usize) -> bool {
        self.columns[self.keys + output].layout.by_value
    }

    /// The shared rows that all of these outputs belong to; `None` if there are no such rows.
    pub fn shared_by(&self, outputs: &[usize]) -> Option<usize> {
        let mut of = outputs.iter().map(|output| match self.values[*output] {
            Kept::Shared { of, .. } => Some(of),
            Kept::Each(_) | Kept::Numbers(_) => None,
        });
        let first = of.next()??;
        of.all(|other| other == Some(first)).then_some(first)
    }

    /// The place of the shared row that belongs to a row of the batch; `None` past the last row.
    pub fn shared_place(&self, of: usize, row: u32) -> Option<u32> {
        self.shared[of].place_of_kept(row)
    }

    /// Whether there may be another batch.
    pub fn has_more(&self) -> bool {
        !self.is_done
    }

    /// The value of an output in a row of the batch; NULL past the last.
    pub fn value(&self, output: usize, row: u32) -> Option<pg_sys::Datum> {
        match &self.values[output] {
            Kept::Each(values) => values.get(row as usize).copied().flatten(),
            Kept::Shared { of, column } => self.shared[*of].value_of_kept(*column, row),
            Kept::Numbers(numbers) => numbers.value(row),
        }
    }

    /// The number type of a key.
    pub fn key_number(&self, key: usize) -> Option<NumberType> {
        self.columns[key].number
    }

    /// The number type of an output.
    pub fn number(&self, output: usize) -> Option<NumberType> {
        self.columns[self.keys + output].number
    }

    /// The numbers of an output if they are kept in the engine's form; `None` if they have to be
    /// [converted](Self::numbers).
    pub fn kept_numbers(&self, output: usize) -> Option<&SeriesColumn> {
        match &self.values[output] {
            Kept::Numbers(numbers) => Some(numbers.numbers()),
            _ => None,
        }
    }

    /// The numbers of an output converted for the engine, unless they are
    /// [kept](Self::kept_numbers) in that form. The row past the last one is NULL.
    pub fn numbers(&self, output: usize) -> Option<SeriesColumn> {
        let number = self.number(output)?;
        let rows = match &self.values[output] {
            Kept::Each(values) => values.len(),
            Kept::Shared { of, .. } => self.shared[*of].kept(),
            Kept::Numbers(_) => return None,
        };
        let values = || (0..=rows as u32).map(|row| self.value(output, row));
        let scalar = |value: Option<pg_sys::Datum>| value.map_or(0, |v| to_scalar(number, v).0);
        Some(SeriesColumn {
            number,
            values: values().map(scalar).collect(),
            valid: Some(values().map(|value| value.is_some()).collect()),
            failed: None,
        })
    }

    /// A row of the batch in a slot: NULLs for the keys, then the outputs. All columns are NULL
    /// past the last row.
    pub fn slot(&self, row: u32) -> Slot {
        let mut slot = self.slot.writer();
        for index in 0..self.columns.len() {
            let output = index.checked_sub(self.keys);
            slot.set(index, output.and_then(|output| self.value(output, row)));
        }
        slot.store()
    }

    /// The number of rows in all batches so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The number of batches so far.
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// Bytes of memory that the batch takes.
    pub fn bytes(&self) -> usize {
        let codes = self.codes.iter().flatten();
        let shared = self.shared.iter().map(SharedRows::bytes);
        self.bytes + codes.map(KeyCodes::bytes).sum::<usize>() + shared.sum::<usize>()
    }
}
