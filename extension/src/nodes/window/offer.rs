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
use crate::pg::names::function_name;
use crate::pg::tree::{View, plan_node};
use crate::pg::{nodes, ports, tree};
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

/// Offers to compute the window functions of a query on one table.
///
/// # Errors
/// The reason why the node cannot compute them.
///
/// # Safety
/// The planner's structures are live, and `input` is a lanes table.
pub unsafe fn offer(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
) -> Translation<()> {
    // SAFETY: the planner's structures are live.
    unsafe {
        let stage = pg_sys::UpperRelationKind::UPPERREL_WINDOW;
        let target = (*root).upper_targets[stage as usize];
        let leaves = leaves((*target).exprs);
        if (*(*root).parse).hasTargetSRFs {
            return Err("a set-returning function".into());
        }
        if !(*input).lateral_relids.is_null() {
            return Err("a lateral reference".into());
        }
        let mut translator = Translator::new(Scalars::Unknown);
        for column in &leaves.columns {
            if (**column).type_ != pg_sys::NodeTag::T_Var {
                return Err("a column that is an expression".into());
            }
            translator.attribute(plan_node((*column).cast()))?;
        }
        let mut calls = leaves.calls.iter();
        if !calls.any(|call| WindowFunction::of(function(*call)).is_some()) {
            return partitioned::offer::offer(root, input, output, leaves);
        }
        let terms = Terms::of(root, input, leaves, &mut translator)?;
        let path = callbacks::path::<WindowState>(output, target);
        terms.estimate(root, input, &raw mut (*path).path);
        (*path).custom_private = terms.private_data((*input).relid).to_path_list();
        pg_sys::add_path(output, path.cast());
        Ok(())
    }
}

/// A call of a window function.
///
/// # Safety
/// The node is a live call of a window function.
unsafe fn function<'a>(call: *mut pg_sys::Node) -> &'a pg_sys::WindowFunc {
    // SAFETY: the caller's promise.
    unsafe { &*call.cast::<pg_sys::WindowFunc>() }
}

/// The expressions of a query with functions of this extension over one window.
struct Terms {
    leaves: Leaves,
    filters: Vec<*mut pg_sys::Node>,
    window: *mut pg_sys::WindowClause,
    /// The partition keys.
    keys: Vec<*mut pg_sys::Node>,
    /// The order key.
    time: *mut pg_sys::Node,
    /// Whether the frame includes the peers of the current row.
    up_to_peers: bool,
}

impl Terms {
    /// The terms of a query.
    ///
    /// # Errors
    /// The reason why the node does not cover them.
    ///
    /// # Safety
    /// The planner's structures are live, and there is a call.
    unsafe fn of(
        root: *mut pg_sys::PlannerInfo,
        input: *mut pg_sys::RelOptInfo,
        leaves: Leaves,
        translator: &mut Translator,
    ) -> Translation<Terms> {
        // SAFETY: the caller's promise.
        unsafe {
            let filters = filters(root, input, translator)?;
            let reference = function(leaves.calls[0]).winref;
            for call in &leaves.calls {
                if function(*call).winref != reference {
                    return Err("more than one window".into());
                }
                check_call(translator, function(*call))?;
            }
            let window = nodes::list::<pg_sys::WindowClause>((*(*root).parse).windowClause)
                .find(|window| (**window).winref == reference);
            let Some(window) = window else {
                return Err("no window".into());
            };
            let keys = partition_keys(translator, window, (*root).processed_tlist)?;
            let time = time(root, translator, window)?;
            let options = (*window).frameOptions as u32;
            let plain = options & !(pg_sys::FRAMEOPTION_NONDEFAULT | pg_sys::FRAMEOPTION_BETWEEN);
            if plain != UP_TO_PEERS && plain != UP_TO_ROW {
                return Err("a frame other than all rows so far".into());
            }
            let bytes = partitions(root, &keys, (*input).rows) * PARTITION_BYTES;
            if bytes > pg_sys::get_hash_memory_limit() as f64 {
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
    }

    /// Estimates the rows and costs of a path, and says in which order it returns rows.
    ///
    /// # Safety
    /// The planner's structures and the path are live.
    unsafe fn estimate(
        &self,
        root: *mut pg_sys::PlannerInfo,
        input: *mut pg_sys::RelOptInfo,
        base: *mut pg_sys::Path,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let (base, cost) = (&mut *base, (*(*base).pathtarget).cost);
            base.parallel_safe = false;
            base.pathkeys = pg_sys::make_pathkeys_for_sortclauses(
                root,
                (*self.window).orderClause,
                (*root).processed_tlist,
            );
            base.rows = (*input).rows;
            let operator = pg_sys::cpu_operator_cost;
            // The first pass finds out whether the rows are in order.
            let work = 1.0 + 2.0 * self.filters.len() as f64;
            base.startup_cost = cost.startup
                + f64::from((*input).pages) * pg_sys::seq_page_cost * 0.1
                + (*input).tuples * work * operator * VECTOR_SHARE;
            let each = (self.keys.len() + self.leaves.calls.len()) as f64 * operator;
            base.total_cost = base.startup_cost
                + base.rows * (pg_sys::cpu_tuple_cost * 0.5 + each + cost.per_tuple);
        }
    }

    /// What the plan stores. `table` is the range-table index of the table.
    ///
    /// # Safety
    /// The expressions are live.
    unsafe fn private_data(&self, table: u32) -> PrivateData {
        let Leaves { columns, calls } = &self.leaves;
        let mut hidden = self.filters.clone();
        hidden.extend(&self.keys);
        // SAFETY: the caller's promise.
        unsafe {
            hidden.extend([self.time, table_column(table)]);
            let mut entries = Targets::new();
            for expression in columns.iter().chain(calls) {
                entries.push(*expression);
            }
            entries.push(row_of(&hidden));
            let (filters, keys) = (self.filters.len(), self.keys.len());
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
}

/// `pull_var_clause` returns window functions as a whole.
const LEAVES: i32 = (pg_sys::PVC_INCLUDE_WINDOWFUNCS
    | pg_sys::PVC_RECURSE_AGGREGATES
    | pg_sys::PVC_INCLUDE_PLACEHOLDERS) as i32;

/// The columns and the window functions of a target list, each once.
pub struct Leaves {
    pub columns: Vec<*mut pg_sys::Node>,
    pub calls: Vec<*mut pg_sys::Node>,
}

unsafe fn leaves(targets: *mut pg_sys::List) -> Leaves {
    let (mut columns, mut calls) = (Vec::new(), Vec::new());
    // SAFETY: the planner's expressions are live.
    unsafe {
        let leaves = pg_sys::pull_var_clause(targets.cast(), LEAVES);
        for leaf in nodes::list::<pg_sys::Node>(leaves) {
            let found = match (*leaf).type_ {
                pg_sys::NodeTag::T_WindowFunc => &mut calls,
                _ => &mut columns,
            };
            let is_leaf = |known: &*mut pg_sys::Node| pg_sys::equal(known.cast(), leaf.cast());
            if !found.iter().any(is_leaf) {
                found.push(leaf);
            }
        }
    }
    Leaves { columns, calls }
}

/// The conditions on the table, all of which the engine can check.
///
/// # Errors
/// The engine cannot check a condition.
///
/// # Safety
/// The planner's structures are live.
pub unsafe fn filters(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    translator: &mut Translator,
) -> Translation<Vec<*mut pg_sys::Node>> {
    let mut filters = Vec::new();
    // SAFETY: the planner's structures are live.
    unsafe {
        for qual in quals(plan_node(root), plan_node(input))
            .into_iter()
            .map(View::as_ptr)
        {
            if (*qual).pseudoconstant {
                return Err("a qual without columns".into());
            }
            let clause = (*qual).clause.cast::<pg_sys::Node>();
            translator.predicate(plan_node(clause.cast()))?;
            filters.push(clause);
        }
    }
    Ok(filters)
}

/// The expressions of PARTITION BY.
///
/// # Errors
/// The engine cannot group by one of them.
///
/// # Safety
/// The planner's structures are live.
pub unsafe fn partition_keys(
    translator: &mut Translator,
    window: *mut pg_sys::WindowClause,
    targets: *mut pg_sys::List,
) -> Translation<Vec<*mut pg_sys::Node>> {
    let mut keys = Vec::new();
    // SAFETY: the planner's structures are live.
    unsafe {
        for clause in nodes::list::<pg_sys::SortGroupClause>((*window).partitionClause) {
            let key = pg_sys::get_sortgroupclause_expr(clause, targets);
            if pg_sys::contain_volatile_functions(key) {
                return Err("a volatile expression".into());
            }
            aggregate_call::key(translator, plan_node(key.cast()))
                .map_err(|reason| reason.replace("GROUP BY", "PARTITION BY"))?;
            keys.push(key);
        }
    }
    Ok(keys)
}

/// The expected number of partitions of so many rows.
unsafe fn partitions(root: *mut pg_sys::PlannerInfo, keys: &[*mut pg_sys::Node], rows: f64) -> f64 {
    if keys.is_empty() {
        return 1.0;
    }
    let none = std::ptr::null_mut();
    // SAFETY: the planner's structures are live.
    unsafe { pg_sys::estimate_num_groups(root, tree::list(keys), rows, none, none.cast()) }
}

/// Refuses a call that the node cannot compute.
unsafe fn check_call(translator: &mut Translator, call: &pg_sys::WindowFunc) -> Translation<()> {
    // SAFETY: the planner's expressions are live.
    unsafe {
        let name = || function_name(call.winfnoid.to_u32());
        let Some(kind) = WindowFunction::of(call) else {
            return Err(format!("function {}", name()));
        };
        if !call.aggfilter.is_null() {
            return Err(format!("FILTER of {}", name()));
        }
        let argument = |i| ports::list_nth::<pg_sys::Node>(call.args, i);
        let x = translator.value(crate::pg::tree::plan_node(argument(0).cast()))?;
        match kind {
            WindowFunction::Ema => {
                if pg_sys::contain_var_clause(argument(1)) {
                    return Err("a weight of the row in ema".into());
                }
                translator.value(crate::pg::tree::plan_node(argument(1).cast()))?;
            }
            WindowFunction::Delta => {}
            WindowFunction::Rate => {
                drop(translator.value(crate::pg::tree::plan_node(argument(1).cast()))?)
            }
        }
        let doubles = kind != WindowFunction::Delta;
        match x.number() {
            NumberType::F64 => Ok(()),
            NumberType::I32 | NumberType::I64 if !doubles => Ok(()),
            _ => Err(format!("{} of another type", name())),
        }
    }
}

/// The expression that the rows of a window are ordered by.
unsafe fn time(
    root: *mut pg_sys::PlannerInfo,
    translator: &mut Translator,
    window: *mut pg_sys::WindowClause,
) -> Translation<*mut pg_sys::Node> {
    // SAFETY: the planner's structures are live.
    unsafe {
        let mut clauses = nodes::list::<pg_sys::SortGroupClause>((*window).orderClause);
        let (Some(clause), None) = (clauses.next(), clauses.next()) else {
            return Err("ORDER BY other than one column".into());
        };
        let Some((descending, family)) = ports::ordering_operator((*clause).sortop) else {
            return Err("an order of no operator family".into());
        };
        if descending || (*clause).nulls_first {
            return Err("ORDER BY other than ascending, NULLS LAST".into());
        }
        if !ports::is_number_family(family) {
            return Err("ORDER BY a column that is neither number nor time".into());
        }
        let time = pg_sys::get_sortgroupclause_expr(clause, (*root).processed_tlist);
        if pg_sys::contain_volatile_functions(time) || !pg_sys::contain_var_clause(time) {
            return Err("ORDER BY no column".into());
        }
        translator.value(crate::pg::tree::plan_node(time.cast()))?;
        Ok(time)
    }
}

/// A row expression.
///
/// # Safety
/// The expressions are live.
pub unsafe fn row_of(expressions: &[*mut pg_sys::Node]) -> *mut pg_sys::Node {
    // SAFETY: the planner's expressions are live.
    unsafe {
        let row = tree::make::<pg_sys::RowExpr>(pg_sys::NodeTag::T_RowExpr);
        (*row).args = tree::list(expressions);
        (*row).row_typeid = pg_sys::RECORDOID;
        (*row).row_format = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        (*row).location = -1;
        row.cast()
    }
}

/// Fills in the plan. The path stores everything that the plan needs.
pub fn plan(planned: &Planned) {
    // SAFETY: the path is one that `offer` made.
    unsafe { planned.take_path_lists() };
    if partitioned::plan::is_partitioned(planned.plan()) {
        partitioned::offer::plan(planned);
    }
}
