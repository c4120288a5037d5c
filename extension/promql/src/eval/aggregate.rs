//! Aggregations: each row goes into the columns of its group as it comes.

use super::go::KahanSum;
use super::over_time::Mean;
use super::{Evaluator, Matrix, Row, Sink, go};
use crate::error::Error;
use crate::grid::Grid;
use crate::labels::{Labels, is_metadata};
use crate::plan::AggregateNode;
use crate::sample::{ABSENT, is_absent};
use crate::span::Span;
use crate::token::TokenKind as K;
use hashbrown::HashMap;

/// Which labels make the groups.
pub(super) struct Grouping<'g> {
    names: &'g [String],
    without: bool,
}

impl<'g> Grouping<'g> {
    pub(super) fn of(aggregate: &'g AggregateNode) -> Grouping<'g> {
        Grouping {
            names: &aggregate.grouping,
            without: aggregate.without,
        }
    }

    /// Whether a label belongs to the labels of a group.
    pub(super) fn keeps(&self, name: &str) -> bool {
        let is_named = self.names.iter().any(|held| held == name);
        match self.without {
            true => !is_named && !is_metadata(name),
            false => is_named,
        }
    }

    /// Whether a list names a label that `by` keeps or `without` drops.
    pub(super) fn names(&self, name: &str) -> bool {
        self.names.iter().any(|held| held == name)
    }

    pub(super) fn is_without(&self) -> bool {
        self.without
    }

    /// The labels of the group of a series.
    pub(super) fn labels(&self, labels: &Labels) -> Labels {
        if !self.without && self.names.is_empty() {
            return Labels::empty();
        }
        labels.filtered(|name| self.keeps(name))
    }
}

/// The numbers of groups, in the order in which they are met.
#[derive(Default)]
pub(super) struct Groups {
    codes: HashMap<Labels, usize>,
    pub(super) labels: Vec<Labels>,
}

impl Groups {
    /// The number of the group with labels.
    pub(super) fn code(&mut self, labels: Labels) -> usize {
        let next = self.labels.len();
        let code = *self.codes.entry(labels.clone()).or_insert(next);
        if code == next {
            self.labels.push(labels);
        }
        code
    }
}

/// The state of a group at each step.
enum Columns {
    Sum(Vec<KahanSum>),
    Mean(Vec<Mean>),
    Variance(Vec<Variance>),
    Plain(Vec<f64>),
}

/// A variance that each value updates.
#[derive(Clone, Copy)]
struct Variance {
    count: f64,
    mean: f64,
    squares: f64,
}

/// The mark of a step without a value in columns of sums.
const NO_SUM: KahanSum = KahanSum {
    sum: ABSENT,
    lost: 0.0,
};

impl Columns {
    fn new(operator: K, steps: usize) -> Columns {
        match operator {
            K::Sum => Columns::Sum(vec![NO_SUM; steps]),
            K::Avg => Columns::Mean(vec![Mean::of(ABSENT); steps]),
            K::Stddev | K::Stdvar => {
                let none = Variance {
                    count: 0.0,
                    mean: 0.0,
                    squares: 0.0,
                };
                Columns::Variance(vec![none; steps])
            }
            _ => Columns::Plain(vec![ABSENT; steps]),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Columns::Sum(column) => size_of_val(&column[..]),
            Columns::Mean(column) => size_of_val(&column[..]),
            Columns::Variance(column) => size_of_val(&column[..]),
            Columns::Plain(column) => size_of_val(&column[..]),
        }
    }

    /// Takes a row in.
    fn add(&mut self, operator: K, row: &[f64]) {
        match self {
            Columns::Sum(column) => {
                for (sum, value) in column.iter_mut().zip(row).filter(|(_, v)| !is_absent(**v)) {
                    match is_absent(sum.sum) {
                        true => sum.sum = *value,
                        false => sum.add(*value),
                    }
                }
            }
            Columns::Mean(column) => {
                for (mean, value) in column.iter_mut().zip(row).filter(|(_, v)| !is_absent(**v)) {
                    match is_absent(mean.sum.sum) {
                        true => *mean = Mean::of(*value),
                        false => mean.add(*value),
                    }
                }
            }
            Columns::Variance(column) => {
                for (held, value) in column.iter_mut().zip(row).filter(|(_, v)| !is_absent(**v)) {
                    held.add(*value);
                }
            }
            Columns::Plain(column) => {
                let pairs = column.iter_mut().zip(row);
                for (held, value) in pairs.filter(|(_, value)| !is_absent(**value)) {
                    *held = combined(operator, *held, *value);
                }
            }
        }
    }

    /// Writes the values of the group.
    fn finish(&self, operator: K, row: &mut [f64]) {
        match self {
            Columns::Sum(column) => {
                let total = |sum: &KahanSum| {
                    if is_absent(sum.sum) {
                        ABSENT
                    } else {
                        sum.total()
                    }
                };
                row.iter_mut()
                    .zip(column)
                    .for_each(|(out, sum)| *out = total(sum));
            }
            Columns::Mean(column) => {
                let value = |mean: &Mean| match is_absent(mean.sum.sum) {
                    true => ABSENT,
                    false => mean.value(),
                };
                row.iter_mut()
                    .zip(column)
                    .for_each(|(out, mean)| *out = value(mean));
            }
            Columns::Variance(column) => {
                for (out, held) in row.iter_mut().zip(column) {
                    *out = match (held.count, operator) {
                        (0.0, _) => ABSENT,
                        (count, K::Stddev) => (held.squares / count).sqrt(),
                        (count, _) => held.squares / count,
                    };
                }
            }
            Columns::Plain(column) => row.copy_from_slice(column),
        }
    }
}

impl Variance {
    #[inline(always)]
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        if self.count == 1.0 {
            self.mean = value;
            self.squares = if value.is_finite() { 0.0 } else { f64::NAN };
            return;
        }
        let delta = value - self.mean;
        self.mean += delta / self.count;
        self.squares += delta * (value - self.mean);
    }
}

/// The value of a group with another one of its series.
#[inline(always)]
fn combined(operator: K, held: f64, value: f64) -> f64 {
    let is_first = is_absent(held);
    match operator {
        K::Count if is_first => 1.0,
        K::Count => held + 1.0,
        K::Group => 1.0,
        _ if is_first => value,
        K::Max if held < value || held.is_nan() => value,
        K::Min if held > value || held.is_nan() => value,
        _ => held,
    }
}

struct Group {
    columns: Columns,
    drops_name: bool,
}

impl Evaluator<'_> {
    /// Evaluates an aggregation.
    pub(super) fn aggregate(
        &self,
        aggregate: &AggregateNode,
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        match aggregate.operator {
            K::Topk | K::Bottomk | K::Limitk | K::LimitRatio => self.top(aggregate, grid, sink),
            K::CountValues => self.count_values(aggregate, grid, sink),
            K::Quantile => self.quantile(aggregate, grid, sink),
            _ => self.accumulate(aggregate, grid, sink),
        }
    }

    fn accumulate(
        &self,
        aggregate: &AggregateNode,
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        let grouping = Grouping::of(aggregate);
        let operator = aggregate.operator;
        let mut groups = Groups::default();
        let mut states: Vec<Group> = Vec::new();
        let mut bytes = 0;
        self.stream(&aggregate.inner, grid, &mut |row| {
            let code = groups.code(grouping.labels(row.labels));
            if code == states.len() {
                let columns = Columns::new(operator, grid.count);
                let of_group = columns.bytes() + groups.labels[code].bytes();
                self.hold(of_group)?;
                bytes += of_group;
                states.push(Group {
                    columns,
                    drops_name: false,
                });
            }
            self.work(row.values.len())?;
            let state = &mut states[code];
            state.columns.add(operator, row.values);
            state.drops_name |= row.drops_name;
            Ok(())
        })?;
        let mut values = vec![ABSENT; grid.count];
        for (labels, state) in groups.labels.iter().zip(&states) {
            state.columns.finish(operator, &mut values);
            if values.iter().any(|value| !is_absent(*value)) {
                sink(Row {
                    labels,
                    drops_name: state.drops_name,
                    values: &mut values,
                })?;
            }
        }
        self.release(bytes);
        Ok(())
    }

    /// The rows of each group, and the groups.
    pub(super) fn grouped(
        matrix: &Matrix<'_, '_>,
        grouping: &Grouping<'_>,
    ) -> (Groups, Vec<usize>) {
        let mut groups = Groups::default();
        let series = matrix.series.iter();
        let codes = series
            .map(|(labels, _)| groups.code(grouping.labels(labels)))
            .collect();
        (groups, codes)
    }

    fn quantile(&self, aggregate: &AggregateNode, grid: Grid, sink: Sink<'_>) -> Result<(), Error> {
        let Some(param) = &aggregate.param else {
            return Ok(());
        };
        let quantiles = self.scalar(param, grid)?;
        let matrix = self.collect(&aggregate.inner, grid)?;
        // Of several places with the same words the outermost is told.
        self.note_quantiles_of(&quantiles, param.span);
        let (groups, codes) = Self::grouped(&matrix, &Grouping::of(aggregate));
        let mut members = vec![Vec::new(); groups.labels.len()];
        for (place, code) in codes.iter().enumerate() {
            members[*code].push(place);
        }
        let (mut values, mut sorted) = (vec![ABSENT; grid.count], Vec::new());
        for (labels, members) in groups.labels.iter().zip(&members) {
            let mut drops_name = false;
            for (step, out) in values.iter_mut().enumerate() {
                self.work(members.len() * 8)?;
                let of_step = members.iter().map(|place| matrix.value(*place, step));
                sorted.clear();
                sorted.extend(of_step.filter(|value| !is_absent(*value)));
                *out = match sorted.is_empty() {
                    true => ABSENT,
                    false => go::quantile(quantiles[step], &mut sorted),
                };
            }
            drops_name |= members.iter().any(|place| matrix.series[*place].1);
            if values.iter().any(|value| !is_absent(*value)) {
                sink(Row {
                    labels,
                    drops_name,
                    values: &mut values,
                })?;
            }
        }
        Ok(())
    }

    /// Notes the extremes of quantiles that are none.
    fn note_quantiles_of(&self, quantiles: &[f64], span: Span) {
        let mut annotations = self.annotations.borrow_mut();
        let most = quantiles.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = quantiles.iter().copied().fold(f64::INFINITY, f64::min);
        if quantiles.iter().any(|quantile| quantile.is_nan()) {
            annotations.invalid_quantile(f64::NAN, span);
        }
        if most > 1.0 {
            annotations.invalid_quantile(most, span);
        }
        if least < 0.0 {
            annotations.invalid_quantile(least, span);
        }
    }
}
