//! Functions of ranges: one pass over the windows of each series.

use super::go::quantile;
use super::over_time::{self, Quadrature, Summary};
use super::range_series::RangeSink;
use super::rate::{Extrapolation, Resets, instant};
use super::selector::FreshSamples;
use super::window::{Window, WindowShape, Windows};
use super::{Evaluator, Row, Sink, extended, regression};
use crate::ast::Extension;
use crate::error::{Error, execution};
use crate::function::Function;
use crate::grid::Grid;
use crate::labels::Labels;
use crate::matcher::{MatchOperator, Matcher};
use crate::plan::{Node, NodeKind};
use crate::sample::{ABSENT, is_absent, is_stale, ordinary};
use crate::span::Span;

/// A call of a function of a range.
pub(super) struct RangeCall<'c> {
    function: &'c Function,
    args: &'c [Node],
    arg: &'c Node,
    shape: WindowShape,
    /// Seconds of the range.
    seconds: f64,
    extension: Option<Extension>,
    /// The columns of the scalar arguments.
    params: Vec<Vec<f64>>,
}

/// The argument that is a range, if there is one.
pub(super) fn range_argument(args: &[Node]) -> Option<&Node> {
    let is_range = |arg: &&Node| matches!(arg.kind, NodeKind::Range(..) | NodeKind::Subquery(_));
    args.iter().find(is_range)
}

impl Evaluator<'_> {
    /// Evaluates a call of a function of a range.
    pub(super) fn range_call(
        &self,
        function: &Function,
        args: &[Node],
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        let Some(arg) = range_argument(args) else {
            return execution(format!("{} needs a range vector", function.name));
        };
        let call = self.range_shape(function, args, arg, grid)?;
        if function.name == "absent_over_time" {
            return self.absent_over_time(&call, sink);
        }
        let keeps_name = matches!(
            function.name,
            "default_rollup" | "first_over_time" | "last_over_time"
        );
        let sees_stale = function.name == "default_rollup";
        let mut guard = self.guard();
        let mut row = vec![ABSENT; grid.count];
        let (mut buffers, mut fresh) = (Buffers::of(&call), FreshSamples::default());
        self.ranges(&call, &mut |labels, drops_name, samples| {
            let columns = match sees_stale {
                true => (samples.timestamps, samples.values),
                false => fresh.of(samples),
            };
            self.range_row(&call, columns, &mut row, &mut buffers)?;
            if row.iter().all(|value| is_absent(*value)) {
                return Ok(());
            }
            if matches!(function.name, "rate" | "increase") {
                // Prometheus loses the place of a subquery.
                let span = match &args[0].kind {
                    NodeKind::Subquery(_) => Span::default(),
                    _ => args[0].span,
                };
                self.note_counter(labels, span);
            }
            if keeps_name && !drops_name {
                guard.admit(labels, &row)?;
                let values = &mut row;
                return sink(Row {
                    labels,
                    drops_name,
                    values,
                });
            }
            let labels = self.renamed(labels);
            guard.admit(&labels, &row)?;
            sink(Row {
                labels: &labels,
                drops_name: true,
                values: &mut row,
            })
        })
    }

    fn range_shape<'c>(
        &self,
        function: &'c Function,
        args: &'c [Node],
        arg: &'c Node,
        grid: Grid,
    ) -> Result<RangeCall<'c>, Error> {
        let lookback = self.options.lookback_delta;
        let (time, nanos, extension) = match &arg.kind {
            NodeKind::Range(selector, nanos) => (selector.time, *nanos, selector.extension),
            NodeKind::Subquery(subquery) => {
                let nanos = subquery.range * crate::duration::NANOS_PER_MILLI;
                (subquery.time, nanos, None)
            }
            _ => return execution("argument is no range vector"),
        };
        let (anchored, smoothed) = (
            ["changes", "delta", "increase", "rate", "resets"],
            ["delta", "increase", "rate"],
        );
        let (modifier, functions) = match extension {
            Some(Extension::Smoothed) => ("smoothed", &smoothed[..]),
            _ => ("anchored", &anchored[..]),
        };
        if extension.is_some() && !functions.contains(&function.name) {
            let (functions, name) = (functions.join(", "), function.name);
            return execution(format!(
                "{modifier} modifier can only be used with: {functions} - not with {name}"
            ));
        }
        let scalars = args.iter().filter(|other| !std::ptr::eq(*other, arg));
        let params = scalars
            .map(|param| self.scalar(param, grid))
            .collect::<Result<_, _>>()?;
        Ok(RangeCall {
            function,
            args,
            arg,
            shape: WindowShape {
                grid,
                time,
                range: nanos / crate::duration::NANOS_PER_MILLI,
                before: if extension.is_some() { lookback } else { 0 },
                after: if extension == Some(Extension::Smoothed) {
                    lookback
                } else {
                    0
                },
            },
            seconds: nanos as f64 / 1e9,
            extension,
            params,
        })
    }

    /// Hands on the series of the range.
    fn ranges(&self, call: &RangeCall<'_>, each: RangeSink<'_>) -> Result<(), Error> {
        match &call.arg.kind {
            NodeKind::Range(selector, _) => self.read(selector.read, &mut |labels, samples| {
                each(labels, false, samples)
            }),
            NodeKind::Subquery(subquery) => self.subquery(subquery, each),
            _ => Ok(()),
        }
    }

    /// Notes that a metric may be no counter.
    fn note_counter(&self, labels: &Labels, span: Span) {
        let name = labels.metric_name();
        let suffixes = ["_total", "_sum", "_count", "_bucket"];
        if !name.is_empty() && !suffixes.iter().any(|suffix| name.ends_with(suffix)) {
            self.annotations
                .borrow_mut()
                .possible_non_counter(name, span);
        }
    }

    fn absent_over_time(&self, call: &RangeCall<'_>, sink: Sink<'_>) -> Result<(), Error> {
        let mut row = vec![1.0; call.shape.grid.count];
        let mut seen = vec![ABSENT; row.len()];
        let (mut fresh, mut windows) = (FreshSamples::default(), Windows::default());
        self.ranges(call, &mut |_, _, samples| {
            let columns = fresh.of(samples);
            call.shape
                .map(self, columns, &mut seen, &mut windows, |_| 1.0)?;
            for (value, _) in row
                .iter_mut()
                .zip(&seen)
                .filter(|(_, seen)| !is_absent(**seen))
            {
                *value = ABSENT;
            }
            Ok(())
        })?;
        if row.iter().all(|value| is_absent(*value)) {
            return Ok(());
        }
        sink(Row {
            labels: &absent_labels(call.arg),
            drops_name: true,
            values: &mut row,
        })
    }
}

/// The labels that a selector fixes, for a series that it does not find.
pub(super) fn absent_labels(node: &Node) -> Labels {
    let (NodeKind::Selector(selector) | NodeKind::Range(selector, _)) = &node.kind else {
        return Labels::empty();
    };
    let mut builder = crate::labels::LabelsBuilder::default();
    let mut fixed = std::collections::HashSet::new();
    // Prometheus's store brings matchers into the order in which it takes them: first those that
    // select series, then those that take series away.
    let takes_away = |matcher: &&Matcher| {
        let mut of_label = selector.matchers.iter();
        let must_be_set =
            of_label.any(|other| other.name() == matcher.name() && !other.matches(""));
        let is_negative = matches!(
            matcher.operator(),
            MatchOperator::NotEqual | MatchOperator::NotMatches
        );
        !must_be_set || is_negative && matcher.matches("")
    };
    let mut matchers: Vec<&Matcher> = selector.matchers.iter().collect();
    matchers.sort_by_key(takes_away);
    for matcher in matchers {
        if crate::labels::is_metadata(matcher.name()) {
            continue;
        }
        if matcher.operator() == MatchOperator::Equal && fixed.insert(matcher.name()) {
            builder.set(matcher.name(), matcher.value());
        } else {
            builder.set(matcher.name(), "");
        }
    }
    builder.build()
}

/// Memory that all series share.
#[derive(Debug)]
struct Buffers {
    windows: Windows,
    resets: Resets,
    extrapolation: Extrapolation,
    values: Vec<f64>,
}

impl Buffers {
    fn of(call: &RangeCall<'_>) -> Buffers {
        let is_counter = call.function.name != "delta";
        let per_seconds = match call.function.name {
            "rate" => call.seconds,
            _ => 0.0,
        };
        Buffers {
            windows: Windows::default(),
            resets: Resets::default(),
            extrapolation: Extrapolation::new(is_counter, per_seconds),
            values: Vec::new(),
        }
    }
}

impl Evaluator<'_> {
    /// Writes the row of one series.
    fn range_row(
        &self,
        call: &RangeCall<'_>,
        columns: (&[i64], &[f64]),
        row: &mut [f64],
        buffers: &mut Buffers,
    ) -> Result<(), Error> {
        let shape = &call.shape;
        let Buffers {
            windows,
            resets,
            extrapolation,
            values: sorted,
        } = buffers;
        if let Some(extension) = call.extension {
            return self.extended_row(call, extension, columns, row, windows);
        }
        let param = |place: usize, step: usize| call.params[place][step];
        macro_rules! map {
            ($function:expr) => {
                shape.map(self, columns, row, windows, $function)
            };
        }
        match call.function.name {
            "rate" | "increase" | "delta" => {
                if call.function.name != "delta" {
                    resets.find(columns.1);
                }
                shape.find(self, columns.0, windows)?;
                extrapolation.write(shape, windows, columns, resets, row);
                Ok(())
            }
            "irate" => map!(|w| instant(&w, true)),
            "idelta" => map!(|w| instant(&w, false)),
            "resets" => map!(|w| over_time::resets(w.values)),
            "changes" => map!(|w| over_time::changes(w.values)),
            "deriv" => map!(|w| match w.values.len() {
                1 => ABSENT,
                _ => regression::line(&w, w.timestamps[0]).0,
            }),
            "predict_linear" => map!(|w| match w.values.len() {
                1 => ABSENT,
                _ => {
                    let (slope, value) = regression::line(&w, w.time);
                    slope * param(0, w.step) + value
                }
            }),
            "quantile_over_time"
            | "mad_over_time"
            | "double_exponential_smoothing"
            | "integral" => self.parameter_row(call, columns, row, windows, sorted),
            _ => self.summary_row(call, columns, row, windows),
        }
    }

    /// Writes the row of a function that sorts the samples of a window or has parameters.
    fn parameter_row(
        &self,
        call: &RangeCall<'_>,
        columns: (&[i64], &[f64]),
        row: &mut [f64],
        windows: &mut Windows,
        sorted: &mut Vec<f64>,
    ) -> Result<(), Error> {
        let shape = &call.shape;
        let param = |place: usize, step: usize| call.params[place][step];
        match call.function.name {
            "quantile_over_time" => {
                shape.map(self, columns, row, windows, |w| {
                    sorted.clear();
                    sorted.extend_from_slice(w.values);
                    quantile(param(0, w.step), sorted)
                })?;
                self.note_quantiles(call, row);
                Ok(())
            }
            "mad_over_time" => shape.map(self, columns, row, windows, |w| {
                over_time::median_deviation(w.values, sorted)
            }),
            "double_exponential_smoothing" => {
                check_smoothing(call)?;
                shape.map(self, columns, row, windows, |w| {
                    let (factor, trend) = (param(0, w.step), param(1, w.step));
                    over_time::double_exponential_smoothing(w.values, factor, trend)
                })
            }
            "integral" => {
                let strategies = self.quadratures(call);
                shape.map(self, columns, row, windows, |w| {
                    let strategy = strategies.get(w.step).copied();
                    over_time::integral(&w, strategy.unwrap_or(Quadrature::Trapezoidal))
                })
            }
            name => execution(format!("function {name} is not supported")),
        }
    }

    /// Writes the row of a function of the samples of a window alone.
    fn summary_row(
        &self,
        call: &RangeCall<'_>,
        columns: (&[i64], &[f64]),
        row: &mut [f64],
        windows: &mut Windows,
    ) -> Result<(), Error> {
        let shape = &call.shape;
        let last = |w: &Window<'_>| w.values.len() - 1;
        let seconds = |time: i64| time as f64 / 1000.0;
        macro_rules! map {
            ($function:expr) => {
                shape.map(self, columns, row, windows, $function)
            };
        }
        match call.function.name {
            "avg_over_time" => self.summed_row(shape, columns, row, windows, Summary::Average),
            "sum_over_time" => self.summed_row(shape, columns, row, windows, Summary::Sum),
            "count_over_time" => map!(|w| w.values.len() as f64),
            "present_over_time" => map!(|_| 1.0),
            "last_over_time" => map!(|w| ordinary(w.values[last(&w)])),
            // A series that has ended has no value, whatever it had earlier in the range.
            "default_rollup" => map!(|w| match w.values[last(&w)] {
                value if is_stale(value) => ABSENT,
                value => ordinary(value),
            }),
            "first_over_time" => map!(|w| ordinary(w.values[0])),
            "max_over_time" => {
                map!(|w| ordinary(w.values[over_time::extreme(w.values, |a, b| a > b)]))
            }
            "min_over_time" => {
                map!(|w| ordinary(w.values[over_time::extreme(w.values, |a, b| a < b)]))
            }
            "stdvar_over_time" => map!(|w| over_time::variance(w.values)),
            "stddev_over_time" => map!(|w| over_time::variance(w.values).sqrt()),
            "ts_of_first_over_time" => map!(|w| seconds(w.timestamps[0])),
            "ts_of_last_over_time" => map!(|w| seconds(w.timestamps[last(&w)])),
            "ts_of_max_over_time" => {
                map!(|w| seconds(w.timestamps[over_time::extreme(w.values, |a, b| a >= b)]))
            }
            "ts_of_min_over_time" => {
                map!(|w| seconds(w.timestamps[over_time::extreme(w.values, |a, b| a <= b)]))
            }
            name => execution(format!("function {name} is not supported")),
        }
    }

    /// Writes the row of sums or averages.
    fn summed_row(
        &self,
        shape: &WindowShape,
        (timestamps, values): (&[i64], &[f64]),
        row: &mut [f64],
        windows: &mut Windows,
        summary: Summary,
    ) -> Result<(), Error> {
        shape.find(self, timestamps, windows)?;
        let rows = row.chunks_mut(Self::SUMMED_AT_ONCE);
        for (places, row) in windows.places().chunks(Self::SUMMED_AT_ONCE).zip(rows) {
            self.work(places.iter().map(|(first, end)| end - first).sum())?;
            summary.write(values, places, row);
        }
        Ok(())
    }

    /// The number of windows between two counts of the work.
    const SUMMED_AT_ONCE: usize = 64;

    fn extended_row(
        &self,
        call: &RangeCall<'_>,
        extension: Extension,
        columns: (&[i64], &[f64]),
        row: &mut [f64],
        windows: &mut Windows,
    ) -> Result<(), Error> {
        let name = call.function.name;
        let (is_counter, seconds) = (
            name != "delta",
            if name == "rate" { call.seconds } else { 0.0 },
        );
        call.shape.map(self, columns, row, windows, |w| match name {
            "resets" => extended::anchored(&w).map_or(ABSENT, over_time::resets),
            "changes" => extended::anchored(&w).map_or(ABSENT, over_time::changes),
            _ => extended::difference(&w, extension, is_counter, seconds),
        })
    }

    /// Notes the quantiles that are none, of the steps at which a series has a value.
    fn note_quantiles(&self, call: &RangeCall<'_>, row: &[f64]) {
        let span = call.args[0].span;
        let steps = call.params[0].iter().zip(row);
        let present = steps.filter(|(_, value)| !is_absent(**value));
        for (quantile, _) in present.filter(|(quantile, _)| !(0.0..=1.0).contains(*quantile)) {
            let mut annotations = self.annotations.borrow_mut();
            annotations.invalid_quantile(*quantile, span);
        }
    }

    fn quadratures(&self, call: &RangeCall<'_>) -> Vec<Quadrature> {
        let Some(column) = call.params.first() else {
            return Vec::new();
        };
        let of = |value: &f64| match *value {
            0.0 => Quadrature::Left,
            1.0 => Quadrature::Right,
            2.0 => Quadrature::Trapezoidal,
            other => {
                let mut annotations = self.annotations.borrow_mut();
                annotations.invalid_integral_strategy(other, call.args[1].span);
                Quadrature::Trapezoidal
            }
        };
        column.iter().map(of).collect()
    }
}

fn check_smoothing(call: &RangeCall<'_>) -> Result<(), Error> {
    for (name, column) in ["smoothing", "trend"].iter().zip(&call.params) {
        if let Some(value) = column.iter().find(|value| **value <= 0.0 || **value >= 1.0) {
            let letter = &name[..1];
            return execution(format!(
                "invalid {name} factor. Expected: 0 < {letter}f < 1, got: {value:.6}"
            ));
        }
    }
    Ok(())
}
