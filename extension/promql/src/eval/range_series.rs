//! Series of ranges: those of a subquery, and those of a range that is the whole query.

use super::selector::FreshSamples;
use super::window::{WindowShape, Windows};
use super::{Evaluator, extended};
use crate::ast::Extension;
use crate::error::{Error, execution};
use crate::labels::Labels;
use crate::plan::{Node, NodeKind, SubqueryNode};
use crate::sample::{ABSENT, is_absent};
use crate::source::Samples;

/// Takes a series: its labels, whether its name is dropped, and its samples.
pub(crate) type RangeSink<'k> = &'k mut dyn FnMut(&Labels, bool, Samples<'_>) -> Result<(), Error>;

impl Evaluator<'_> {
    /// Hands on the series of a subquery: the values of its steps as samples.
    pub(super) fn subquery(
        &self,
        subquery: &SubqueryNode,
        each: RangeSink<'_>,
    ) -> Result<(), Error> {
        let grid = subquery.grid;
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        let mut hand_on = |labels: &Labels, drops_name: bool, row: &[f64]| {
            timestamps.clear();
            values.clear();
            for (step, value) in row
                .iter()
                .enumerate()
                .filter(|(_, value)| !is_absent(**value))
            {
                timestamps.push(grid.time(step));
                values.push(*value);
            }
            let samples = Samples {
                timestamps: &timestamps,
                values: &values,
            };
            each(labels, drops_name, samples)
        };
        if has_unique_labels(&subquery.inner) {
            return self.stream(&subquery.inner, grid, &mut |row| {
                hand_on(row.labels, row.drops_name, row.values)
            });
        }
        // Rows of one label set are one series.
        let mut matrix = self.collect(&subquery.inner, grid)?;
        let mut first_of = hashbrown::HashMap::new();
        for place in 0..matrix.len() {
            let labels = matrix.series[place].0.clone();
            let first = *first_of.entry(labels).or_insert(place);
            for step in 0..grid.count {
                let value = matrix.value(place, step);
                if first != place && !is_absent(value) {
                    matrix.row_mut(first)[step] = value;
                    matrix.row_mut(place)[step] = ABSENT;
                }
            }
        }
        matrix.stream(&mut |row| hand_on(row.labels, row.drops_name, row.values))
    }

    /// Hands on the samples of a range or a subquery at the first step, for a query that is one.
    pub(crate) fn raw_samples(&self, node: &Node, each: RangeSink<'_>) -> Result<(), Error> {
        let grid = self.plan.grid;
        let (selector, range) = match &node.kind {
            NodeKind::Subquery(subquery) => return self.subquery(subquery, each),
            NodeKind::Range(selector, nanos) => {
                (selector, nanos / crate::duration::NANOS_PER_MILLI)
            }
            _ => return execution("expression is no range vector"),
        };
        let lookback = self.options.lookback_delta;
        let shape = WindowShape {
            grid,
            time: selector.time,
            range,
            before: if selector.extension.is_some() {
                lookback
            } else {
                0
            },
            after: if selector.extension == Some(Extension::Smoothed) {
                lookback
            } else {
                0
            },
        };
        let (mut fresh, mut windows) = (FreshSamples::default(), Windows::default());
        self.read(selector.read, &mut |labels, samples| {
            let (mut timestamps, mut values) = (Vec::new(), Vec::new());
            let columns = fresh.of(samples);
            shape.map(self, columns, &mut [ABSENT], &mut windows, |window| {
                (timestamps, values) = match selector.extension {
                    None => (window.timestamps.to_vec(), window.values.to_vec()),
                    Some(extension) => extended::extended_samples(&window, extension)
                        .into_iter()
                        .unzip(),
                };
                0.0
            })?;
            if values.is_empty() {
                return Ok(());
            }
            let samples = Samples {
                timestamps: &timestamps,
                values: &values,
            };
            each(labels, false, samples)
        })
    }
}

/// Whether no two rows of a node can have one label set.
fn has_unique_labels(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Selector(_) | NodeKind::Number(_) => true,
        NodeKind::Aggregate(aggregate) => aggregate.param.is_none(),
        _ => false,
    }
}
