//! Calls of functions: which file evaluates which.

use super::range_function::{absent_labels, range_argument};
use super::{Evaluator, Row, Sink, date, go, instant_function, natural_order, text};
use crate::error::{Error, execution};
use crate::function::Function;
use crate::grid::Grid;
use crate::labels::Labels;
use crate::plan::{Node, NodeKind};
use crate::sample::{ABSENT, is_absent};
use crate::span::Span;
use std::cmp::Ordering;

impl Evaluator<'_> {
    /// Evaluates a call.
    pub(super) fn call(
        &self,
        function: &'static Function,
        args: &[Node],
        span: Span,
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        if range_argument(args).is_some() {
            return self.range_call(function, args, grid, sink);
        }
        let name = function.name;
        if let Some(map) = instant_function::of(name) {
            return self.map(&args[0], grid, sink, |_, value| map(value));
        }
        if let Some(part) = date::function(name) {
            return self.date(part, args, grid, sink);
        }
        match name {
            "time" => self.emit_scalar(grid, sink, |step| grid.time(step) as f64 / 1000.0),
            "pi" => self.emit_scalar(grid, sink, |_| std::f64::consts::PI),
            "max_of" | "min_of" => {
                let (left, right) = (self.scalar(&args[0], grid)?, self.scalar(&args[1], grid)?);
                let of = if name == "max_of" { go::max } else { go::min };
                self.emit_scalar(grid, sink, |step| of(left[step], right[step]))
            }
            "scalar" => self.to_scalar(&args[0], grid, sink),
            "vector" => {
                let column = self.scalar(&args[0], grid)?;
                self.emit_scalar(grid, sink, |step| column[step])
            }
            "clamp" | "clamp_min" | "clamp_max" => self.clamp(name, args, grid, sink),
            "round" => {
                let nearest = match args.get(1) {
                    Some(nearest) => self.scalar(nearest, grid)?,
                    None => vec![1.0; grid.count],
                };
                self.map(&args[0], grid, sink, |step, value| {
                    let inverse = 1.0 / nearest[step];
                    (value * inverse + 0.5).floor() / inverse
                })
            }
            "timestamp" => self.timestamp(&args[0], grid, sink),
            "absent" => self.absent(&args[0], grid, sink),
            "label_replace" => self.label_replace(args, grid, sink),
            "label_join" => self.label_join(args, grid, sink),
            "sort" | "sort_desc" | "sort_by_label" | "sort_by_label_desc" => {
                self.sort(name, args, span, grid, sink)
            }
            "histogram_quantile" | "histogram_quantiles" | "histogram_fraction" => {
                self.histogram_call(name, args, grid, sink)
            }
            // Series are floats, which these functions ignore; start timestamps are not stored.
            "histogram_avg" | "histogram_count" | "histogram_sum" | "histogram_stddev"
            | "histogram_stdvar" | "start_timestamp" => {
                self.stream(&args[0], grid, &mut |_| Ok(()))
            }
            name => execution(format!("function {name} is not supported")),
        }
    }

    /// A row of each row, of a function of its values.
    pub(super) fn map(
        &self,
        arg: &Node,
        grid: Grid,
        sink: Sink<'_>,
        function: impl Fn(usize, f64) -> f64,
    ) -> Result<(), Error> {
        let mut guard = self.guard();
        self.stream(arg, grid, &mut |row| {
            self.work(row.values.len() * 4)?;
            for (step, value) in row.values.iter_mut().enumerate() {
                if !is_absent(*value) {
                    *value = function(step, *value);
                }
            }
            let labels = self.renamed(row.labels);
            guard.admit(&labels, row.values)?;
            sink(Row {
                labels: &labels,
                drops_name: true,
                values: row.values,
            })
        })
    }

    fn emit_scalar(
        &self,
        grid: Grid,
        sink: Sink<'_>,
        function: impl Fn(usize) -> f64,
    ) -> Result<(), Error> {
        let mut values: Vec<f64> = (0..grid.count).map(function).collect();
        sink(Row {
            labels: &Labels::empty(),
            drops_name: false,
            values: &mut values,
        })
    }

    fn to_scalar(&self, arg: &Node, grid: Grid, sink: Sink<'_>) -> Result<(), Error> {
        let mut column = vec![f64::NAN; grid.count];
        let mut counts = vec![0_u32; grid.count];
        self.stream(arg, grid, &mut |row| {
            for (step, value) in row
                .values
                .iter()
                .enumerate()
                .filter(|(_, v)| !is_absent(**v))
            {
                counts[step] += 1;
                column[step] = if counts[step] == 1 { *value } else { f64::NAN };
            }
            Ok(())
        })?;
        self.emit_scalar(grid, sink, |step| column[step])
    }

    fn clamp(&self, name: &str, args: &[Node], grid: Grid, sink: Sink<'_>) -> Result<(), Error> {
        let first = self.scalar(&args[1], grid)?;
        let second = args.get(2).map(|arg| self.scalar(arg, grid)).transpose()?;
        let bounds = |step: usize| match name {
            "clamp_min" => (first[step], f64::INFINITY),
            "clamp_max" => (f64::NEG_INFINITY, first[step]),
            _ => (
                first[step],
                second.as_ref().map_or(f64::INFINITY, |second| second[step]),
            ),
        };
        self.map(&args[0], grid, sink, |step, value| match bounds(step) {
            (least, most) if most < least => ABSENT,
            (least, most) => go::max(least, go::min(most, value)),
        })
    }

    fn date(
        &self,
        part: fn(&date::DateTime) -> i64,
        args: &[Node],
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        let of = |date: date::DateTime| part(&date) as f64;
        match args.first() {
            None => self.emit_scalar(grid, sink, |step| {
                of(date::DateTime::of(grid.time(step) / 1000))
            }),
            Some(arg) => self.map(arg, grid, sink, |_, value| {
                of(date::DateTime::of_value(value))
            }),
        }
    }

    fn timestamp(&self, arg: &Node, grid: Grid, sink: Sink<'_>) -> Result<(), Error> {
        let NodeKind::Selector(selector) = &arg.kind else {
            return self.map(arg, grid, sink, |step, _| grid.time(step) as f64 / 1000.0);
        };
        let mut guard = self.guard();
        let seconds = |time: i64, _| time as f64 / 1000.0;
        self.latest_mapped(
            selector,
            grid,
            &mut |row| {
                let labels = self.renamed(row.labels);
                guard.admit(&labels, row.values)?;
                sink(Row {
                    labels: &labels,
                    drops_name: true,
                    values: row.values,
                })
            },
            seconds,
        )
    }

    fn absent(&self, arg: &Node, grid: Grid, sink: Sink<'_>) -> Result<(), Error> {
        let mut values = vec![1.0; grid.count];
        self.stream(arg, grid, &mut |row| {
            for (value, seen) in values.iter_mut().zip(&*row.values) {
                if !is_absent(*seen) {
                    *value = ABSENT;
                }
            }
            Ok(())
        })?;
        if values.iter().all(|value| is_absent(*value)) {
            return Ok(());
        }
        sink(Row {
            labels: &absent_labels(arg),
            drops_name: false,
            values: &mut values,
        })
    }

    fn sort(
        &self,
        name: &str,
        args: &[Node],
        span: Span,
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        // An argument that does not depend on the step is sorted as in an instant query: it is
        // evaluated at one time only.
        if grid.is_range && !args[0].is_fixed {
            self.stream(&args[0], grid, sink)?;
            // If several parts of a query call `sort`, the warning names the outermost.
            self.annotations.borrow_mut().sort_in_range_query(span);
            return Ok(());
        }
        let mut matrix = self.collect(&args[0], grid)?;
        let mut places: Vec<usize> = (0..matrix.len()).collect();
        let names: Vec<&str> = args[1..].iter().map(text).collect();
        let by_labels = |a: &usize, b: &usize| {
            let (a, b) = (&matrix.series[*a].0, &matrix.series[*b].0);
            let compared = names
                .iter()
                .map(|name| natural_order::compare(a.get(name), b.get(name)));
            let mut different = compared.filter(|order| *order != Ordering::Equal);
            different.next().unwrap_or_else(|| a.cmp(b))
        };
        let by_value = |a: &usize, b: &usize, is_descending: bool| {
            let (a, b) = (matrix.value(*a, 0), matrix.value(*b, 0));
            match (a.is_nan(), b.is_nan()) {
                (false, false) if is_descending => b.partial_cmp(&a).unwrap_or(Ordering::Equal),
                (false, false) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
                (a, b) => a.cmp(&b),
            }
        };
        match name {
            "sort" => places.sort_by(|a, b| by_value(a, b, false)),
            "sort_desc" => places.sort_by(|a, b| by_value(a, b, true)),
            "sort_by_label" => places.sort_by(by_labels),
            _ => places.sort_by(|a, b| by_labels(b, a)),
        }
        for place in places {
            let (labels, drops_name) = matrix.series[place].clone();
            sink(Row {
                labels: &labels,
                drops_name,
                values: matrix.row_mut(place),
            })?;
        }
        Ok(())
    }
}
