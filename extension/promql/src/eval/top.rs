//! Aggregations that keep some series of each group: `topk`, `bottomk`, `limitk`, `limit_ratio`.

use super::aggregate::Grouping;
use super::go::Heap;
use super::{Evaluator, Matrix, Row, Sink};
use crate::error::{Error, execution};
use crate::grid::Grid;
use crate::number::format_general;
use crate::plan::AggregateNode;
use crate::sample::{ABSENT, is_absent};
use crate::span::Span;
use crate::token::TokenKind as K;

/// A value and the row that it is of.
#[derive(Clone, Copy)]
struct Candidate {
    value: f64,
    place: usize,
}

fn is_less(a: &Candidate, b: &Candidate) -> bool {
    a.value.is_nan() || a.value < b.value
}

fn is_greater(a: &Candidate, b: &Candidate) -> bool {
    a.value.is_nan() || a.value > b.value
}

impl Evaluator<'_> {
    /// Evaluates an aggregation that keeps some series of each group.
    pub(super) fn top(
        &self,
        aggregate: &AggregateNode,
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        let Some(param) = &aggregate.param else {
            return Ok(());
        };
        let params = self.scalar(param, grid)?;
        let matrix = self.collect(&aggregate.inner, grid)?;
        if !self.check_params(aggregate.operator, &params, param.span)? {
            return Ok(());
        }
        let (groups, codes) = Self::grouped(&matrix, &Grouping::of(aggregate));
        let mut kept: Vec<Vec<Candidate>> = vec![Vec::new(); groups.labels.len()];
        if grid.count == 1 {
            self.keep(aggregate.operator, params[0], &matrix, 0, &codes, &mut kept)?;
            return emit_ordered(aggregate.operator, matrix, &mut kept, sink);
        }
        let mut is_kept = vec![0_u64; (matrix.len() * grid.count).div_ceil(64)];
        for (step, param) in params.iter().enumerate() {
            kept.iter_mut().for_each(Vec::clear);
            self.keep(aggregate.operator, *param, &matrix, step, &codes, &mut kept)?;
            for candidate in kept.iter().flatten() {
                let bit = candidate.place * grid.count + step;
                is_kept[bit / 64] |= 1 << (bit % 64);
            }
        }
        let mut matrix = matrix;
        for place in 0..matrix.len() {
            for (step, value) in matrix.row_mut(place).iter_mut().enumerate() {
                let bit = place * grid.count + step;
                if is_kept[bit / 64] >> (bit % 64) & 1 == 0 {
                    *value = ABSENT;
                }
            }
        }
        matrix.stream(sink)
    }

    /// Checks the numbers of series or ratios; returns whether any series can be kept.
    fn check_params(&self, operator: K, params: &[f64], span: Span) -> Result<bool, Error> {
        let most = params.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = params.iter().copied().fold(f64::INFINITY, f64::min);
        let has_nan = params.iter().any(|param| param.is_nan());
        if operator == K::LimitRatio {
            if most == 0.0 && least == 0.0 {
                return Ok(false);
            }
            if has_nan {
                return execution("Ratio value is NaN");
            }
            let mut annotations = self.annotations.borrow_mut();
            if most > 1.0 {
                annotations.invalid_ratio(most, 1.0, span);
            }
            if least < -1.0 {
                annotations.invalid_ratio(least, -1.0, span);
            }
            return Ok(true);
        }
        if most < 1.0 && !has_nan {
            return Ok(false);
        }
        if has_nan {
            return execution("Parameter value is NaN");
        }
        if least <= i64::MIN as f64 {
            let least = format_general(least);
            return execution(format!("Scalar value {least} underflows int64"));
        }
        if most >= i64::MAX as f64 {
            let most = format_general(most);
            return execution(format!("Scalar value {most} overflows int64"));
        }
        Ok(true)
    }

    /// Finds the rows that a step keeps of each group.
    fn keep(
        &self,
        operator: K,
        param: f64,
        matrix: &Matrix<'_, '_>,
        step: usize,
        codes: &[usize],
        kept: &mut [Vec<Candidate>],
    ) -> Result<(), Error> {
        self.work(matrix.len() * 4)?;
        let count = (param as i64).min(matrix.len() as i64);
        let count = usize::try_from(count).unwrap_or(0);
        if operator != K::LimitRatio && count < 1 {
            return Ok(());
        }
        for (place, code) in codes.iter().enumerate() {
            let value = matrix.value(place, step);
            if is_absent(value) {
                continue;
            }
            let candidate = Candidate { value, place };
            let mut heap = Heap {
                items: &mut kept[*code],
            };
            let is_full = heap.items.len() >= count;
            match operator {
                K::Topk if !is_full => heap.push(candidate, is_less),
                K::Topk => {
                    let least = heap.items[0].value;
                    if least < value || least.is_nan() && !value.is_nan() {
                        heap.replace_least(candidate, is_less);
                    }
                }
                K::Bottomk if !is_full => heap.push(candidate, is_greater),
                K::Bottomk => {
                    let greatest = heap.items[0].value;
                    if greatest > value || greatest.is_nan() && !value.is_nan() {
                        heap.replace_least(candidate, is_greater);
                    }
                }
                K::Limitk if !is_full => heap.push(candidate, is_less),
                K::Limitk => {}
                _ => {
                    if is_sampled(param, matrix.series[place].0.sampling_hash()) {
                        heap.push(candidate, is_less);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether a series belongs to a share of all, which its hash decides; a negative share is the
/// rest of the positive one that complements it.
fn is_sampled(ratio: f64, hash: u64) -> bool {
    let ratio = ratio.clamp(-1.0, 1.0);
    let place = hash as f64 / u64::MAX as f64;
    match ratio >= 0.0 {
        true => place < ratio,
        false => place >= 1.0 + ratio,
    }
}

/// Hands on the rows of a single step, the best of each group first.
fn emit_ordered(
    operator: K,
    mut matrix: Matrix<'_, '_>,
    kept: &mut [Vec<Candidate>],
    sink: Sink<'_>,
) -> Result<(), Error> {
    for candidates in kept {
        let order = |a: &Candidate, b: &Candidate| {
            let by_value = a.value.partial_cmp(&b.value);
            by_value.unwrap_or_else(|| b.value.is_nan().cmp(&a.value.is_nan()))
        };
        match operator {
            K::Topk => candidates.sort_by(|a, b| order(b, a)),
            K::Bottomk => candidates.sort_by(|a, b| match (a.value.is_nan(), b.value.is_nan()) {
                (false, false) => order(a, b),
                (a, b) => a.cmp(&b),
            }),
            _ => {}
        }
        for candidate in candidates.iter() {
            let (labels, drops_name) = matrix.series[candidate.place].clone();
            sink(Row {
                labels: &labels,
                drops_name,
                values: matrix.row_mut(candidate.place),
            })?;
        }
    }
    Ok(())
}
