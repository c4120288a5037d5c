//! Evaluates a plan column by column.
//!
//! Every expression makes a stream of rows: a label set and one value, or the mark of a missing
//! one, for each step. A node calls the sink of the node around it for each row, so a series goes
//! through functions and into an aggregation at once, in one buffer, without allocation a step.
//! Only nodes that need several series at a time hold rows ([`matrix::Matrix`]): `topk`, operators
//! between vectors, histograms, sorting. What is held is counted against the limit of memory.
//!
//! Invariant: two rows of a stream may have one label set, but then no step has a value in both.
//! A [`guard::Guard`] keeps it where names are dropped or labels replaced.
//!
//! | module | one thing |
//! |---|---|
//! | [`selector`] | samples of series: reads, the latest sample, windows |
//! | [`window`] | samples in a range of time before each step |
//! | [`range_series`] | series of subqueries and of ranges |
//! | [`range_function`], [`rate`], [`over_time`] | functions of windows |
//! | [`regression`], [`extended`] | lines through samples; values at the ends of ranges |
//! | [`call`], [`instant_function`], [`date`] | functions of vectors and scalars |
//! | [`label_function`], [`natural_order`] | labels that change; the order of texts with numbers |
//! | [`aggregate`], [`top`], [`count_values`] | aggregations |
//! | [`binary`], [`vector_match`] | operators |
//! | [`histogram`], [`bucket`] | classic histograms |

mod aggregate;
mod binary;
mod bucket;
mod call;
mod count_values;
pub(crate) mod date;
mod extended;
pub(crate) mod go;
mod guard;
mod histogram;
mod instant_function;
mod label_function;
mod matrix;
mod natural_order;
mod over_time;
mod range_function;
mod range_series;
mod rate;
mod regression;
mod selector;
mod top;
mod vector_match;
mod window;

use crate::annotation::Annotations;
use crate::engine::Options;
use crate::error::{Error, LimitError, execution};
use crate::grid::Grid;
use crate::labels::Labels;
use crate::plan::{Node, NodeKind, Plan};
use crate::profile::{Part, Profile};
use crate::sample::{ABSENT, is_absent};
use crate::source::Source;
use guard::Guard;
use std::cell::{Cell, RefCell};

pub(crate) use matrix::Matrix;

/// A row of a stream.
pub(crate) struct Row<'r> {
    pub(crate) labels: &'r Labels,
    /// Whether the result of the query drops the metric's name.
    pub(crate) drops_name: bool,
    /// A value of each step; the sink may change them.
    pub(crate) values: &'r mut [f64],
}

/// Takes the rows of a stream.
pub(crate) type Sink<'k> = &'k mut dyn FnMut(Row<'_>) -> Result<(), Error>;

/// Units of work between two looks at the interrupt; a unit takes about a nanosecond.
const WORK_MAX: usize = 4_000_000;

/// The evaluation of one query.
pub(crate) struct Evaluator<'e> {
    pub(crate) plan: &'e Plan,
    pub(crate) source: &'e dyn Source,
    pub(crate) options: &'e Options,
    pub(crate) interrupt: &'e dyn Fn() -> Result<(), Error>,
    pub(crate) annotations: RefCell<Annotations>,
    pub(crate) counts: Counts,
    /// Where the time goes, if somebody wants to know.
    pub(crate) profile: Option<&'e Profile>,
    shared: selector::SharedReads,
}

/// What a query has read and holds.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) samples: Cell<u64>,
    pub(crate) series: Cell<u64>,
    pub(crate) held: Cell<usize>,
    pub(crate) held_peak: Cell<usize>,
    work: Cell<usize>,
}

impl<'e> Evaluator<'e> {
    pub(crate) fn new(
        plan: &'e Plan,
        source: &'e dyn Source,
        options: &'e Options,
        interrupt: &'e dyn Fn() -> Result<(), Error>,
    ) -> Evaluator<'e> {
        Evaluator {
            plan,
            source,
            options,
            interrupt,
            annotations: RefCell::default(),
            counts: Counts::default(),
            profile: None,
            shared: selector::SharedReads::default(),
        }
    }

    /// Counts work and looks at the interrupt from time to time.
    #[inline(always)]
    pub(crate) fn work(&self, units: usize) -> Result<(), Error> {
        let work = self.counts.work.get() + units;
        if work < WORK_MAX {
            self.counts.work.set(work);
            return Ok(());
        }
        self.counts.work.set(0);
        (self.interrupt)()
    }

    /// Counts bytes that are held from now on.
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), Error> {
        let held = self.counts.held.get().saturating_add(bytes);
        let max = self.options.limits.held_bytes_max;
        if held > max {
            return Err(LimitError::Memory(max).into());
        }
        self.counts.held.set(held);
        self.counts
            .held_peak
            .set(self.counts.held_peak.get().max(held));
        Ok(())
    }

    /// Counts bytes that are no longer held.
    pub(crate) fn release(&self, bytes: usize) {
        self.counts
            .held
            .set(self.counts.held.get().saturating_sub(bytes));
    }

    /// The labels of a row whose values no longer are those of its metric.
    pub(crate) fn renamed(&self, labels: &Labels) -> Labels {
        match self.options.delayed_name_removal {
            true => labels.clone(),
            false => labels.without_metadata(),
        }
    }

    /// A guard of a node that drops names.
    pub(crate) fn guard(&self) -> Guard<'_, 'e> {
        Guard::new(self, !self.options.delayed_name_removal)
    }

    /// Evaluates a vector, or a scalar as a row without labels.
    pub(crate) fn stream(&self, node: &Node, grid: Grid, sink: Sink<'_>) -> Result<(), Error> {
        if grid.count == 0 {
            return Ok(());
        }
        if !node.is_fixed {
            return self.stream_steps(node, grid, sink);
        }
        if grid.count == 1 {
            return self.stream_steps(node, grid.first(), sink);
        }
        let mut values = vec![ABSENT; grid.count];
        self.stream_steps(node, grid.first(), &mut |row| {
            values.fill(row.values[0]);
            sink(Row {
                labels: row.labels,
                drops_name: row.drops_name,
                values: &mut values,
            })
        })
    }

    fn stream_steps(&self, node: &Node, grid: Grid, sink: Sink<'_>) -> Result<(), Error> {
        let Some(profile) = self.profile else {
            return self.stream_rows(node, grid, sink);
        };
        let part = Part::Node(node.span);
        profile.within(part, |around| {
            self.stream_rows(node, grid, &mut |row| {
                profile.count_row(part);
                profile.outside(around, || sink(row))
            })
        })
    }

    fn stream_rows(&self, node: &Node, grid: Grid, sink: Sink<'_>) -> Result<(), Error> {
        match &node.kind {
            NodeKind::Selector(selector) => self.latest(selector, grid, sink),
            NodeKind::Call(function, args) => self.call(function, args, node.span, grid, sink),
            NodeKind::Aggregate(aggregate) => self.aggregate(aggregate, grid, sink),
            NodeKind::Binary(binary) => self.binary(binary, node, grid, sink),
            NodeKind::Negate(inner) => self.negate(inner, grid, sink),
            NodeKind::Plus(inner) => self.stream(inner, grid, sink),
            NodeKind::Number(value) => sink(Row {
                labels: &Labels::empty(),
                drops_name: false,
                values: &mut vec![*value; grid.count],
            }),
            NodeKind::Text(_) | NodeKind::Range(..) | NodeKind::Subquery(_) => {
                execution("expression has no value at a step")
            }
        }
    }

    fn negate(&self, inner: &Node, grid: Grid, sink: Sink<'_>) -> Result<(), Error> {
        let mut guard = self.guard();
        self.stream(inner, grid, &mut |row| {
            for value in row.values.iter_mut().filter(|value| !is_absent(**value)) {
                *value = -*value;
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

    /// Evaluates a scalar: a value of each step.
    pub(crate) fn scalar(&self, node: &Node, grid: Grid) -> Result<Vec<f64>, Error> {
        if let NodeKind::Number(value) = node.kind {
            return Ok(vec![value; grid.count]);
        }
        let mut column = Vec::new();
        self.stream(node, grid, &mut |row| {
            column = row.values.to_vec();
            Ok(())
        })?;
        Ok(column)
    }

    /// Evaluates a vector and holds its rows.
    pub(crate) fn collect(&self, node: &Node, grid: Grid) -> Result<Matrix<'_, 'e>, Error> {
        let mut matrix = Matrix::new(self, grid.count);
        self.stream(node, grid, &mut |row| {
            self.work(row.values.len())?;
            matrix.push(row.labels, row.drops_name, row.values)
        })?;
        Ok(matrix)
    }
}

/// The text of an argument that is one.
pub(crate) fn text(node: &Node) -> &str {
    match &node.kind {
        NodeKind::Text(text) => text,
        _ => "",
    }
}
