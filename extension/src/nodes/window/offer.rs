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
        let function = |call: &*mut pg_sys::Node| &*call.cast::<pg_sys::WindowFunc>();
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
            translator.attribute(crate::pg::tree::plan_node((*column).cast()))?;
        }
        let mut calls = leaves.calls.iter();
        if !calls.any(|call| WindowFunction::of(function(call)).is_some()) {
            return partitioned::offer::offer(root, input, output, leaves);
        }
        let Leaves { columns, calls } = leaves;
        let filters = filters(root, input, &mut translator)?;
        let reference = function(&calls[0]).winref;
        for call in &calls {
            if function(call).winref != reference {
                return Err("more than one window".into());
            }
            check_call(&mut translator, function(call))?;
        }
        let window = nodes::list::<pg_sys::WindowClause>((*(*root).parse).windowClause)
            .find(|window| (**window).winref == reference);
        let Some(window) = window else {
            return Err("no window".into());
        };
        let targets = (*root).processed_tlist;
        let keys = partition_keys(&mut translator, window, targets)?;
        let time = time(root, &mut translator, window)?;
        let options = (*window).frameOptions as u32;
        let plain = options & !(pg_sys::FRAMEOPTION_NONDEFAULT | pg_sys::FRAMEOPTION_BETWEEN);
        if plain != UP_TO_PEERS && plain != UP_TO_ROW {
            return Err("a frame other than all rows so far".into());
        }
        let bytes = partitions(root, &keys, (*input).rows) * PARTITION_BYTES;
        if bytes > pg_sys::get_hash_memory_limit() as f64 {
            return Err("its partitions would not fit in memory (see work_mem)".into());
        }

        let path = callbacks::path::<WindowState>(output, target);
        let base = &mut (*path).path;
        base.parallel_safe = false;
        base.pathkeys = pg_sys::make_pathkeys_for_sortclauses(root, (*window).orderClause, targets);
        base.rows = (*input).rows;
        let operator = pg_sys::cpu_operator_cost;
        // The first pass finds out whether the rows are in order.
        let work = 1.0 + 2.0 * filters.len() as f64;
        base.startup_cost = (*target).cost.startup
            + f64::from((*input).pages) * pg_sys::seq_page_cost * 0.1
            + (*input).tuples * work * operator * VECTOR_SHARE;
        let each = (keys.len() + calls.len()) as f64 * operator;
        base.total_cost = base.startup_cost
            + base.rows * (pg_sys::cpu_tuple_cost * 0.5 + each + (*target).cost.per_tuple);
        let mut hidden = filters.clone();
        hidden.extend(&keys);
        hidden.extend([time, table_column((*input).relid)]);
        let mut entries = Targets::new();
        for expression in columns.iter().chain(&calls) {
            entries.push(*expression);
        }
        entries.push(row_of(&hidden));
        let counts = [columns.len(), calls.len(), filters.len(), keys.len()];
        let mut numbers = vec![plan::BY_TIME];
        numbers.extend(counts.iter().map(|count| *count as i32));
        numbers.push(i32::from(plain == UP_TO_PEERS));
        let data = PrivateData {
            index: (*input).relid,
            numbers,
            nodes: std::ptr::null_mut(),
            expressions: entries.parameters,
            targets: entries.entries,
        };
        (*path).custom_private = data.to_path_list();
        pg_sys::add_path(output, path.cast());
        Ok(())
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
