//! Aggregates of all rows within bounds.
//!
//! A row's aggregates are computed over its own rows, one after the other in the order of their
//! times, so that floats are added as PostgreSQL would add rows that arrive in that order, with its
//! errors. The work is proportional to the rows in all windows.

use super::cursor::{Bound, Cursors};
use super::joined_column::JoinedColumn;
use super::reading::check_rows;
use super::series::Series;
use crate::aggregate::moments::FloatState;
use crate::vector::number::{Number, NumberType, Operation, Scalar};
use crate::vector::selection::Selection;
use crate::vector::{Evaluation, EvaluationError};
use crate::with_number;

/// An aggregate of a window; columns are the series'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowCall {
    /// `count(*)`.
    Rows,
    /// `count`.
    Count(usize),
    /// `sum`: of floats, or of integers of up to 32 bits.
    Sum(usize),
    /// `avg` of floats.
    Average(usize),
    /// `min`.
    Minimum(usize),
    /// `max`.
    Maximum(usize),
}

impl WindowCall {
    /// The type of the result, by the types of the columns.
    pub fn number(&self, columns: &[NumberType]) -> NumberType {
        match *self {
            WindowCall::Rows | WindowCall::Count(_) => NumberType::I64,
            WindowCall::Sum(column) => match columns[column] {
                NumberType::I16 | NumberType::I32 | NumberType::I64 => NumberType::I64,
                float => float,
            },
            WindowCall::Average(_) => NumberType::F64,
            WindowCall::Minimum(column) | WindowCall::Maximum(column) => columns[column],
        }
    }
}

/// Aggregates the rows within bounds.
pub struct Window {
    calls: Vec<WindowCall>,
    /// At the lower and the upper bound.
    lower: Cursors,
    upper: Cursors,
}

impl Window {
    /// Looks into a series.
    pub fn new(series: &Series, calls: Vec<WindowCall>) -> Window {
        Window {
            calls,
            lower: Cursors::new(series),
            upper: Cursors::new(series),
        }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.lower.bytes() + self.upper.bytes()
    }

    /// Aggregates for each selected row. `matching` are the selected rows whose keys and bounds are
    /// not NULL. Without a bound, all rows on that side are within.
    ///
    /// Bounds and ids are those of the selection's vector, which has `rows` rows. They are read
    /// before the caller leaves the vector, as in every evaluation.
    ///
    /// # Errors
    /// The errors of the aggregates, and of their arguments for rows within a window.
    ///
    /// # Panics
    /// If there is not one joined column for each call, a row past the vector is selected, or a
    /// matching row has no id.
    #[expect(
        clippy::too_many_arguments,
        reason = "a window has two bounds and two sides"
    )]
    pub fn aggregate(
        &mut self,
        series: &Series,
        (ids, rows): (&[u32], usize),
        lower: Option<&Bound>,
        upper: Option<&Bound>,
        selection: &Selection,
        matching: &Selection,
        joined: &mut [JoinedColumn],
    ) -> Evaluation<()> {
        assert_eq!(joined.len(), self.calls.len());
        check_rows(selection, rows);
        joined.iter_mut().for_each(JoinedColumn::clear);
        let times = &series.times[..];
        selection.try_for_each(|row| {
            let mut window = 0..0;
            if matching.contains(row) {
                let id = ids[row];
                let all = series.range(id);
                // SAFETY: a row of the vector, for each of which an operand has a number.
                let (from, to) = unsafe {
                    (
                        lower.map_or(all.start, |bound| {
                            let time = bound.time(row);
                            self.lower.after(times, id, time, !bound.inclusive).at
                        }),
                        upper.map_or(all.end, |bound| {
                            let time = bound.time(row);
                            self.upper.after(times, id, time, bound.inclusive).at
                        }),
                    )
                };
                window = from as usize..to.max(from) as usize;
            }
            let rows = SeriesRows {
                series,
                range: window,
            };
            for (call, joined) in self.calls.iter().zip(&mut *joined) {
                answer(*call, &rows, row, joined)?;
            }
            Ok(())
        })
    }
}

/// The rows of a window.
pub(super) trait WindowRows {
    /// The number of rows.
    fn len(&self) -> usize;

    /// The type of a column.
    fn number(&self, column: usize) -> NumberType;

    /// Calls `take` with each number of a column that is not NULL.
    fn each(&self, column: usize, take: impl FnMut(u64) -> Evaluation<()>) -> Evaluation<()>;
}

/// Adjacent rows of a series.
struct SeriesRows<'a> {
    series: &'a Series,
    range: std::ops::Range<usize>,
}

impl WindowRows for SeriesRows<'_> {
    fn len(&self) -> usize {
        self.range.len()
    }

    fn number(&self, column: usize) -> NumberType {
        self.series.columns[column].number
    }

    #[inline]
    fn each(&self, column: usize, mut take: impl FnMut(u64) -> Evaluation<()>) -> Evaluation<()> {
        let column = &self.series.columns[column];
        let values = &column.values[self.range.clone()];
        if let Some(failed) = &column.failed
            && let Some(failure) = failed[self.range.clone()].iter().flatten().next()
        {
            return Err(*failure);
        }
        match &column.valid {
            None => values.iter().try_for_each(|bits| take(*bits)),
            Some(valid) => {
                let values = values.iter().zip(&valid[self.range.clone()]);
                let mut present = values.filter(|(_, valid)| **valid);
                present.try_for_each(|(bits, _)| take(*bits))
            }
        }
    }
}

/// Aggregates the rows of a window. An aggregate without a result is NULL.
#[inline]
pub(super) fn answer(
    call: WindowCall,
    rows: &impl WindowRows,
    row: usize,
    joined: &mut JoinedColumn,
) -> Evaluation<()> {
    match call {
        WindowCall::Rows => joined.set(row, rows.len() as i64),
        WindowCall::Count(column) => {
            let mut count = 0_i64;
            rows.each(column, |_| {
                count += 1;
                Ok(())
            })?;
            joined.set(row, count);
        }
        WindowCall::Average(column) => {
            let mut state = FloatState::default();
            let number = rows.number(column);
            rows.each(column, |bits| {
                let value = with_number!(number, T => T::of_scalar(Scalar(bits)).to_f64());
                state.accumulate(value)
            })?;
            if let Some(average) = state.average() {
                joined.set(row, average);
            }
        }
        WindowCall::Sum(column) => match rows.number(column) {
            NumberType::F32 => {
                if let Some(sum) = float_sum::<f32>(rows, column)? {
                    joined.set(row, sum);
                }
            }
            NumberType::F64 => {
                if let Some(sum) = float_sum::<f64>(rows, column)? {
                    joined.set(row, sum);
                }
            }
            _ => {
                let mut sum = None;
                rows.each(column, |bits| {
                    let before: i64 = sum.unwrap_or(0);
                    let next = before.checked_add(bits as i64);
                    sum = Some(next.ok_or(EvaluationError::IntegerOutOfRange(8))?);
                    Ok(())
                })?;
                if let Some(sum) = sum {
                    joined.set(row, sum);
                }
            }
        },
        WindowCall::Minimum(column) => extreme(rows, column, row, joined, false)?,
        WindowCall::Maximum(column) => extreme(rows, column, row, joined, true)?,
    }
    Ok(())
}

fn float_sum<T: Number>(rows: &impl WindowRows, column: usize) -> Evaluation<Option<T>> {
    let mut sum: Option<T> = None;
    rows.each(column, |bits| {
        let value = T::of_scalar(Scalar(bits));
        sum = Some(match sum {
            None => value,
            Some(sum) => sum.apply(Operation::Add, value)?,
        });
        Ok(())
    })?;
    Ok(sum)
}

/// The smallest or greatest number. Of equal numbers, the last one is kept, as in PostgreSQL.
fn extreme(
    rows: &impl WindowRows,
    column: usize,
    row: usize,
    joined: &mut JoinedColumn,
    greatest: bool,
) -> Evaluation<()> {
    with_number!(rows.number(column), T => {
        let mut best: Option<T> = None;
        rows.each(column, |bits| {
            let value = T::of_scalar(Scalar(bits));
            let beaten = best.is_some_and(|best| {
                let order = best.order(value);
                if greatest { order.is_gt() } else { order.is_lt() }
            });
            if !beaten {
                best = Some(value);
            }
            Ok(())
        })?;
        if let Some(best) = best {
            joined.set(row, best);
        }
        Ok(())
    })
}
