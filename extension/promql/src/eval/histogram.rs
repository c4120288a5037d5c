//! Functions of classic histograms: series that differ in the label `le` alone are buckets of one.

use super::bucket::{self, Bucket};
use super::{Evaluator, Matrix, Row, Sink, text};
use crate::annotation::Monotonicity;
use crate::error::Error;
use crate::grid::Grid;
use crate::labels::{BUCKET, Labels, LabelsBuilder};
use crate::plan::Node;
use crate::sample::{ABSENT, is_absent};
use crate::span::Span;
use hashbrown::HashMap;

/// A histogram: its labels without that of the buckets, and its rows by their upper bounds.
struct Histogram {
    labels: Labels,
    buckets: Vec<(f64, usize)>,
}

impl Evaluator<'_> {
    /// Evaluates a function of histograms.
    pub(super) fn histogram_call(
        &self,
        name: &str,
        args: &[Node],
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        match name {
            "histogram_fraction" => {
                let (lower, upper) = (self.scalar(&args[0], grid)?, self.scalar(&args[1], grid)?);
                self.histograms(&args[2], grid, sink, |step, buckets| {
                    bucket::fraction(lower[step], upper[step], buckets)
                })
            }
            "histogram_quantile" => {
                let quantiles = self.scalar(&args[0], grid)?;
                self.quantiles(&args[1], grid, sink, None, &quantiles)?;
                // Of several places with the same words the outermost is told.
                self.note_each_quantile(&quantiles, args[0].span);
                Ok(())
            }
            _ => {
                let label = text(&args[1]);
                for arg in &args[2..] {
                    let quantiles = self.scalar(arg, grid)?;
                    self.note_each_quantile(&quantiles, arg.span);
                    let value = format_open_metrics(quantiles.first().copied().unwrap_or(0.0));
                    self.quantiles(&args[0], grid, sink, Some((label, value)), &quantiles)?;
                }
                Ok(())
            }
        }
    }

    fn note_each_quantile(&self, quantiles: &[f64], span: Span) {
        for quantile in quantiles
            .iter()
            .filter(|quantile| !(0.0..=1.0).contains(*quantile))
        {
            self.annotations
                .borrow_mut()
                .invalid_quantile(*quantile, span);
        }
    }

    fn quantiles(
        &self,
        arg: &Node,
        grid: Grid,
        sink: Sink<'_>,
        label: Option<(&str, String)>,
        quantiles: &[f64],
    ) -> Result<(), Error> {
        let forced_at = std::cell::RefCell::new(Vec::new());
        let note = |labels: &Labels| {
            for (step, forced) in forced_at.borrow_mut().drain(..) {
                let forced: bucket::Forced = forced;
                let time = grid.time(step);
                let name = match self.options.delayed_name_removal {
                    true => labels.metric_name(),
                    false => "",
                };
                let what = Monotonicity {
                    first_time: time,
                    last_time: time,
                    least_bucket: forced.least_bucket,
                    greatest_bucket: forced.greatest_bucket,
                    difference: forced.difference,
                    count: 1,
                };
                self.annotations
                    .borrow_mut()
                    .forced_monotonicity(name, arg.span, what);
            }
        };
        let relabeled = |labels: &Labels| match &label {
            None => labels.clone(),
            Some((name, value)) => {
                let mut builder = LabelsBuilder::of(labels);
                builder.set(name, value);
                builder.build()
            }
        };
        let mut emit = |row: Row<'_>| {
            note(row.labels);
            sink(Row {
                labels: &relabeled(row.labels),
                ..row
            })
        };
        self.histograms(arg, grid, &mut emit, |step, buckets| {
            let (value, forced) = bucket::quantile(quantiles[step], buckets);
            forced_at
                .borrow_mut()
                .extend(forced.map(|forced| (step, forced)));
            value
        })
    }

    /// A row of each histogram, of a function of its buckets at a step.
    fn histograms(
        &self,
        arg: &Node,
        grid: Grid,
        sink: Sink<'_>,
        function: impl Fn(usize, &mut Vec<Bucket>) -> f64,
    ) -> Result<(), Error> {
        let matrix = self.collect(arg, grid)?;
        let histograms = self.classic_histograms(&matrix, arg.span);
        let mut guard = self.guard();
        let (mut values, mut buckets) = (vec![ABSENT; grid.count], Vec::new());
        for histogram in &histograms {
            for (step, out) in values.iter_mut().enumerate() {
                self.work(histogram.buckets.len() * 2 + 8)?;
                buckets.clear();
                let samples = histogram.buckets.iter().map(|(upper, place)| Bucket {
                    upper: *upper,
                    count: matrix.value(*place, step),
                });
                buckets.extend(samples.filter(|bucket| !is_absent(bucket.count)));
                *out = match buckets.is_empty() {
                    true => ABSENT,
                    false => function(step, &mut buckets),
                };
            }
            if values.iter().all(|value| is_absent(*value)) {
                continue;
            }
            let labels = self.renamed(&histogram.labels);
            guard.admit(&labels, &values)?;
            sink(Row {
                labels: &labels,
                drops_name: true,
                values: &mut values,
            })?;
        }
        Ok(())
    }

    fn classic_histograms(&self, matrix: &Matrix<'_, '_>, span: Span) -> Vec<Histogram> {
        let mut places: HashMap<Labels, usize> = HashMap::new();
        let mut histograms: Vec<Histogram> = Vec::new();
        for (place, (labels, _)) in matrix.series.iter().enumerate() {
            let bound = labels.get(BUCKET);
            let upper = bound.parse::<f64>().ok().filter(|upper| !upper.is_nan());
            let Some(upper) = upper else {
                let name = match self.options.delayed_name_removal {
                    true => labels.metric_name(),
                    false => "",
                };
                if matrix.row(place).iter().any(|value| !is_absent(*value)) {
                    self.annotations
                        .borrow_mut()
                        .bad_bucket_label(name, bound, span);
                }
                continue;
            };
            let group = labels.filtered(|name| name != BUCKET);
            let next = histograms.len();
            let at = *places.entry(group.clone()).or_insert(next);
            if at == next {
                histograms.push(Histogram {
                    labels: group,
                    buckets: Vec::new(),
                });
            }
            histograms[at].buckets.push((upper, place));
        }
        for histogram in &mut histograms {
            histogram.buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        histograms
    }
}

/// A number as OpenMetrics writes it: whole numbers with a fraction of zero.
fn format_open_metrics(value: f64) -> String {
    let text = crate::number::format_general(value);
    match text.contains(['.', 'e', 'N', 'I']) {
        true => text,
        false => format!("{text}.0"),
    }
}
