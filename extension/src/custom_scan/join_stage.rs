//! A join by time under execution: each vector of the left side is given what it finds on the right side.
//!
//! The nearest rows are found by merging, while both sides come in the order of their times. From the first vector of either side
//! that does not, the right side is read again into a series, which is searched: each left row finds the same, however it is
//! found. A window and the nearest row in future are looked up in a series from the beginning.

use lanes_columnar::join::asof::Asof;
use lanes_columnar::join::cursor::Bound;
use lanes_columnar::join::given::Given;
use lanes_columnar::join::keys::{JoinKey, JoinKeys, Side};
use lanes_columnar::join::merge::Merge;
use lanes_columnar::join::series::Series;
use lanes_columnar::join::window::Window;
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::{Operand, Value};
use lanes_simd::search::is_sorted_i64;
use pgrx::pg_sys;

use super::aggregate_call;
use super::right_side::RightSide;
use super::time_join::{JoinPlan, TimeBound, Wanted};
use super::translate::{Scalars, Translation, Translator};
use super::vector_source::Counters;
use crate::error;

/// A join by time under execution.
pub struct JoinStage {
    inner: bool,
    snapshot: pg_sys::Snapshot,
    keys: JoinKeys,
    lower: Option<(Value, bool)>,
    upper: Option<(Value, bool)>,
    right: RightSide,
    find: Find,
    given: Vec<Given>,
    operands: Vec<Operand>,
    bytes: usize,
}

/// How left rows find right rows.
enum Find {
    /// The latest rows, while both sides are read side by side.
    Merge { merge: Merge, times: Times },
    /// The nearest rows, in a series.
    Nearest {
        series: Series,
        asof: Asof,
        backward: bool,
    },
    /// Aggregates of rows of a series.
    Window { series: Series, window: Window },
}

/// The latest times so far, and whether there was one that was earlier.
#[derive(Clone, Copy)]
struct Times {
    left: i64,
    right: i64,
}

/// Whether times do not decrease, nor from the latest so far, which goes on.
///
/// # Safety
/// There are so many times.
unsafe fn goes_on(times: *const i64, rows: usize, latest: &mut i64) -> bool {
    if rows == 0 {
        return true;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let sorted = *latest <= *times && is_sorted_i64(times, rows);
        *latest = *times.add(rows - 1);
        sorted
    }
}

impl JoinStage {
    /// A join about to begin. `translator` has translated what else the query wants of the left side and of the join.
    ///
    /// # Safety
    /// A plan's live expressions, and a plan node under execution.
    pub unsafe fn begin(
        plan: &JoinPlan,
        node: *mut pg_sys::PlanState,
        translator: &mut Translator,
    ) -> Translation<JoinStage> {
        // SAFETY: the caller's promise.
        unsafe {
            let outputs = translator.given().to_vec();
            let mut right = RightSide::of(plan, Scalars::Evaluated(node), &outputs)?;
            let mut keys = Vec::new();
            let right_keys = std::mem::take(&mut right.keys);
            for ((left, column), right) in plan.left_keys.iter().zip(&plan.keys).zip(right_keys) {
                keys.push(JoinKey {
                    left: aggregate_call::key(translator, *left)?.0,
                    right,
                    nulls_match: column.nulls_match,
                });
            }
            let mut bound = |bound: Option<TimeBound>| -> Translation<Option<(Value, bool)>> {
                let Some(bound) = bound else {
                    return Ok(None);
                };
                Ok(Some((translator.value(bound.time)?, bound.inclusive)))
            };
            let (lower, upper) = (bound(plan.lower)?, bound(plan.upper)?);
            let mut keys = JoinKeys::new(keys);
            let snapshot = (*(*node).state).es_snapshot;
            let numbers = right.column_types();
            let merges = matches!(&plan.wanted, Wanted::Nearest { backward: true, .. })
                && lower.is_none()
                && right.time_type() == NumberType::I64;
            let (find, given) = match (&plan.wanted, &upper) {
                (Wanted::Nearest { .. }, Some((near, inclusive)))
                    if merges && near.number() == NumberType::I64 =>
                {
                    right.open(snapshot);
                    let merge = Merge::new(*inclusive, &numbers);
                    let times = Times {
                        left: i64::MIN,
                        right: i64::MIN,
                    };
                    (Find::Merge { merge, times }, given_of(&numbers))
                }
                (Wanted::Nearest { backward, .. }, _) => {
                    let find = nearest(&mut right, snapshot, &mut keys, *backward);
                    (
                        find.unwrap_or_else(|failure| error::evaluation(failure)),
                        given_of(&numbers),
                    )
                }
                (Wanted::Aggregates(_), _) => {
                    let series = right.series(snapshot, &mut keys);
                    let series = series.unwrap_or_else(|failure| error::evaluation(failure));
                    let calls = std::mem::take(&mut right.calls);
                    let results: Vec<_> = calls.iter().map(|call| call.number(&numbers)).collect();
                    let window = Window::new(&series, calls);
                    (Find::Window { series, window }, given_of(&results))
                }
            };
            Ok(JoinStage {
                inner: plan.inner,
                snapshot,
                keys,
                lower,
                upper,
                right,
                find,
                operands: given.iter().map(Given::operand).collect(),
                given,
                bytes: 0,
            })
        }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let find = match &self.find {
            Find::Merge { merge, .. } => merge.bytes(),
            Find::Nearest { series, asof, .. } => series.bytes() + asof.bytes(),
            Find::Window { series, window } => series.bytes() + window.bytes(),
        };
        self.keys.bytes() + find.max(self.bytes)
    }

    /// How right rows are found, for EXPLAIN.
    pub fn algorithm(&self) -> &'static str {
        match &self.find {
            Find::Merge { .. } => "merge",
            _ => "search by key and time",
        }
    }

    /// Ends reading; gives what reading the right side took.
    pub fn end(&mut self) -> Counters {
        self.right.close();
        self.right.counters
    }

    /// Finds what the selected rows of a vector of the left side are given, and leaves out rows that have no part in the join.
    ///
    /// # Errors
    /// Those of keys, bounds and aggregates.
    pub fn find(&mut self, frame: &Frame<'_>, selection: &mut Selection) -> Evaluation<()> {
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
        if matches!(self.find, Find::Merge { .. })
            && !self.merge(frame, upper.as_ref(), matching)?
        {
            let backward = true;
            self.bytes = self.bytes();
            // SAFETY: the table stays locked, and the snapshot is the query's.
            self.find =
                unsafe { nearest(&mut self.right, self.snapshot, &mut self.keys, backward)? };
        }
        match &mut self.find {
            Find::Merge { merge, .. } => {
                if self.inner {
                    *selection = merge.found();
                }
                Ok(())
            }
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
                for (given, column) in self.given.iter_mut().zip(&series.columns) {
                    given.gather(column, asof.places(), &found);
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
                    let given = &mut self.given;
                    window.aggregate(series, ids, lower, upper, selection, &matching, given)
                }
            }
        }
    }

    /// Merges a vector of the left side; false if one of the sides is not in order.
    fn merge(
        &mut self,
        frame: &Frame<'_>,
        near: Option<&Bound>,
        mut matching: Selection,
    ) -> Evaluation<bool> {
        let (Find::Merge { merge, times }, Some(near)) = (&mut self.find, near) else {
            return Ok(false);
        };
        let Operand::Each { values, .. } = near.times else {
            return Ok(false);
        };
        let left = values.cast::<i64>();
        // SAFETY: the operands have a time for each row of their vectors, which are read before either side goes on.
        unsafe {
            if !goes_on(left, frame.rows, &mut times.left) {
                return Ok(false);
            }
            let ids = self.keys.assign(Side::Left, frame, &mut matching)?;
            merge.enter_left(left, ids, &matching, frame.rows);
            merge.make_cells(self.keys.len());
            loop {
                merge.advance(&mut self.given);
                if merge.is_left_done() {
                    return Ok(true);
                }
                if self.right.may_leave_window() {
                    merge.leave_window();
                }
                let before = self.right.windows();
                let Some(vector) = self.right.next(&mut self.keys)? else {
                    merge.finish_left(&mut self.given);
                    return Ok(true);
                };
                let Operand::Each { values, .. } = vector.times else {
                    return Ok(false);
                };
                if !goes_on(values.cast(), vector.rows, &mut times.right) {
                    return Ok(false);
                }
                merge.enter_right(
                    values.cast(),
                    vector.ids,
                    &vector.selection,
                    vector.rows,
                    vector.place,
                );
                merge.make_cells(self.keys.len());
                if self.right.windows() != before {
                    merge.enter_window(self.right.window_columns().into_iter());
                }
            }
        }
    }

    /// What the rows of the vector were given.
    pub fn operands(&self) -> &[Operand] {
        &self.operands
    }
}

fn given_of(numbers: &[NumberType]) -> Vec<Given> {
    numbers.iter().map(|number| Given::new(*number)).collect()
}

/// Reads the right side into a series, to look for the nearest rows in it.
///
/// # Safety
/// As for [`RightSide::open`].
unsafe fn nearest(
    right: &mut RightSide,
    snapshot: pg_sys::Snapshot,
    keys: &mut JoinKeys,
    backward: bool,
) -> Evaluation<Find> {
    // SAFETY: the caller's promise.
    let series = unsafe { right.series(snapshot, keys)? };
    let asof = Asof::new(&series, backward);
    Ok(Find::Nearest {
        series,
        asof,
        backward,
    })
}
