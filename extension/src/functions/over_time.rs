//! `lanes.counter_increase(value, ts)`, `lanes.counter_rate(value, ts)` and `lanes.time_weight(value, ts [, method])`:
//! aggregates of numbers in the order of their times.
//!
//! [`lanes_columnar::aggregate::over_time`] defines what they compute, and which rows count. Rows may come in any
//! order:
//!
//! ```text
//! row ──► later than all before? ── yes ──► the running series ──────────────────► result, if all came in order
//!   └───► kept rows (memory, then a sort) ──► in order ──► a series of its own ──► result, otherwise
//! ```
//! Rows are not kept if the call has an ORDER BY that puts them in order. Over a window they are kept up to
//! `work_mem`; a frame of more rows must come in order. Partial states are not combined, because their rows
//! interleave.

use lanes_columnar::aggregate::Answer;
use lanes_columnar::aggregate::over_time::{Between, Counter, Series, TimeWeight, is_counted};
use lanes_simd::Comparison;
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::error;
use crate::expressions::aggregate_call::Shape;
use crate::expressions::result_datum;
use crate::pg::call::Call;
use crate::pg::kept_rows::KeptRows;
use crate::pg::ports;
use crate::pg::tree::TargetEntry;

crate::sql_callables! {
    lanes_counter_transition, pg_finfo_lanes_counter_transition => |call| transition(call, |_| Counter::default());
    lanes_counter_increase, pg_finfo_lanes_counter_increase => |call| finish(call, Counter::increase);
    lanes_counter_rate, pg_finfo_lanes_counter_rate => |call| finish(call, Counter::rate);
    lanes_time_weight_transition, pg_finfo_lanes_time_weight_transition => time_weight;
    lanes_time_weight_final, pg_finfo_lanes_time_weight_final => |call| finish(call, TimeWeight::average);
}

/// The state of a group.
#[derive(Clone, Copy)]
#[repr(C)]
struct Kept<S> {
    /// The series of the rows, as far as they came in order.
    series: S,
    /// Whether all of them did.
    is_in_order: bool,
    keeps_rows: bool,
    rows: KeptRows,
}

/// Adds a row. The first one begins the series.
#[inline]
fn transition<S: Series>(call: &Call, begin: impl FnOnce(&Call) -> S) -> Option<pg_sys::Datum> {
    let (x, time) = (
        call.float8(1),
        call.int8(2).filter(|time| is_counted(*time)),
    );
    let (Some(x), Some(time)) = (x, time) else {
        return call.argument(0);
    };
    let memory = super::aggregate_memory(call);
    let kept = match call.state::<Kept<S>>(0) {
        Some(kept) => kept,
        None => {
            let kept = Kept {
                series: begin(call),
                is_in_order: true,
                keeps_rows: !is_ordered_by_time(call),
                rows: KeptRows::new(),
            };
            call.new_state(memory, kept)
        }
    };
    kept.is_in_order &= kept.series.last_time().is_none_or(|last| time >= last);
    if kept.is_in_order {
        kept.series.push(time, x);
    }
    if kept.keeps_rows {
        kept.rows.push(memory, time, x);
        if kept.rows.is_full() {
            make_room(call, kept, memory);
        }
    } else if !kept.is_in_order {
        refuse_disorder();
    }
    Some(pg_sys::Datum::from(&raw mut *kept))
}

/// Takes the kept rows out of memory.
fn make_room<S: Series>(call: &Call, kept: &mut Kept<S>, memory: pg_sys::MemoryContext) {
    if !call.is_in_window() {
        return kept.rows.spill(call, memory);
    }
    if !kept.is_in_order {
        refuse_disorder();
    }
    // The series has them already.
    kept.rows.clear();
    kept.keeps_rows = false;
}

/// The method is checked in each row, so that it cannot change.
fn time_weight(call: &Call) -> Option<pg_sys::Datum> {
    let between = match call.has_argument(3) {
        false => Between::Locf,
        true => call.text(3).and_then(Between::of).unwrap_or_else(|| {
            error::raise(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                "the method of lanes.time_weight must be 'locf' or 'linear'",
                "Choose 'locf' for values that hold until the next one, and 'linear' for values that change steadily.",
            )
        }),
    };
    let is_same = |before: &mut Kept<TimeWeight>| before.series.between == between;
    if !call.state::<Kept<TimeWeight>>(0).is_none_or(is_same) {
        error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "the method of lanes.time_weight changed within a group",
            "Give a constant, or group by the column that gives the method.",
        )
    }
    transition(call, |_| TimeWeight::new(between))
}

/// The result of the rows in order.
fn finish<S: Series>(call: &Call, answer: fn(&S) -> Answer) -> Option<pg_sys::Datum> {
    let kept = call.state::<Kept<S>>(0)?;
    let mut series = kept.series;
    if !kept.is_in_order {
        series = series.emptied();
        let memory = super::aggregate_memory(call);
        kept.rows
            .in_order(call, memory, |time, x| series.push(time, x));
    }
    if !call.is_in_window() {
        // Another aggregate that shares the state finds the result. No row follows.
        (kept.series, kept.is_in_order) = (series, true);
        kept.rows.free();
    }
    result_datum::datum(answer(&series), Shape::Double)
}

/// Whether the call's own ORDER BY puts the rows in the order of time, which is its second argument.
fn is_ordered_by_time(call: &Call) -> bool {
    let Some(aggregate) = call.aggregate() else {
        return false;
    };
    let arguments = aggregate.args();
    let time = arguments.get(1).map(TargetEntry::expr);
    let first = aggregate.aggorder().first();
    first.zip(time).is_some_and(|(clause, time)| {
        let operator = ports::btree_operator(clause.sortop());
        let ascends = operator.is_some_and(|(comparison, ..)| comparison == Comparison::Less);
        ascends && clause.expr(arguments).equals(time)
    })
}

fn refuse_disorder() -> ! {
    error::raise(
        PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
        "the rows of a window do not come in the order of time, and take more than work_mem",
        "Order the window by the time that the aggregate is called with, or raise work_mem.",
    )
}
