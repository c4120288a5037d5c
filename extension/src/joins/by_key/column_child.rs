//! A small side whose plan is a `LanesScan` or a `LanesHashJoin`. Its rows are read as vectors,
//! without a slot for each row.
//!
//! ```text
//! LanesScan, LanesHashJoin ── next ──► vector + selection ──► attributes, read from the lanes row by row
//!                                            └── rows of the child's own small sides ──► SharedRows: each is read once
//! ```
//! PostgreSQL may have put a projection above the child node. Each column of the projection is
//! then an attribute of the lanes table, or an expression over one small side of the child. Any
//! other plan returns slots.

use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::selection::Selection;
use pgrx::pg_sys;

use super::shared_rows::SharedRows;
use super::small_expression::SmallExpression;
use crate::custom_scan::node::{self, Node};
use crate::error;
use crate::expressions::translate::strip;
use crate::nodes::engine::plan::EnginePlan;
use crate::nodes::hash_join::state::HashJoinState;
use crate::nodes::scan::state::ScanState;
use crate::pg::datum::RowOutlet;
use crate::pg::{nodes, ports, tree};

/// The source of a column of the child.
#[derive(Clone, Copy)]
pub enum ColumnSource {
    /// An attribute of the child's table.
    Attribute(usize),
    /// A column of the rows of one of the child's small sides: the index of the [`SharedRows`],
    /// and of the column among them.
    Shared { of: usize, column: usize },
}

/// The node that executes the child.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scan,
    HashJoin,
}

/// The selected rows of one vector.
pub struct VectorRows {
    pub selection: Selection,
    outlet: *const RowOutlet,
    /// The place of the vector's first row in its lanes. It is `None` for small rows without a
    /// match, which have no row of the lanes table.
    place: Option<usize>,
}

/// A child under execution whose rows are read as vectors.
pub struct ColumnChild {
    /// The plan state that PostgreSQL would ask for rows: the node itself, or the projection
    /// above it.
    top: *mut pg_sys::PlanState,
    node: *mut pg_sys::CustomScanState,
    kind: Kind,
    /// The source of each column.
    pub sources: Vec<ColumnSource>,
    /// The batch of the child's small sides that the shared rows belong to.
    batch: u64,
    /// The rows of the current vector that have not been read yet.
    left: Option<VectorRows>,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl ColumnChild {
    /// Returns the child with its shared rows, or `None` if one of its columns cannot be read
    /// from vectors.
    ///
    /// # Safety
    /// The child is being executed, and has returned no row since it was started or restarted.
    pub unsafe fn of(child: *mut pg_sys::PlanState) -> Option<(ColumnChild, Vec<SharedRows>)> {
        // SAFETY: the caller's promise; casts follow tags.
        unsafe {
            // EvalPlanQual checks rows that were changed meanwhile, and it hands them over in
            // slots.
            if !(*(*child).state).es_epq_active.is_null() {
                return None;
            }
            begin_anew(child);
            let mut below = child;
            let is_projection = tree::is_a(child, pg_sys::NodeTag::T_ResultState);
            if is_projection {
                below = (*child).lefttree;
                let constant = (*child.cast::<pg_sys::ResultState>()).resconstantqual;
                if !constant.is_null() || !(*child).qual.is_null() {
                    return None;
                }
            }
            if below.is_null() || !(*below).qual.is_null() {
                return None;
            }
            let kind = match () {
                () if node::is::<ScanState>(below) => Kind::Scan,
                () if node::is::<HashJoinState>(below) => Kind::HashJoin,
                () => return None,
            };
            begin_anew(below);
            let mut columns = expressions((*(*child).plan).targetlist);
            if is_projection {
                columns = over(&columns, (*(*below).plan).targetlist);
            }
            let node = below.cast::<pg_sys::CustomScanState>();
            let (sources, shared) = match kind {
                Kind::Scan => (of_scan(&columns, node)?, Vec::new()),
                Kind::HashJoin => of_join(&columns, node)?,
            };
            let attributes = sources.iter().map(|source| match source {
                ColumnSource::Attribute(attribute) => attribute + 1,
                ColumnSource::Shared { .. } => 0,
            });
            let attributes = attributes.max().unwrap_or(0);
            let child = ColumnChild {
                top: child,
                node,
                kind,
                sources,
                batch: 0,
                left: None,
                values: vec![pg_sys::Datum::null(); attributes],
                nulls: vec![true; attributes],
            };
            Some((child, shared))
        }
    }

    /// Keeps the rows of the current vector from `from` on for the next batch.
    pub fn leave(&mut self, mut rows: VectorRows, from: usize) {
        rows.selection = rows.selection.within(from, VECTOR_ROWS);
        self.left = Some(rows);
    }

    /// Returns the rows that [`leave`](Self::leave) kept, or the next ones; `None` at the end.
    /// It also looks up the shared rows that belong to them.
    ///
    /// # Safety
    /// The child is being executed, and `shared` was returned together with it.
    pub unsafe fn rest(&mut self, shared: &mut [SharedRows]) -> Option<VectorRows> {
        // SAFETY: the caller's promise.
        unsafe {
            let Some(rows) = self.left.take() else {
                return self.next(shared);
            };
            if self.kind == Kind::HashJoin {
                let (_, running) = node::running::<HashJoinState>(self.node);
                for shared in shared {
                    shared.know(&running.stage, &rows.selection);
                }
            }
            Some(rows)
        }
    }

    /// Returns the next rows; `None` at the end. It also looks up the shared rows that belong to
    /// them.
    ///
    /// # Safety
    /// The child is being executed, and `shared` was returned together with it.
    unsafe fn next(&mut self, shared: &mut [SharedRows]) -> Option<VectorRows> {
        ports::CHECK_FOR_INTERRUPTS();
        // SAFETY: the caller's promise.
        unsafe {
            let node = &raw mut (*self.node).ss.ps;
            let counters = [self.top, node].map(|state| (*state).instrument);
            let counters = &counters[usize::from(self.top == node)..];
            let counters = counters.iter().filter(|counter| !counter.is_null());
            for counter in counters.clone() {
                pg_sys::InstrStartNode(*counter);
            }
            let rows = match self.kind {
                Kind::Scan => self.next_of_scan(),
                Kind::HashJoin => self.next_of_join(shared),
            };
            let count = rows.as_ref().map_or(0, |rows| rows.selection.count());
            for counter in counters.rev() {
                pg_sys::InstrStopNode(*counter, count as f64);
            }
            rows
        }
    }

    unsafe fn next_of_scan(&mut self) -> Option<VectorRows> {
        // SAFETY: the caller has a node of this kind, in execution.
        let (state, running) = unsafe { node::running::<ScanState>(self.node) };
        let selection = state.next_rows(running);
        let selection = selection.unwrap_or_else(|failure| error::evaluation(failure))?;
        Some(VectorRows {
            selection,
            outlet: running.source.outlet(),
            place: Some(running.source.place(0)),
        })
    }

    unsafe fn next_of_join(&mut self, shared: &mut [SharedRows]) -> Option<VectorRows> {
        // SAFETY: the caller has a node of this kind, in execution.
        unsafe {
            let (state, running) = node::running::<HashJoinState>(self.node);
            let selection = state.next_rows(running);
            let selection = selection.unwrap_or_else(|failure| error::evaluation(failure))?;
            let batch = running.stage.counters().batches;
            if batch != self.batch {
                self.batch = batch;
                shared.iter_mut().for_each(SharedRows::forget_rows);
            }
            for rows in shared {
                rows.know(&running.stage, &selection);
            }
            Some(VectorRows {
                selection,
                outlet: running.source.outlet(),
                place: (!running.has_no_left).then(|| running.source.place(0)),
            })
        }
    }

    /// The vector that the rows were read from.
    ///
    /// # Safety
    /// The child is being executed, and `rows` are the last rows that it returned. The lanes
    /// stay valid until the next rows are read.
    pub unsafe fn frame(&self, rows: &VectorRows) -> Frame<'_> {
        // SAFETY: the caller's promise; a node of this kind.
        unsafe {
            match self.kind {
                _ if rows.place.is_none() => Frame::of_nulls(VECTOR_ROWS, &[]),
                Kind::Scan => node::running::<ScanState>(self.node).1.source.frame(&[]),
                Kind::HashJoin => node::running::<HashJoinState>(self.node)
                    .1
                    .source
                    .frame(&[]),
            }
        }
    }

    /// The value of an attribute in one row of the last rows that were returned.
    ///
    /// # Safety
    /// `row` is one of these rows, and `attribute` is one of the sources.
    pub unsafe fn attribute(
        &mut self,
        attribute: usize,
        rows: &VectorRows,
        row: usize,
    ) -> Option<pg_sys::Datum> {
        let place = rows.place? + row;
        // SAFETY: the lanes are alive until the next rows are asked for; there is room for the attribute.
        unsafe {
            let (values, nulls) = (self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
            (*rows.outlet).read(place, attribute, attribute + 1, values, nulls);
        }
        (!self.nulls[attribute]).then(|| self.values[attribute])
    }
}

/// Restarts a node whose parameters have changed, as `ExecProcNode` does before it fetches a
/// row.
unsafe fn begin_anew(state: *mut pg_sys::PlanState) {
    // SAFETY: the caller has a live node; an ERROR becomes a panic, as callers own memory.
    unsafe {
        if !(*state).chgParam.is_null() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| pg_sys::ExecReScan(state));
        }
    }
}

/// The expressions of a target list.
unsafe fn expressions(targets: *mut pg_sys::List) -> Vec<*mut pg_sys::Node> {
    // SAFETY: the caller has a live target list.
    unsafe {
        let entries = nodes::list::<pg_sys::TargetEntry>(targets);
        entries.map(|entry| (*entry).expr.cast()).collect()
    }
}

/// Rewrites expressions over the columns of a target list into expressions over the input of
/// that target list.
unsafe fn over(columns: &[*mut pg_sys::Node], below: *mut pg_sys::List) -> Vec<*mut pg_sys::Node> {
    // SAFETY: the caller has live target lists.
    unsafe {
        let below = expressions(below);
        let column = |column: &*mut pg_sys::Node| {
            tree::replaced(*column, &mut |node| {
                let is_column = tree::is_a(node, pg_sys::NodeTag::T_Var);
                let number = is_column.then(|| (*node.cast::<pg_sys::Var>()).varattno)?;
                below.get(usize::try_from(number - 1).ok()?).copied()
            })
        };
        columns.iter().map(column).collect()
    }
}

/// The attribute of the table that an expression consists of; `None` for any other expression.
unsafe fn attribute(column: *mut pg_sys::Node, table: u32) -> Option<ColumnSource> {
    // SAFETY: the caller has a live expression; the cast follows the tag.
    unsafe {
        let column = strip(column).cast::<pg_sys::Var>();
        let is_attribute = tree::is_a(column, pg_sys::NodeTag::T_Var)
            && (*column).varno as u32 == table
            && (*column).varattno > 0;
        is_attribute.then(|| ColumnSource::Attribute((*column).varattno as usize - 1))
    }
}

/// The sources of the columns of a scan, all of which are attributes of its table.
unsafe fn of_scan(
    columns: &[*mut pg_sys::Node],
    node: *mut pg_sys::CustomScanState,
) -> Option<Vec<ColumnSource>> {
    // SAFETY: the caller has a scan of ours, and live expressions.
    unsafe {
        let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let columns = columns.iter();
        columns
            .map(|column| attribute(*column, (*scan).scan.scanrelid))
            .collect()
    }
}

/// The sources of the columns of a join. Each is an attribute of its table, or an expression
/// over one of its small sides.
unsafe fn of_join(
    columns: &[*mut pg_sys::Node],
    node: *mut pg_sys::CustomScanState,
) -> Option<(Vec<ColumnSource>, Vec<SharedRows>)> {
    // SAFETY: the caller has a join of ours, and live expressions.
    unsafe {
        let (_, running) = node::running::<HashJoinState>(node);
        if HashJoinState::stand_in(running).is_some() {
            return None;
        }
        let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let plan = EnginePlan::of(scan);
        let join = plan.hash_join.as_ref()?;
        let state = &raw mut (*node).ss.ps;
        let (mut sources, mut shared) = (Vec::new(), Vec::<SharedRows>::new());
        for column in over(columns, (*scan).custom_scan_tlist) {
            if !join.is_small(column) {
                sources.push(attribute(column, join.table)?);
                continue;
            }
            if pg_sys::contain_volatile_functions(column) || nodes::contains_subplan(column) {
                return None;
            }
            let dimension = join.dimension_of(column).ok()?;
            let of = shared.iter().position(|rows| rows.dimension == dimension);
            let of = of.unwrap_or_else(|| {
                shared.push(SharedRows::of(dimension));
                shared.len() - 1
            });
            let keys = join.dimensions[dimension].left_keys.len();
            let expression = SmallExpression::of(column, join, keys, state);
            let column = shared[of].add(expression, pg_sys::exprType(column));
            sources.push(ColumnSource::Shared { of, column });
        }
        Some((sources, shared))
    }
}
