//! Offers `LanesWindow`: for functions of this extension, and for SQL's own by [`partitioned`].
//!
//! For functions of this extension the node returns rows in the order of time, and its path says so: a Sort above it
//! is needed only for another order.

use lanes_columnar::vector::number::NumberType;
use pgrx::pg_sys;

use super::partitioned;
use super::plan::{self, WindowFunction};
use super::state::WindowState;
use crate::custom_scan::callbacks;
use crate::custom_scan::node::Planned;
use crate::custom_scan::private_data::{PrivateData, Targets, table_column};
use crate::expressions::aggregate_call;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::pg::exec::memory::hash_memory_limit;
use crate::pg::names::function_name;
use crate::pg::tree::{
    Expr, List, Node, Path, PathTarget, PlannerInfo, Query, RelOptInfo, TargetEntry, View,
    WindowClause, WindowFunc, make, plan_field, plan_node,
};
use crate::pg::{ports, server, windows};
use crate::planner::quals::{VECTOR_SHARE, quals};

/// Approximate bytes of a partition.
const PARTITION_BYTES: f64 = 150.0;

/// The frame of all rows up to the current row's last peer.
const UP_TO_PEERS: u32 = pg_sys::FRAMEOPTION_RANGE
    | pg_sys::FRAMEOPTION_START_UNBOUNDED_PRECEDING
    | pg_sys::FRAMEOPTION_END_CURRENT_ROW;
/// The frame of all rows up to the current row.
const UP_TO_ROW: u32 = pg_sys::FRAMEOPTION_ROWS
    | pg_sys::FRAMEOPTION_START_UNBOUNDED_PRECEDING
    | pg_sys::FRAMEOPTION_END_CURRENT_ROW;

/// Offers to compute the window functions of a query on one lanes table.
///
/// # Errors
/// The reason why the node cannot compute them.
pub fn offer<'p>(
    root: PlannerInfo<'p>,
    input: RelOptInfo<'p>,
    output: RelOptInfo<'p>,
) -> Translation<()> {
    let target = root.upper_target(pg_sys::UpperRelationKind::UPPERREL_WINDOW);
    let (Some(query), Some(target)) = (root.parse(), target) else {
        return Err("no query".into());
    };
    let leaves = Leaves::of(target);
    if query.hasTargetSRFs() {
        return Err("a set-returning function".into());
    }
    if !input.lateral_relids().is_empty() {
        return Err("a lateral reference".into());
    }
    let mut translator = Translator::new(Scalars::Unknown);
    for column in &leaves.columns {
        let column = column.as_var().ok_or("a column that is an expression")?;
        translator.attribute(column)?;
    }
    let mut calls = leaves.calls.iter();
    if !calls.any(|call| WindowFunction::of(*call).is_some()) {
        return partitioned::offer::offer((root, query), input, (output, target), leaves);
    }
    let terms = Terms::of((root, query), input, leaves, &mut translator)?;
    let path = callbacks::new_path::<WindowState>(output, Some(target));
    terms.estimate(root, input, target, path.as_path());
    path.set_private(plan_field(terms.private_data(input.relid()).to_path_list()));
    output.add_path(path);
    Ok(())
}

/// The expressions of a query with functions of this extension over one window.
struct Terms<'p> {
    leaves: Leaves<'p>,
    filters: Vec<Expr<'p>>,
    window: WindowClause<'p>,
    /// The partition keys.
    keys: Vec<Expr<'p>>,
    /// The order key.
    time: Expr<'p>,
    /// Whether the frame includes the peers of the current row.
    up_to_peers: bool,
}

impl<'p> Terms<'p> {
    /// The terms of a query.
    ///
    /// # Errors
    /// The reason why the node does not cover them.
    fn of(
        (root, query): (PlannerInfo<'p>, Query<'p>),
        input: RelOptInfo<'p>,
        leaves: Leaves<'p>,
        translator: &mut Translator,
    ) -> Translation<Terms<'p>> {
        let filters = filters(root, input, translator)?;
        let Some(first) = leaves.calls.first() else {
            return Err("no window".into());
        };
        let reference = first.winref();
        for call in &leaves.calls {
            if call.winref() != reference {
                return Err("more than one window".into());
            }
            check_call(translator, *call)?;
        }
        let mut windows = query.windowClause().iter();
        let window = windows.find(|window| window.winref() == reference);
        let window = window.ok_or("no window")?;
        let targets = root.processed_tlist();
        let keys = partition_keys(translator, window, targets)?;
        let time = time(translator, window, targets)?;
        let options = window.frameOptions() as u32;
        let plain = options & !(pg_sys::FRAMEOPTION_NONDEFAULT | pg_sys::FRAMEOPTION_BETWEEN);
        if plain != UP_TO_PEERS && plain != UP_TO_ROW {
            return Err("a frame other than all rows so far".into());
        }
        let bytes = partitions(root, &keys, input.rows()) * PARTITION_BYTES;
        if bytes > hash_memory_limit() as f64 {
            return Err("its partitions would not fit in memory (see work_mem)".into());
        }
        Ok(Terms {
            leaves,
            filters,
            window,
            keys,
            time,
            up_to_peers: plain == UP_TO_PEERS,
        })
    }

    /// Estimates the rows and costs of a path, and says in which order it returns rows.
    fn estimate(
        &self,
        root: PlannerInfo<'p>,
        input: RelOptInfo<'p>,
        target: PathTarget<'p>,
        path: Path<'p>,
    ) {
        let (rows, cost) = (input.rows(), target.cost());
        path.set_parallel_safe(false);
        path.set_keys(root.order_of(self.window.orderClause()));
        path.set_rows(rows);
        let operator = server::cpu_operator_cost();
        // The first pass finds out whether the rows are in order.
        let work = 1.0 + 2.0 * self.filters.len() as f64;
        let startup = cost.startup
            + f64::from(input.pages()) * server::seq_page_cost() * 0.1
            + input.tuples() * work * operator * VECTOR_SHARE;
        path.set_startup_cost(startup);
        let each = (self.keys.len() + self.leaves.calls.len()) as f64 * operator;
        let returning = server::cpu_tuple_cost() * 0.5 + each + cost.per_tuple;
        path.set_total_cost(startup + rows * returning);
    }

    /// What the plan stores. `table` is the range-table index of the table.
    fn private_data(&self, table: u32) -> PrivateData {
        let mut hidden = List::new(self.filters.iter().chain(&self.keys).copied());
        hidden.push(self.time);
        let entries = self.leaves.entries(hidden, table);
        let (filters, keys) = (self.filters.len(), self.keys.len());
        let Leaves { columns, calls } = &self.leaves;
        let counts = [columns.len(), calls.len(), filters, keys];
        let mut numbers = vec![plan::BY_TIME];
        numbers.extend(counts.iter().map(|count| *count as i32));
        numbers.push(i32::from(self.up_to_peers));
        PrivateData {
            index: table,
            numbers,
            nodes: std::ptr::null_mut(),
            expressions: entries.parameters,
            targets: entries.entries,
        }
    }
}

/// What [`Expr::leaves`] returns beside columns: window functions as a whole.
const LEAVES: u32 = pg_sys::PVC_INCLUDE_WINDOWFUNCS
    | pg_sys::PVC_RECURSE_AGGREGATES
    | pg_sys::PVC_INCLUDE_PLACEHOLDERS;

/// The columns and the window functions of a target list, each once.
pub struct Leaves<'p> {
    pub columns: Vec<Expr<'p>>,
    pub calls: Vec<WindowFunc<'p>>,
}

impl<'p> Leaves<'p> {
    fn of(target: PathTarget<'p>) -> Leaves<'p> {
        let (mut columns, mut calls) = (Vec::<Expr<'p>>::new(), Vec::new());
        let targets = target.exprs().as_node().into_iter();
        for leaf in targets.flat_map(|targets| targets.leaves(LEAVES)) {
            match leaf.downcast::<WindowFunc<'p>>() {
                Some(call) => calls.push(call),
                None if columns.iter().any(|known| known.equals(leaf)) => {}
                None => columns.push(leaf),
            }
        }
        Leaves {
            columns,
            calls: windows::distinct(calls),
        }
    }

    /// The entries of a plan: what is returned, and a row of what is not, with the column that identifies the table.
    pub fn entries(&self, mut hidden: List<'p, Expr<'p>>, table: u32) -> Targets {
        hidden.push(plan_node(table_column(table)));
        let calls = self.calls.iter().map(|call| call.as_node());
        let returned = self.columns.iter().copied().chain(calls);
        let mut entries = Targets::new();
        for expression in returned.chain([make::row(hidden).as_node()]) {
            entries.push(expression.as_ptr());
        }
        entries
    }
}

/// The conditions on the table, all of which the engine can check.
///
/// # Errors
/// The engine cannot check a condition.
pub fn filters<'p>(
    root: PlannerInfo<'p>,
    input: RelOptInfo<'p>,
    translator: &mut Translator,
) -> Translation<Vec<Expr<'p>>> {
    let mut filters = Vec::new();
    for qual in quals(root, input) {
        if qual.pseudoconstant() {
            return Err("a qual without columns".into());
        }
        translator.predicate(qual.clause())?;
        filters.push(qual.clause());
    }
    Ok(filters)
}

/// The expressions of PARTITION BY.
///
/// # Errors
/// The engine cannot group by one of them.
pub fn partition_keys<'p>(
    translator: &mut Translator,
    window: WindowClause<'p>,
    targets: List<'p, TargetEntry<'p>>,
) -> Translation<Vec<Expr<'p>>> {
    let mut keys = Vec::new();
    for clause in window.partitionClause() {
        let key = clause.expr(targets);
        if key.is_volatile() {
            return Err("a volatile expression".into());
        }
        aggregate_call::key(translator, key)
            .map_err(|reason| reason.replace("GROUP BY", "PARTITION BY"))?;
        keys.push(key);
    }
    Ok(keys)
}

/// The expected number of partitions of so many rows.
fn partitions<'p>(root: PlannerInfo<'p>, keys: &[Expr<'p>], rows: f64) -> f64 {
    match keys.is_empty() {
        true => 1.0,
        false => root.groups_of(List::new(keys.iter().copied()), rows),
    }
}

/// Refuses a call that the node cannot compute.
fn check_call(translator: &mut Translator, call: WindowFunc<'_>) -> Translation<()> {
    let name = || function_name(call.winfnoid().to_u32());
    let Some(kind) = WindowFunction::of(call) else {
        return Err(format!("function {}", name()));
    };
    if call.aggfilter().is_some() {
        return Err(format!("FILTER of {}", name()));
    }
    let x = translator.value(plan::argument(call, 0)?)?;
    match kind {
        WindowFunction::Ema => {
            let weight = plan::argument(call, 1)?;
            if weight.has_vars() {
                return Err("a weight of the row in ema".into());
            }
            translator.value(weight)?;
        }
        WindowFunction::Delta => {}
        WindowFunction::Rate => drop(translator.value(plan::argument(call, 1)?)?),
    }
    let doubles = kind != WindowFunction::Delta;
    match x.number() {
        NumberType::F64 => Ok(()),
        NumberType::I32 | NumberType::I64 if !doubles => Ok(()),
        _ => Err(format!("{} of another type", name())),
    }
}

/// The expression that the rows of a window are ordered by.
fn time<'p>(
    translator: &mut Translator,
    window: WindowClause<'p>,
    targets: List<'p, TargetEntry<'p>>,
) -> Translation<Expr<'p>> {
    let mut clauses = window.orderClause().iter();
    let (Some(clause), None) = (clauses.next(), clauses.next()) else {
        return Err("ORDER BY other than one column".into());
    };
    let Some((descending, family)) = ports::ordering_operator(clause.sortop()) else {
        return Err("an order of no operator family".into());
    };
    if descending || clause.nulls_first() {
        return Err("ORDER BY other than ascending, NULLS LAST".into());
    }
    if !ports::is_number_family(family) {
        return Err("ORDER BY a column that is neither number nor time".into());
    }
    let time = clause.expr(targets);
    if time.is_volatile() || !time.has_vars() {
        return Err("ORDER BY no column".into());
    }
    translator.value(time)?;
    Ok(time)
}

/// Fills in the plan. The path stores everything that the plan needs.
pub fn plan(planned: &Planned) {
    planned.take_path();
    if partitioned::plan::is_partitioned(planned.plan()) {
        partitioned::offer::plan(planned);
    }
}
