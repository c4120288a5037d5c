//! A small side whose plan is a `LanesScan` or a `LanesHashJoin`: its rows are read as vectors.
//!
//! ```text
//! LanesScan, LanesHashJoin ── next ──► vector + selection ──► attributes, read from the lanes
//!                                            └── rows of the child's own small sides ──► SharedRows: each is read once
//! ```
//! PostgreSQL may have put a projection above the child node. Each column of the projection is then an attribute of the
//! lanes table, or an expression over one small side of the child. Any other plan returns slots.

use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::frame::Frame;
use pgrx::pg_sys;

use super::state::{HashJoinState, RunningHashJoin};
use crate::custom_scan::callbacks::{node_of, running_of};
use crate::custom_scan::node::Node;
use crate::error;
use crate::expressions::translate::strip;
use crate::joins::by_key::output;
use crate::joins::by_key::plan::JoinKind;
use crate::joins::by_key::shared_rows::SharedRows;
use crate::joins::by_key::small_expression::SmallExpression;
use crate::joins::by_key::vector_child::{ColumnSource, VectorChild, VectorRows};
use crate::nodes::engine::plan::EnginePlan;
use crate::nodes::scan::state::{RunningScan, ScanState};
use crate::pg::columns::{self, column, is_volatile_or_subquery, target_expressions};
use crate::pg::datum::RowOutlet;
use crate::pg::exec::child::Child;
use crate::pg::exec::node::ExecNode;
use crate::pg::ports;

/// The node that executes the child, and what runs there.
enum Running {
    Scan(&'static mut ScanState, &'static mut RunningScan),
    HashJoin(&'static mut HashJoinState, &'static mut RunningHashJoin),
}

/// A child whose rows are read as vectors. It is executed by this alone.
pub struct ColumnChild {
    /// The plan from which PostgreSQL would request rows: the node itself, or the projection above it.
    top: Child,
    node: Child,
    running: Running,
    /// The source of each column.
    sources: Vec<ColumnSource>,
    /// The batch of the child's small sides that the shared rows belong to.
    batch: u64,
    /// The rows of the current vector that are still to be read.
    rest: Option<VectorRows>,
}

/// Opens a child that has returned no row since it was started or restarted. `None`: one of its columns cannot be read
/// from vectors.
pub fn open(child: Child) -> Option<(Box<dyn VectorChild>, Vec<SharedRows>)> {
    // Rows that PostgreSQL rechecks come in slots.
    if child.is_rechecking() {
        return None;
    }
    child.rescan_if_changed();
    let below = match child.is_a(pg_sys::NodeTag::T_ResultState) {
        true => child.plain_projection_input()?,
        false => child,
    };
    if !below.qual().is_empty() {
        return None;
    }
    let is_ours =
        node_of::<ScanState>(below).is_some() || node_of::<HashJoinState>(below).is_some();
    if !is_ours {
        return None;
    }
    below.rescan_if_changed();
    let mut expressions = target_expressions(child.target_list());
    if child != below {
        expressions = over(&expressions, &target_expressions(below.target_list()));
    }
    let (sources, shared) = match node_of::<ScanState>(below) {
        Some(scan) => (scan_sources(&expressions, scan)?, Vec::new()),
        None => join_sources(&expressions, below)?,
    };
    let scan = running_of::<ScanState>(below);
    let running = match scan {
        Some((state, running)) => Running::Scan(state, running),
        None => {
            let (state, running) = running_of::<HashJoinState>(below)?;
            Running::HashJoin(state, running)
        }
    };
    let opened = ColumnChild {
        top: child,
        node: below,
        running,
        sources,
        batch: 0,
        rest: None,
    };
    Some((Box::new(opened), shared))
}

impl VectorChild for ColumnChild {
    fn sources(&self) -> &[ColumnSource] {
        &self.sources
    }

    fn leave(&mut self, mut rows: VectorRows, from: usize) {
        rows.selection = rows.selection.within(from, VECTOR_ROWS);
        self.rest = Some(rows);
    }

    fn next_rows(&mut self, shared: &mut [SharedRows]) -> Option<VectorRows> {
        let Some(rows) = self.rest.take() else {
            return self.read_vector(shared);
        };
        if let Running::HashJoin(_, running) = &self.running {
            for shared in shared {
                shared.look_up(&running.stage, &rows.selection);
            }
        }
        Some(rows)
    }

    fn frame(&self, rows: &VectorRows) -> Frame<'_> {
        match &self.running {
            _ if rows.place.is_none() => Frame::of_nulls(VECTOR_ROWS, &[]),
            Running::Scan(_, running) => running.source.frame(&[]),
            Running::HashJoin(_, running) => running.source.frame(&[]),
        }
    }

    #[inline]
    fn outlet(&self) -> &RowOutlet {
        match &self.running {
            Running::Scan(_, running) => running.source.outlet(),
            Running::HashJoin(_, running) => running.source.outlet(),
        }
    }
}

impl ColumnChild {
    /// Reads the next vector; `None` at the end. EXPLAIN counts its rows as returned.
    fn read_vector(&mut self, shared: &mut [SharedRows]) -> Option<VectorRows> {
        ports::CHECK_FOR_INTERRUPTS();
        let both = [self.top, self.node].map(Child::instrument);
        let instruments = &both[usize::from(self.top == self.node)..];
        for instrument in instruments {
            instrument.start();
        }
        let rows = self.next_selection(shared);
        let count = rows.as_ref().map_or(0, |rows| rows.selection.count());
        for instrument in instruments.iter().rev() {
            instrument.stop(count as f64);
        }
        rows
    }

    fn next_selection(&mut self, shared: &mut [SharedRows]) -> Option<VectorRows> {
        match &mut self.running {
            Running::Scan(state, running) => {
                let selection = state.next_rows(running);
                let selection = selection.unwrap_or_else(|failure| error::evaluation(failure))?;
                let place = Some(running.source.place(0));
                Some(VectorRows { selection, place })
            }
            Running::HashJoin(state, running) => {
                let selection = state.next_rows(running);
                let selection = selection.unwrap_or_else(|failure| error::evaluation(failure))?;
                let batch = running.stage.counters().batches;
                if batch != self.batch {
                    self.batch = batch;
                    shared.iter_mut().for_each(SharedRows::forget_rows);
                }
                for rows in shared {
                    rows.look_up(&running.stage, &selection);
                }
                let place = (!running.has_no_left).then(|| running.source.place(0));
                Some(VectorRows { selection, place })
            }
        }
    }
}

/// Rewrites expressions over the columns of a target list into expressions over the input of that target list.
fn over(
    expressions: &[*mut pg_sys::Node],
    targets: &[*mut pg_sys::Node],
) -> Vec<*mut pg_sys::Node> {
    let target = |column: columns::Column| {
        let place = usize::try_from(column.number - 1).ok()?;
        targets.get(place).copied()
    };
    let expressions = expressions.iter();
    expressions
        .map(|expression| columns::replaced(*expression, target))
        .collect()
}

/// The attribute of the table that an expression consists of; `None` for any other expression.
fn attribute(expression: *mut pg_sys::Node, table: u32) -> Option<ColumnSource> {
    let column = column(strip(expression))?;
    let is_attribute = column.table as u32 == table && column.number > 0;
    is_attribute.then(|| ColumnSource::Attribute(column.number as usize - 1))
}

/// The sources of the columns of a scan, all of which are attributes of its table.
fn scan_sources(
    expressions: &[*mut pg_sys::Node],
    node: ExecNode<'_>,
) -> Option<Vec<ColumnSource>> {
    let table = node.plan().scanned_index();
    let expressions = expressions.iter();
    expressions
        .map(|expression| attribute(*expression, table))
        .collect()
}

/// The sources of the columns of a join. Each is an attribute of its table, or an expression over
/// one of its small sides.
fn join_sources(
    expressions: &[*mut pg_sys::Node],
    below: Child,
) -> Option<(Vec<ColumnSource>, Vec<SharedRows>)> {
    let node = node_of::<HashJoinState>(below)?;
    let (_, running) = running_of::<HashJoinState>(below)?;
    if HashJoinState::stand_in(running).is_some() {
        return None;
    }
    let plan = EnginePlan::of(node.plan());
    let join = plan.hash_join.as_ref()?;
    let entries: Vec<_> = node.plan().entries().collect();
    let (mut sources, mut shared) = (Vec::new(), Vec::<SharedRows>::new());
    for expression in over(expressions, &entries) {
        let equal = output::equal_output(expression, join, node);
        let expression = equal.map_or(expression, |place| join.outputs[place].column);
        if !join.is_small(expression) {
            if join.dimensions[0].kind == JoinKind::RightSemi {
                return None;
            }
            sources.push(attribute(expression, join.table)?);
            continue;
        }
        if is_volatile_or_subquery(expression) {
            return None;
        }
        let dimension = join.dimension_of(expression).ok()?;
        let of = shared.iter().position(|rows| rows.dimension == dimension);
        let of = of.unwrap_or_else(|| {
            shared.push(SharedRows::of(dimension));
            shared.len() - 1
        });
        let evaluated = SmallExpression::of(expression, join, node);
        let column = shared[of].add(evaluated, columns::type_of(expression));
        sources.push(ColumnSource::Shared { of, column });
    }
    Some((sources, shared))
}
