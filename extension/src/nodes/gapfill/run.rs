//! The rows of `LanesGapfill`: which one comes next, and what it contains.

use pgrx::pg_sys::Datum;

use super::between::{Place, between};
use super::plan::{Column, GapfillPlan};
use super::steps::Steps;
use crate::gapfill_rewrite::spec::Role;
use crate::pg::exec::child::Child;
use crate::pg::exec::equality::Equality;
use crate::pg::exec::memory::{Memory, ValueLayout};
use crate::pg::exec::slot::SlotWriter;

/// The buckets of each group.
#[derive(Clone, Copy)]
pub struct Range {
    /// The first bucket.
    pub first: i64,
    /// All buckets start before this time.
    pub finish: i64,
}

/// A row of the input, copied.
struct Kept {
    memory: Memory,
    values: Vec<Option<Datum>>,
}

/// The rows.
pub struct Run {
    child: Child,
    columns: Vec<Column>,
    layouts: Vec<ValueLayout>,
    /// The equality of each key.
    equalities: Vec<(usize, Equality)>,
    bucket: usize,
    steps: Steps,
    range: Range,
    /// The last row of the current group that was returned, with the values that later rows take over; and the next
    /// row of the input.
    before: Kept,
    ahead: Kept,
    /// Whether there are such rows.
    has_before: bool,
    has_ahead: bool,
    /// The next bucket of the current group; `None` between two groups, and if no bucket follows.
    expected: Option<i64>,
    /// Whether a group has begun.
    is_in_group: bool,
    /// Whether the input is at its end.
    is_at_end: bool,
    /// Whether the only group, of a query without other keys, is still to begin.
    has_only_group: bool,
    /// How many rows were added.
    pub added: u64,
}

impl Run {
    /// Before the first row. The memory lives until the node starts again.
    pub fn new(
        plan: &GapfillPlan,
        child: Child,
        steps: Steps,
        range: Range,
        memory: Memory,
    ) -> Run {
        let kept = || Kept {
            memory: memory.child(c"lanes gapfill"),
            values: vec![None; plan.columns.len()],
        };
        let keys = plan.columns.iter().enumerate();
        let equality = |(place, column): (usize, &Column)| {
            Some((place, Equality::new(column.equality?, column.collation)))
        };
        Run {
            child,
            columns: plan.columns.clone(),
            layouts: plan
                .columns
                .iter()
                .map(|column| ValueLayout::of_type(column.type_of))
                .collect(),
            equalities: keys.filter_map(equality).collect(),
            bucket: plan.bucket().0,
            steps,
            range,
            before: kept(),
            ahead: kept(),
            has_before: false,
            has_ahead: false,
            expected: None,
            is_in_group: false,
            is_at_end: false,
            has_only_group: !plan.has_keys(),
            added: 0,
        }
    }

    /// Writes the next row; false if there is none. Values are allocated in `memory`, or live until the next call.
    pub fn next(&mut self, row: &mut SlotWriter<'_>, memory: Memory) -> bool {
        loop {
            self.read_ahead();
            if !self.is_in_group {
                if !self.has_ahead && !self.has_only_group {
                    return false;
                }
                self.has_only_group = false;
                (self.is_in_group, self.has_before) = (true, false);
                self.expected = Some(self.range.first);
            }
            let is_same = self.has_ahead && (!self.has_before || self.is_same_group());
            let next = self.bucket_ahead().filter(|_| is_same);
            let missing = self.expected.filter(|bucket| *bucket < self.range.finish);
            // Without a bucket, the row ahead comes after all buckets.
            if let Some(bucket) = missing.filter(|bucket| next.is_none_or(|next| *bucket < next)) {
                self.expected = self.steps.next(bucket);
                self.added += 1;
                memory.enter(|| self.write_added(row, bucket, next));
                return true;
            }
            if is_same {
                self.take_ahead(next);
                let values = self.before.values.iter().enumerate();
                values.for_each(|(place, value)| row.set(place, *value));
                return true;
            }
            self.is_in_group = false;
        }
    }

    /// Reads the next row of the input, unless there is one.
    fn read_ahead(&mut self) {
        if self.has_ahead || self.is_at_end {
            return;
        }
        let slot = self.child.next_row_guarded();
        if slot.is_empty() {
            self.is_at_end = true;
            return;
        }
        slot.read_all();
        self.ahead.memory.reset();
        for (place, layout) in self.layouts.iter().enumerate() {
            let value = slot.value(place);
            self.ahead.values[place] = value.map(|value| self.ahead.memory.copy(value, *layout));
        }
        self.has_ahead = true;
    }

    /// The bucket of the row ahead, if it has one.
    fn bucket_ahead(&self) -> Option<i64> {
        let bucket = self.ahead.values[self.bucket].filter(|_| self.has_ahead);
        bucket.map(|bucket| self.steps.number(bucket))
    }

    /// Whether the row ahead is of the group of the row before.
    fn is_same_group(&mut self) -> bool {
        let (before, ahead) = (&self.before.values, &self.ahead.values);
        self.equalities
            .iter_mut()
            .all(|(place, equality)| match (before[*place], ahead[*place]) {
                (Some(before), Some(ahead)) => equality.holds(before, ahead),
                (before, ahead) => before.is_none() && ahead.is_none(),
            })
    }

    /// Goes on to the row ahead, which is of the current group and of this bucket.
    fn take_ahead(&mut self, bucket: Option<i64>) {
        for (place, column) in self.columns.iter().enumerate() {
            if column.role == Role::LocfOverNulls
                && self.has_before
                && self.ahead.values[place].is_none()
            {
                let (memory, layout) = (self.ahead.memory, self.layouts[place]);
                let value = self.before.values[place].map(|value| memory.copy(value, layout));
                self.ahead.values[place] = value;
            }
        }
        std::mem::swap(&mut self.before, &mut self.ahead);
        (self.has_before, self.has_ahead) = (true, false);
        let finite = bucket.filter(|bucket| !self.steps.is_infinite(*bucket));
        match (bucket, finite) {
            (_, Some(bucket)) if bucket >= self.range.first => {
                self.expected = self.steps.next(bucket)
            }
            // Before the first bucket; or at minus infinity.
            (Some(bucket), _) if bucket < self.range.first => {}
            // At infinity, or NULL.
            _ => self.expected = None,
        }
    }

    /// Writes the row of a bucket without data. The row ahead is of the same group if it has the bucket `next`.
    fn write_added(&self, row: &mut SlotWriter<'_>, bucket: i64, next: Option<i64>) {
        let before = |place: usize| self.before.values[place].filter(|_| self.has_before);
        for (place, column) in self.columns.iter().enumerate() {
            let value = match column.role {
                Role::Bucket => Some(self.steps.time(bucket)),
                // A group begins with a row of it, except the only group, which has no keys.
                Role::Key if self.has_before => before(place),
                Role::Key => self.ahead.values[place].filter(|_| self.has_ahead),
                Role::Plain => None,
                Role::Locf | Role::LocfOverNulls => before(place),
                Role::Interpolated => self.interpolated(place, bucket, next),
            };
            row.set(place, value);
        }
    }

    /// The number between those of the rows before and ahead; `None` unless both have one.
    fn interpolated(&self, column: usize, bucket: i64, next: Option<i64>) -> Option<Datum> {
        let at = |kept: &Kept| {
            Some((
                self.steps.number(kept.values[self.bucket]?),
                kept.values[column]?,
            ))
        };
        let (from_time, from) = at(&self.before).filter(|_| self.has_before)?;
        let to_time = next?;
        let to = self.ahead.values[column]?;
        if self.steps.is_infinite(from_time) || self.steps.is_infinite(to_time) {
            return None;
        }
        let place = Place {
            done: bucket.checked_sub(from_time)?,
            whole: to_time.checked_sub(from_time)?,
        };
        between(
            crate::pg::catalog::base_type(self.columns[column].type_of),
            from,
            to,
            place,
        )
    }

    /// Frees the rows that are kept.
    pub fn free(self) {
        self.before.memory.delete();
        self.ahead.memory.delete();
    }
}
