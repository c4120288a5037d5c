//! Reads the right side of an ASOF join into a [`History`].

use super::history::{History, TieImage};
use super::join::JoinExpressions;
use super::plan::AsofPlan;
use crate::custom_scan::stand_in;
use crate::pg::exec::expression::{RowContext, RowQual};
use crate::pg::exec::memory::ValueLayout;
use crate::pg::exec::slot::Slot;
use crate::pg::exec::table::{OwnTable, SlotScan};
use crate::pg::ports;
use crate::pg::snapshot::Snapshot;

/// The right side while it is read. An ERROR jumps over its methods, so all that needs dropping lies in its fields.
pub struct HistoryReader {
    plan: AsofPlan,
    history: Option<History>,
    snapshot: Option<Snapshot<'static>>,
    context: RowContext,
    qual: RowQual,
    /// The kept columns, counted from 1.
    kept: Vec<(i16, ValueLayout)>,
    /// The last column that is read, counted from 1.
    last: i16,
    /// The key and the ties of the current row.
    key: Vec<u8>,
    ties: Vec<TieImage>,
}

impl HistoryReader {
    /// A reader before the first row.
    pub fn new(
        expressions: &JoinExpressions,
        snapshot: Option<Snapshot<'static>>,
    ) -> HistoryReader {
        let plan = expressions.plan.clone();
        let columns = plan.kept.iter().copied();
        let columns = columns.chain(plan.keys.iter().map(|key| key.column));
        let columns = columns.chain(plan.ties.iter().map(|tie| tie.column));
        let limit = stand_in::memory_limit();
        HistoryReader {
            history: Some(History::new(plan.kept.len(), plan.ties.len(), limit)),
            snapshot,
            context: expressions.context,
            qual: expressions.table_qual,
            kept: Vec::new(),
            last: columns.chain([plan.time]).max().unwrap_or(0),
            key: Vec::new(),
            ties: Vec::with_capacity(plan.ties.len()),
            plan,
        }
    }

    /// Reads the table; `None` if the history would exceed its memory limit.
    pub fn read(&mut self) -> Option<History> {
        let table = OwnTable::open(self.plan.table, self.snapshot);
        let layout = |&column: &i16| (column, table.table().layout(column as usize - 1));
        self.kept = self.plan.kept.iter().map(layout).collect();
        let mut fits = true;
        if let Some(scan) = SlotScan::begin(table) {
            while let Some(row) = scan.next_row() {
                ports::CHECK_FOR_INTERRUPTS();
                self.context.reset();
                self.context.set_scan_row(row);
                fits = !self.qual.passes(self.context) || self.add(row);
                if !fits {
                    break;
                }
            }
            scan.end();
        }
        let mut history = self.history.take().filter(|_| fits)?;
        history.seal();
        Some(history)
    }

    /// Adds a row, unless its time or a key that must not be NULL is NULL. False if there is no memory for it.
    fn add(&mut self, row: Slot) -> bool {
        let last = self.last;
        let Some(time) = row.attribute(last, self.plan.time) else {
            return true;
        };
        if !self.read_key(row) {
            return true;
        }
        let plan = &self.plan;
        let Some(history) = &mut self.history else {
            return false;
        };
        self.ties.clear();
        for tie in &plan.ties {
            self.ties.push(tie.image(row.attribute(last, tie.column)));
        }
        let arrival = match plan.arrival_inverted {
            true => !row.place(),
            false => row.place(),
        };
        // A value that is passed by reference lies elsewhere, and each begins at a word of its own.
        let mut value_bytes = 0;
        for (column, layout) in &self.kept {
            let value = row.attribute(last, *column);
            let bytes = value.and_then(|value| layout.bytes(value));
            value_bytes += bytes.map_or(0, |bytes| bytes.len().next_multiple_of(8));
        }
        if !history.make_room(self.key.len(), value_bytes) {
            return false;
        }
        let time = plan.time_kind.ordered(time);
        history.add(&self.key, time, &self.ties, arrival);
        for (place, (column, layout)) in self.kept.iter().enumerate() {
            let value = row.attribute(last, *column);
            let word = match value.and_then(|value| layout.bytes(value)) {
                Some(bytes) => history.values.copy(bytes),
                None => value.map_or(0, |value| value.value()),
            };
            history.columns[place].values.push(word);
            history.columns[place].nulls.push(value.is_none());
        }
        true
    }

    /// Reads the key of a row; false if a part of it is NULL that matches nothing then.
    fn read_key(&mut self, row: Slot) -> bool {
        self.key.clear();
        for key in &self.plan.keys {
            match row.attribute(self.last, key.column) {
                Some(value) => {
                    self.key.push(1);
                    let memory = self.context.memory();
                    memory.enter(|| key.kind.append_key(value, &mut self.key));
                }
                None if key.nulls_match => self.key.push(0),
                None => return false,
            }
        }
        true
    }
}
