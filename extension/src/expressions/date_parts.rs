//! Fields of times: `extract(hour FROM ts)` and `date_part('dow', ts)`.
//!
//! A field of a minute, an hour or a day, or of anything longer, is the same for all times of one minute, hour or
//! day of a clock. PostgreSQL computes it for the first time of each, and the result holds for the others. So the
//! ranges are those of [`super::buckets`] of `date_trunc`, which end where the zone's offset changes.

use std::collections::BTreeMap;

use lanes_columnar::vector::external_value::RowFunction;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::Scalar;
use lanes_columnar::vector::selection::Selection;
use pgrx::pg_sys;

use super::buckets::{self, Clock, Reach};
use crate::pg::time_zone::TimeZone;
use crate::pg::tree::Expr;

/// The most ranges that are kept. When there are more, all are dropped.
const RANGES_MAX: usize = 64 << 10;

/// The clock by which an expression over one column of times changes its value; `None` for other expressions.
pub fn clock_of(expr: Expr<'_>) -> Option<Clock> {
    let call = expr.stripped().as_func()?;
    let zone = match call.funcid().to_u32() {
        pg_sys::F_EXTRACT_TEXT_TIMESTAMP | pg_sys::F_DATE_PART_TEXT_TIMESTAMP => None,
        pg_sys::F_EXTRACT_TEXT_TIMESTAMPTZ | pg_sys::F_DATE_PART_TEXT_TIMESTAMPTZ => {
            Some(TimeZone::of_session()?)
        }
        _ => return None,
    };
    let arguments = call.args();
    let (field, time) = (arguments.get(0)?, arguments.get(1)?);
    time.as_var()?;
    let field = field.as_const()?.value()?.bytes()?;
    let unit: &[u8] = match &field[..] {
        b"minute" => b"minute",
        b"hour" => b"hour",
        b"day" | b"dow" | b"isodow" | b"doy" | b"week" | b"month" | b"quarter" | b"year"
        | b"isoyear" | b"decade" => b"day",
        _ => return None,
    };
    match buckets::reach_of_unit(unit, zone) {
        Reach::Clock(clock) => Some(clock),
        _ => None,
    }
}

/// A function of a column of times whose results hold for ranges of a clock.
pub struct ByRange {
    attribute: usize,
    function: Box<dyn RowFunction>,
    clock: Clock,
    /// The last time of each range, and its result, by the first time.
    ranges: BTreeMap<i64, (i64, Option<Scalar>)>,
}

impl ByRange {
    /// A function of the attribute.
    pub fn new(attribute: usize, function: Box<dyn RowFunction>, clock: Clock) -> ByRange {
        ByRange {
            attribute,
            function,
            clock,
            ranges: BTreeMap::new(),
        }
    }

    /// The range of a time, and its result, if it is known.
    fn known(&self, time: i64) -> Option<(i64, i64, Option<Scalar>)> {
        let (first, (last, result)) = self.ranges.range(..=time).next_back()?;
        (time <= *last).then_some((*first, *last, *result))
    }

    /// The result for a row, and the times for which it holds.
    fn computed(
        &mut self,
        frame: &Frame<'_>,
        row: usize,
        time: Option<i64>,
    ) -> (i64, i64, Option<Scalar>) {
        let (mut one, mut result) = (Selection::NONE, None);
        one.insert(row, row + 1);
        self.function
            .compute(frame, &one, &mut |_, found| result = found);
        // No time is in an empty range. Infinities have no range.
        let none = (1, 0, result);
        let is_finite = |time: &i64| *time != i64::MIN && *time != i64::MAX;
        let Some(time) = time.filter(is_finite) else {
            return none;
        };
        match self.clock.range(time) {
            Some((first, last)) if first <= time && time <= last => {
                if self.ranges.len() >= RANGES_MAX {
                    self.ranges.clear();
                }
                self.ranges.insert(first, (last, result));
                (first, last, result)
            }
            _ => none,
        }
    }
}

impl RowFunction for ByRange {
    fn compute(
        &mut self,
        frame: &Frame<'_>,
        rows: &Selection,
        take: &mut dyn FnMut(usize, Option<Scalar>),
    ) {
        let times: &[i64] = frame.values(self.attribute).unwrap_or_default();
        let valid = frame.present(self.attribute, rows);
        let mut range = (1, 0, None);
        rows.for_each(|row| {
            let time = times.get(row).copied().filter(|_| valid.contains(row));
            let holds = time.is_some_and(|time| range.0 <= time && time <= range.1);
            if !holds {
                let known = time.and_then(|time| self.known(time));
                range = known.unwrap_or_else(|| self.computed(frame, row, time));
            }
            take(row, range.2);
        });
    }

    fn forget(&mut self) {
        self.ranges.clear();
        self.function.forget();
    }
}
