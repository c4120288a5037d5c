//! Functions of times that change with a clock: `extract(hour FROM ts)`, `ts::date`, `to_char(ts, 'YYYY-MM')`.
//!
//! Such a *part* of a time is the same for all times of one minute, hour or day of a clock. So is everything that is
//! computed from parts alone, as `extract(year FROM ts) * 100 + extract(month FROM ts)`. PostgreSQL computes it for the
//! first time of each, and the result holds for the others. So the ranges are those of [`super::buckets`] of
//! `date_trunc`, which end where the zone's offset changes.

use std::collections::BTreeMap;

use lanes_columnar::vector::external_value::RowFunction;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::Scalar;
use lanes_columnar::vector::selection::Selection;
use pgrx::pg_sys;

use super::buckets::{self, Clock, Reach};
use crate::pg::time_zone::TimeZone;
use crate::pg::tree::{Expr, Var, walk};

/// The most ranges that are kept. When there are more, all are dropped.
const RANGES_MAX: usize = 64 << 10;

/// What a part of a time changes with, the shortest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Minute,
    Hour,
    Day,
}

impl Unit {
    fn microseconds(self) -> f64 {
        const MINUTE: f64 = 60e6;
        match self {
            Unit::Minute => MINUTE,
            Unit::Hour => 60.0 * MINUTE,
            Unit::Day => 24.0 * 60.0 * MINUTE,
        }
    }
}

/// A part of a time.
#[derive(Clone, Copy)]
struct Part<'p> {
    unit: Unit,
    /// The most values that it has, if it comes again with the next hour, day, week or year.
    values: Option<f64>,
    column: Var<'p>,
    /// The zone of the clock. Without one, the column itself shows the clock.
    zone: Option<TimeZone>,
}

/// The parts of times that an expression is computed from. `None` if it reads a column otherwise, or has no part.
fn parts(expr: Expr<'_>) -> Option<Vec<Part<'_>>> {
    let (mut parts, mut has_bare_column) = (Vec::new(), false);
    // The copy is not used: a copy leaves out what is below the nodes that are replaced.
    walk::replaced(expr, &mut |node| {
        let part = part(node);
        has_bare_column |= part.is_none() && node.as_var().is_some();
        parts.extend(part);
        part.map(|_| node)
    });
    (!has_bare_column && !parts.is_empty()).then_some(parts)
}

/// The most values of an expression that is computed from parts of one column of times. `span` says how many
/// microseconds apart these times are. `None` if the expression is computed otherwise.
pub fn values_within<'p>(expr: Expr<'p>, span: impl Fn(Var<'p>) -> Option<f64>) -> Option<f64> {
    let parts = parts(expr)?;
    let first = parts.first()?;
    let is_same = |part: &Part<'_>| part.column.varattno() == first.column.varattno();
    if !parts.iter().all(is_same) {
        return None;
    }
    let unit = parts.iter().map(|part| part.unit).min()?;
    // The first and the last range may be cut off.
    let ranges = span(first.column)? / unit.microseconds() + 2.0;
    let of_parts: Option<f64> = parts.iter().map(|part| part.values).product();
    Some(of_parts.map_or(ranges, |values| values.min(ranges)))
}

/// The clock by which an expression over one column of times changes its value; `None` if it changes otherwise.
pub fn clock_of(expr: Expr<'_>) -> Option<Clock> {
    let parts = parts(expr)?;
    let unit = parts.iter().map(|part| part.unit).min()?;
    let zone = parts.first()?.zone;
    if !parts.iter().all(|part| part.zone == zone) {
        return None;
    }
    let unit: &[u8] = match unit {
        Unit::Minute => b"minute",
        Unit::Hour => b"hour",
        Unit::Day => b"day",
    };
    match buckets::reach_of_unit(unit, zone) {
        Reach::Clock(clock) => Some(clock),
        _ => None,
    }
}

/// The part that a call of a function is of a column of times; `None` for other expressions.
fn part(expr: Expr<'_>) -> Option<Part<'_>> {
    use pg_sys::*;
    let call = expr.as_func()?;
    let (first, second) = (call.args().get(0)?, call.args().get(1));
    let (time, (unit, values)) = match call.funcid().to_u32() {
        F_EXTRACT_TEXT_TIMESTAMP
        | F_DATE_PART_TEXT_TIMESTAMP
        | F_EXTRACT_TEXT_TIMESTAMPTZ
        | F_DATE_PART_TEXT_TIMESTAMPTZ => (second?, field(&text(first)?)?),
        F_DATE_TRUNC_TEXT_TIMESTAMP | F_DATE_TRUNC_TEXT_TIMESTAMPTZ => {
            (second?, (field(&text(first)?)?.0, None))
        }
        F_DATE_TIMESTAMP | F_DATE_TIMESTAMPTZ => (first, (Unit::Day, None)),
        F_TO_CHAR_TIMESTAMP_TEXT | F_TO_CHAR_TIMESTAMPTZ_TEXT => {
            (first, (unit_of_format(&text(second?)?)?, None))
        }
        _ => return None,
    };
    let (column, zone) = column_and_zone(time)?;
    Some(Part {
        unit,
        values,
        column,
        zone,
    })
}

/// The bytes of a constant text.
fn text(expr: Expr<'_>) -> Option<Box<[u8]>> {
    expr.as_const()?.value()?.bytes()
}

/// The unit that a field of `extract`, or a unit of `date_trunc`, changes with, and the number of the field's values.
fn field(field: &[u8]) -> Option<(Unit, Option<f64>)> {
    Some(match field {
        b"minute" => (Unit::Minute, Some(60.0)),
        b"hour" => (Unit::Hour, Some(24.0)),
        b"day" => (Unit::Day, Some(31.0)),
        b"dow" | b"isodow" => (Unit::Day, Some(7.0)),
        b"doy" => (Unit::Day, Some(366.0)),
        b"week" => (Unit::Day, Some(53.0)),
        b"month" => (Unit::Day, Some(12.0)),
        b"quarter" => (Unit::Day, Some(4.0)),
        b"year" | b"isoyear" | b"decade" => (Unit::Day, None),
        _ => return None,
    })
}

/// The unit that the text of `to_char` changes with. Letters that may be a pattern count as one.
fn unit_of_format(format: &[u8]) -> Option<Unit> {
    let format = String::from_utf8_lossy(format).to_uppercase();
    let has = |patterns: &[&str]| patterns.iter().any(|pattern| format.contains(pattern));
    match () {
        () if has(&["SS", "MS", "US", "FF"]) => None,
        () if has(&["MI"]) => Some(Unit::Minute),
        () if has(&["HH", "AM", "PM", "A.M.", "P.M."]) => Some(Unit::Hour),
        () => Some(Unit::Day),
    }
}

/// The column of times that the argument of a function is read from, and the zone of the clock; without one, the column
/// itself shows it. `None`: it is no such column.
fn column_and_zone(time: Expr<'_>) -> Option<(Var<'_>, Option<TimeZone>)> {
    let time = time.stripped();
    if let Some(column) = time.as_var() {
        return match column.vartype() {
            pg_sys::TIMESTAMPOID => Some((column, None)),
            pg_sys::TIMESTAMPTZOID => Some((column, Some(TimeZone::of_session()?))),
            _ => None,
        };
    }
    let call = time.as_func()?;
    let (column, zone) = match call.funcid().to_u32() {
        pg_sys::F_TIMESTAMP_TIMESTAMPTZ => (call.args().get(0)?, TimeZone::of_session()?),
        pg_sys::F_TIMEZONE_TEXT_TIMESTAMPTZ => {
            let name = text(call.args().get(0)?)?;
            (call.args().get(1)?, TimeZone::named(&name)?)
        }
        _ => return None,
    };
    Some((column.stripped().as_var()?, Some(zone)))
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
