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
use lanes_columnar::join::reading::Reading;
use lanes_columnar::join::series::Series;
use lanes_columnar::join::window::{Window, WindowCall};
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::{Operand, Value};
use lanes_columnar::vector::{Evaluation, EvaluationError};

use super::plan::{JoinPlan, Wanted};
use super::right_side::RightSide;
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
        reading: Reading,
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
        if self.find_nothing(frame.rows, selection)? {
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
                let ids = (&ids[..], frame.rows);
                let found = asof.find(series, ids, &near, far.as_ref(), &matching);
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
                let (ids, given) = ((&ids[..], frame.rows), &mut self.joined);
                window.aggregate(series, ids, lower, upper, selection, &matching, given)
            }
        }
    }

    /// If there are no right rows, the left rows find nothing. Keys and bounds are not
    /// evaluated, as PostgreSQL would not evaluate them either. Returns false if there are right
    /// rows.
    fn find_nothing(&mut self, rows: usize, selection: &mut Selection) -> Evaluation<bool> {
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
                // No row matches, so no id is read.
                window.aggregate(series, (&[], rows), None, None, selection, none, joined)?;
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
        let reading = match &mut self.find {
            Find::SideBySide { reading, .. } => reading,
            Find::ByKey(_) => return self.read_by_key(frame, upper, matching),
            _ => return Ok(true),
        };
        let bounds = (lower, upper);
        if !reading.enter_left(frame, bounds, &mut self.keys, &selection, &mut matching)? {
            return Ok(false);
        }
        loop {
            reading.advance(&mut self.joined)?;
            if reading.is_left_done() {
                return Ok(true);
            }
            let before = self.right.windows();
            let next = self.right.next(&mut self.keys, || reading.leave_window());
            let Some(vector) = next? else {
                reading.finish_left(&mut self.joined)?;
                return Ok(true);
            };
            let is_new = reading.has_left_window() || self.right.windows() != before;
            let window = is_new.then(|| self.right.window_columns());
            if !reading.enter_right(&vector, window) {
                return Ok(false);
            }
            fits(self.limit, self.keys.bytes() + reading.bytes())?;
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
        let (keys, given) = (&mut self.keys, &mut self.joined[..]);
        if !reading.enter_left(frame, upper, keys, &mut matching, given)? {
            return Ok(false);
        }
        loop {
            match reading.advance(given, |a, b| keys.order(a, b)) {
                Step::LeftDone => return Ok(true),
                Step::OutOfOrder => return Ok(false),
                Step::RightDone => {}
            }
            let Some(vector) = self.right.next(keys, || ())? else {
                reading.end_right();
                continue;
            };
            if !reading.enter_right(&vector, self.right.window_columns()) {
                return Ok(false);
            }
            fits(self.limit, keys.bytes() + reading.bytes())?;
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
