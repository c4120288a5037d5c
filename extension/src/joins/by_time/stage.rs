//! A join by time under execution. For each vector of the left side it finds rows of the right
//! side.
//!
//! While both sides come in the order of their times, they are read side by side: this finds the
//! latest rows, and aggregates windows between two bounds. Left rows that are done would miss a
//! right row that comes late, so the order of the right side is checked before. If both sides
//! come by key and then by time, as sealed tables often do, the latest rows are found key by key
//! under the same conditions. At the first vector of the left side that is not in order, the
//! right side is read into a series, which is searched from then on. A left row finds the same
//! rows in either way. Other joins search a series from the beginning.
//!
//! *Memory* is counted while the join runs, and is limited. When the limit is reached,
//! PostgreSQL's own plan ([`crate::custom_scan::stand_in`]) takes over for the left rows that
//! are not done.

use lanes_columnar::join::asof::Asof;
use lanes_columnar::join::by_key::{ByKey, Step};
use lanes_columnar::join::cursor::Bound;
use lanes_columnar::join::joined_column::JoinedColumn;
use lanes_columnar::join::keys::{JoinKeys, Side};
use lanes_columnar::join::series::Series;
use lanes_columnar::join::side_by_side::{LeftTimes, SideBySide};
use lanes_columnar::join::window::{Window, WindowCall};
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::{Operand, Value};
use lanes_columnar::vector::{Evaluation, EvaluationError};

use super::plan::{JoinPlan, Wanted};
use super::right_side::{RightSide, RightVector, goes_on};
use super::start::{Start, bound, inclusive_time, join_keys};
use crate::custom_scan::stand_in;
use crate::error;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::pg::exec::node::ExecNode;
use crate::pg::snapshot::Snapshot;
use crate::vectors::counters::Counters;

/// A join by time under execution.
pub struct JoinStage {
    inner: bool,
    snapshot: Option<Snapshot<'static>>,
    keys: JoinKeys,
    lower: Option<(Value, bool)>,
    upper: Option<(Value, bool)>,
    right: RightSide,
    find: Find,
    joined: Vec<JoinedColumn>,
    operands: Vec<Operand>,
    bytes: usize,
    /// The number of bytes that the join may take.
    limit: usize,
}

/// The algorithm by which left rows find right rows.
pub(super) enum Find {
    /// Reads both sides side by side while they come in the order of time.
    SideBySide {
        reading: Box<dyn SideBySide>,
        latest: Latest,
        /// The aggregates to look up in a series if the order ends.
        calls: Option<Vec<WindowCall>>,
    },
    /// Reads both sides while they come by key and time.
    ByKey(Box<ByKey>),
    /// Searches a series for the nearest rows.
    Nearest {
        series: Series,
        asof: Asof,
        backward: bool,
    },
    /// Aggregates rows of a series.
    Window { series: Series, window: Window },
}

/// The latest times so far of both sides.
pub(super) struct Latest {
    lower: i64,
    upper: i64,
    right: i64,
}

impl Latest {
    /// Before all times.
    pub const NONE: Latest = Latest {
        lower: i64::MIN,
        upper: i64::MIN,
        right: i64::MIN,
    };
}

impl JoinStage {
    /// Prepares a join. `translator` has already translated the other expressions over the left
    /// side and the join. Returns `None` if the right side takes too much memory.
    pub fn begin(
        plan: &JoinPlan,
        node: ExecNode<'_>,
        translator: &mut Translator,
    ) -> Translation<Option<JoinStage>> {
        let limit = stand_in::memory_limit();
        let outputs = translator.given().to_vec();
        let mut right = RightSide::of(plan, Scalars::of(node), &outputs)?;
        let mut keys = join_keys(plan, &mut right, translator)?;
        let (lower, upper) = (
            bound(plan.lower, translator)?,
            bound(plan.upper, translator)?,
        );
        let numbers = right.column_types();
        let calls = match &plan.wanted {
            Wanted::Nearest { .. } => None,
            Wanted::Aggregates(_) => Some(std::mem::take(&mut right.calls)),
        };
        let results = match &calls {
            None => numbers.clone(),
            Some(calls) => calls.iter().map(|call| call.number(&numbers)).collect(),
        };
        let joined: Vec<JoinedColumn> = results.into_iter().map(JoinedColumn::new).collect();
        let start = Start {
            plan,
            snapshot: node.snapshot(),
            lower: inclusive_time(lower.as_ref()),
            upper: inclusive_time(upper.as_ref()),
            has_lower: lower.is_some(),
            limit,
        };
        let find = match start.find(&mut right, &mut keys, &numbers, calls) {
            Ok(find) => find,
            Err(EvaluationError::TooMuchMemory) => return Ok(None),
            Err(failure) => error::evaluation(failure),
        };
        Ok(Some(JoinStage {
            inner: plan.inner,
            snapshot: node.snapshot(),
            keys,
            lower,
            upper,
            right,
            find,
            operands: joined.iter().map(JoinedColumn::operand).collect(),
            joined,
            bytes: 0,
            limit,
        }))
    }

    /// Bytes of memory that the join takes.
    pub fn bytes(&self) -> usize {
        let find = match &self.find {
            Find::SideBySide { reading, .. } => reading.bytes(),
            Find::ByKey(reading) => reading.bytes(),
            Find::Nearest { series, asof, .. } => series.bytes() + asof.bytes(),
            Find::Window { series, window } => series.bytes() + window.bytes(),
        };
        self.keys.bytes() + find.max(self.bytes)
    }

    /// The name of the algorithm, for EXPLAIN.
    pub fn algorithm(&self) -> &'static str {
        match &self.find {
            Find::SideBySide { .. } => "side by side",
            Find::ByKey(_) => "key by key",
            _ => "search by key and time",
        }
    }

    /// Ends the scans; returns the statistics of the right side.
    pub fn end(&mut self) -> Counters {
        self.right.close();
        self.right.counters
    }

    /// Finds the right rows of the selected rows in a vector of the left side, and deselects the
    /// rows that the join does not return.
    ///
    /// # Errors
    /// Errors in the evaluation of keys, bounds and aggregates, and too much memory.
    pub fn find(&mut self, frame: &Frame<'_>, selection: &mut Selection) -> Evaluation<()> {
        if self.find_nothing(selection)? {
            return Ok(());
        }
        let mut matching = *selection;
        let evaluate = |bound: &mut Option<(Value, bool)>, matching: &mut Selection| {
            let Some((value, inclusive)) = bound else {
                return Ok(None);
            };
            let times = value.evaluate(frame, selection)?;
            *matching = times.valid(matching);
            Ok(Some(Bound {
                number: value.number(),
                times,
                inclusive: *inclusive,
            }))
        };
        let lower = evaluate(&mut self.lower, &mut matching)?;
        let upper = evaluate(&mut self.upper, &mut matching)?;
        if !self.read_on(frame, lower.as_ref(), upper.as_ref(), *selection, matching)? {
            self.read_into_series()?;
        }
        match &mut self.find {
            Find::SideBySide { reading, .. } => {
                if self.inner
                    && let Some(found) = reading.found()
                {
                    *selection = selection.and(&found);
                }
                Ok(())
            }
            Find::ByKey(reading) => {
                if self.inner {
                    *selection = selection.and(&reading.found());
                }
                Ok(())
            }
            Find::Nearest { .. } | Find::Window { .. } => {
                self.search(frame, selection, matching, lower, upper)
            }
        }
    }

    /// Reads the right side into a series, which is searched from now on.
    fn read_into_series(&mut self) -> Evaluation<()> {
        self.bytes = self.bytes();
        let calls = match &mut self.find {
            Find::SideBySide { calls, .. } => calls.take(),
            _ => None,
        };
        let (right, keys) = (&mut self.right, &mut self.keys);
        self.find = in_series(right, self.snapshot, keys, calls, true, self.limit)?;
        Ok(())
    }

    /// Finds the right rows of a vector of the left side in the series.
    fn search(
        &mut self,
        frame: &Frame<'_>,
        selection: &mut Selection,
        mut matching: Selection,
        lower: Option<Bound>,
        upper: Option<Bound>,
    ) -> Evaluation<()> {
        match &mut self.find {
            Find::SideBySide { .. } | Find::ByKey(_) => Ok(()),
            Find::Nearest {
                series,
                asof,
                backward,
            } => {
                let (near, far) = if *backward {
                    (upper, lower)
                } else {
                    (lower, upper)
                };
                let Some(near) = near else {
                    return Ok(());
                };
                let ids = self.keys.assign(Side::Left, frame, &mut matching)?;
                // SAFETY: bounds and ids are of this vector.
                let found = unsafe { asof.find(series, ids, &near, far.as_ref(), &matching) };
                for (joined, column) in self.joined.iter_mut().zip(&series.columns) {
                    joined.gather(column, asof.places(), &found);
                }
                if self.inner {
                    *selection = found;
                }
                Ok(())
            }
            Find::Window { series, window } => {
                let ids = self.keys.assign(Side::Left, frame, &mut matching)?;
                let (lower, upper) = (lower.as_ref(), upper.as_ref());
                // SAFETY: as above.
                unsafe {
                    let given = &mut self.joined;
                    window.aggregate(series, ids, lower, upper, selection, &matching, given)
                }
            }
        }
    }

    /// If there are no right rows, the left rows find nothing. Keys and bounds are not
    /// evaluated, as PostgreSQL would not evaluate them either. Returns false if there are right
    /// rows.
    fn find_nothing(&mut self, selection: &mut Selection) -> Evaluation<bool> {
        match &mut self.find {
            Find::Nearest { series, asof, .. } if series.is_empty() => {
                for (joined, column) in self.joined.iter_mut().zip(&series.columns) {
                    joined.gather(column, asof.places(), &Selection::NONE);
                }
                if self.inner {
                    *selection = Selection::NONE;
                }
                Ok(true)
            }
            Find::Window { series, window } if series.is_empty() => {
                let (joined, none) = (&mut self.joined, &Selection::NONE);
                // SAFETY: no row matches, so neither ids nor bounds are read.
                unsafe { window.aggregate(series, &[], None, None, selection, none, joined)? };
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Reads both sides up to the end of a vector of the left side. Returns false if one of them
    /// is not in order, and true if the sides are not read side by side at all.
    fn read_on(
        &mut self,
        frame: &Frame<'_>,
        lower: Option<&Bound>,
        upper: Option<&Bound>,
        selection: Selection,
        mut matching: Selection,
    ) -> Evaluation<bool> {
        let (reading, latest) = match &mut self.find {
            Find::SideBySide {
                reading, latest, ..
            } => (reading, latest),
            Find::ByKey(_) => return self.read_by_key(frame, upper, matching),
            _ => return Ok(true),
        };
        let times = |bound: Option<&Bound>| match bound.map(|bound| bound.times) {
            None => Some(std::ptr::null()),
            Some(Operand::Each { values, .. }) => Some(values.cast::<i64>()),
            Some(_) => None,
        };
        let (Some(lower), Some(upper)) = (times(lower), times(upper)) else {
            return Ok(false);
        };
        let left = LeftTimes { lower, upper };
        // SAFETY: the operands have a time for each row of their vectors, which are read before either side goes on.
        unsafe {
            let of_vector = |times| std::slice::from_raw_parts(times, frame.rows);
            let in_order = (lower.is_null() || goes_on(of_vector(lower), &mut latest.lower))
                && goes_on(of_vector(upper), &mut latest.upper);
            if !in_order {
                return Ok(false);
            }
            let ids = self.keys.assign(Side::Left, frame, &mut matching)?;
            reading.enter_left(left, ids, &selection, &matching, frame.rows);
            reading.make_room(self.keys.len());
            loop {
                reading.advance(&mut self.joined)?;
                if reading.is_left_done() {
                    return Ok(true);
                }
                let (before, mut left_window) = (self.right.windows(), false);
                let next = self.right.next(&mut self.keys, || {
                    left_window = true;
                    reading.leave_window();
                });
                let Some(vector) = next? else {
                    reading.finish_left(&mut self.joined)?;
                    return Ok(true);
                };
                let (RightVector { ids, rows, .. }, place) = (&vector, vector.place);
                let Operand::Each { values, .. } = vector.times else {
                    return Ok(false);
                };
                // The times are in order already. Reading them once more brings them into the
                // cache for the merge, which jumps.
                let times = std::slice::from_raw_parts(values.cast(), *rows);
                if !goes_on(times, &mut latest.right) {
                    return Ok(false);
                }
                if left_window || self.right.windows() != before {
                    reading.enter_window(self.right.window_columns());
                }
                reading.enter_right(values.cast(), ids, &vector.selection, *rows, place);
                reading.make_room(self.keys.len());
                fits(self.limit, self.keys.bytes() + reading.bytes())?;
            }
        }
    }

    /// Reads both sides key by key up to the end of a vector of the left side. Returns false if
    /// one of them is not in order.
    fn read_by_key(
        &mut self,
        frame: &Frame<'_>,
        upper: Option<&Bound>,
        mut matching: Selection,
    ) -> Evaluation<bool> {
        let Find::ByKey(reading) = &mut self.find else {
            return Ok(true);
        };
        let Some(Operand::Each { values, .. }) = upper.map(|bound| bound.times) else {
            return Ok(false);
        };
        let (rows, given) = (frame.rows, &mut self.joined[..]);
        let ids = self.keys.assign(Side::Left, frame, &mut matching)?;
        // SAFETY: operands and columns have what they have for each row of their vectors, which are
        // read before either side goes on.
        unsafe {
            if !reading.enter_left(values.cast(), ids, &matching, rows, given) {
                return Ok(false);
            }
            loop {
                match reading.advance(given, |a, b| self.keys.order(a, b)) {
                    Step::LeftDone => return Ok(true),
                    Step::OutOfOrder => return Ok(false),
                    Step::RightDone => {}
                }
                let Some(vector) = self.right.next(&mut self.keys, || ())? else {
                    reading.end_right();
                    continue;
                };
                let RightVector { ids, rows, .. } = vector;
                let Operand::Each { values, .. } = vector.times else {
                    return Ok(false);
                };
                let window = (vector.place, self.right.window_columns());
                if !reading.enter_right(values.cast(), ids, &vector.selection, rows, window) {
                    return Ok(false);
                }
                fits(self.limit, self.keys.bytes() + reading.bytes())?;
            }
        }
    }

    /// The operands for the rows of the vector.
    pub fn operands(&self) -> &[Operand] {
        &self.operands
    }
}

/// Fails if `bytes` exceeds the limit.
fn fits(limit: usize, bytes: usize) -> Evaluation<()> {
    match bytes > limit {
        true => Err(EvaluationError::TooMuchMemory),
        false => Ok(()),
    }
}

/// Reads the right side into a series, to search the nearest rows or to aggregate.
pub(super) fn in_series(
    right: &mut RightSide,
    snapshot: Option<Snapshot<'static>>,
    keys: &mut JoinKeys,
    calls: Option<Vec<WindowCall>>,
    backward: bool,
    limit: usize,
) -> Evaluation<Find> {
    let series = right.series(snapshot, keys, limit)?;
    Ok(match calls {
        None => Find::Nearest {
            asof: Asof::new(&series, backward),
            series,
            backward,
        },
        Some(calls) => Find::Window {
            window: Window::new(&series, calls),
            series,
        },
    })
}
