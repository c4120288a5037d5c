//! `LanesWindow`: `lanes.ema`, `lanes.delta` and `lanes.rate` over a window of a table's rows; path and plan.
//!
//! | numbers | custom_exprs | custom_scan_tlist |
//! |---|---|---|
//! | how many columns, functions, quals and partition keys, whether peers have one average | parameters of all expressions | columns, functions, a row of quals, partition keys, time and a column of the table |
//!
//! The node gives rows in the order of time, and its path says so: a Sort above it is only for another order. What it
//! never returns stands in one row expression, so that no expression of the query's target list is taken for a part of
//! it; the column at its end, which no target list that is accepted has, says which table it is.

use lanes_columnar::vector::number::NumberType;
use pgrx::pg_sys;

use super::state::WindowState;
use crate::custom_scan::private_data::{Remembered, Targets, table_column, table_of};
use crate::custom_scan::{self, node};
use crate::expressions::aggregate_call;
use crate::expressions::lanes_aggregate::is_ours;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::pg::names::function_name;
use crate::pg::{nodes, ports, tree};
use crate::planner::quals::{VECTOR_SHARE, quals};

/// Bytes that a partition takes, about.
const PARTITION_BYTES: f64 = 150.0;

/// A window's frame: all rows up to the current one's last peer, or up to the row itself.
const UP_TO_PEERS: u32 = pg_sys::FRAMEOPTION_RANGE
    | pg_sys::FRAMEOPTION_START_UNBOUNDED_PRECEDING
    | pg_sys::FRAMEOPTION_END_CURRENT_ROW;
const UP_TO_ROW: u32 = pg_sys::FRAMEOPTION_ROWS
    | pg_sys::FRAMEOPTION_START_UNBOUNDED_PRECEDING
    | pg_sys::FRAMEOPTION_END_CURRENT_ROW;

/// Which function a call is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Ema,
    Delta,
    Rate,
}

impl Kind {
    /// The function of this extension that a call is of, if it is of one.
    ///
    /// # Safety
    /// Runs inside a transaction.
    pub unsafe fn of(call: &pg_sys::WindowFunc) -> Option<Kind> {
        // SAFETY: the caller's promise.
        if !unsafe { is_ours(call.winfnoid) } {
            return None;
        }
        match function_name(call.winfnoid.to_u32()).as_str() {
            "ema" => Some(Kind::Ema),
            "delta" => Some(Kind::Delta),
            "rate" => Some(Kind::Rate),
            _ => None,
        }
    }
}

/// Offers to compute the window functions of a query on one table. Nothing is offered, and nothing said, if none of them
/// is of this extension.
///
/// # Errors
/// Why it cannot be done.
///
/// # Safety
/// The planner's live structures; `input` is a lanes table.
pub unsafe fn offer(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
) -> Translation<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let stage = pg_sys::UpperRelationKind::UPPERREL_WINDOW;
        let target = (*root).upper_targets[stage as usize];
        let (mut columns, mut calls) = (Vec::new(), Vec::new());
        let leaves = pg_sys::pull_var_clause((*target).exprs.cast(), LEAVES);
        for leaf in nodes::list::<pg_sys::Node>(leaves) {
            let found = match (*leaf).type_ {
                pg_sys::NodeTag::T_WindowFunc => &mut calls,
                _ => &mut columns,
            };
            if !found
                .iter()
                .any(|known: &*mut pg_sys::Node| pg_sys::equal(known.cast(), leaf.cast()))
            {
                found.push(leaf);
            }
        }
        let function = |call: &*mut pg_sys::Node| &*call.cast::<pg_sys::WindowFunc>();
        if !calls.iter().any(|call| Kind::of(function(call)).is_some()) {
            return Ok(());
        }
        if (*(*root).parse).hasTargetSRFs {
            return Err("a set-returning function".into());
        }
        if !(*input).lateral_relids.is_null() {
            return Err("a lateral reference".into());
        }
        let mut translator = Translator::new(Scalars::Unknown);
        let mut filters = Vec::new();
        for qual in quals(root, input) {
            if (*qual).pseudoconstant {
                return Err("a qual without columns".into());
            }
            let clause = (*qual).clause.cast::<pg_sys::Node>();
            translator.predicate(clause)?;
            filters.push(clause);
        }
        for column in &columns {
            if (**column).type_ != pg_sys::NodeTag::T_Var {
                return Err("a column that is an expression".into());
            }
            translator.attribute(*column)?;
        }
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
        let mut keys = Vec::new();
        for clause in nodes::list::<pg_sys::SortGroupClause>((*window).partitionClause) {
            let key = pg_sys::get_sortgroupclause_expr(clause, targets);
            if pg_sys::contain_volatile_functions(key) {
                return Err("a volatile expression".into());
            }
            aggregate_call::key(&mut translator, key)
                .map_err(|reason| reason.replace("GROUP BY", "PARTITION BY"))?;
            keys.push(key);
        }
        let time = time(root, &mut translator, window)?;
        let options = (*window).frameOptions as u32;
        let plain = options & !(pg_sys::FRAMEOPTION_NONDEFAULT | pg_sys::FRAMEOPTION_BETWEEN);
        if plain != UP_TO_PEERS && plain != UP_TO_ROW {
            return Err("a frame other than all rows so far".into());
        }
        let partitions = match keys.is_empty() {
            true => 1.0,
            false => {
                let (rows, none) = ((*input).rows, std::ptr::null_mut());
                pg_sys::estimate_num_groups(root, tree::list(&keys), rows, none, none.cast())
            }
        };
        if partitions * PARTITION_BYTES > pg_sys::get_hash_memory_limit() as f64 {
            return Err("its partitions would not fit in memory (see work_mem)".into());
        }

        let path = node::path::<WindowState>(output, target);
        let base = &mut (*path).path;
        base.parallel_safe = false;
        base.pathkeys = pg_sys::make_pathkeys_for_sortclauses(root, (*window).orderClause, targets);
        base.rows = (*input).rows;
        let operator = pg_sys::cpu_operator_cost;
        // A first pass looks whether rows are in order.
        let work = 1.0 + 2.0 * filters.len() as f64;
        base.startup_cost = (*target).cost.startup
            + f64::from((*input).pages) * pg_sys::seq_page_cost * 0.1
            + (*input).tuples * work * operator * VECTOR_SHARE;
        let each = (keys.len() + calls.len()) as f64 * operator;
        base.total_cost = base.startup_cost
            + base.rows * (pg_sys::cpu_tuple_cost * 0.5 + each + (*target).cost.per_tuple);
        let counts = [columns.len(), calls.len(), filters.len(), keys.len()];
        let mut numbers: Vec<i32> = counts.iter().map(|count| *count as i32).collect();
        numbers.push(i32::from(plain == UP_TO_PEERS));
        let index = (*input).relid;
        let mut hidden = filters;
        hidden.extend(&keys);
        hidden.extend([time, table_column(index)]);
        let mut targets = Targets::new();
        for expression in columns.iter().chain(&calls) {
            targets.push(*expression);
        }
        targets.push(row_of(&hidden));
        let remembered = Remembered {
            index,
            numbers,
            nodes: std::ptr::null_mut(),
            expressions: targets.parameters,
            targets: targets.entries,
        };
        (*path).custom_private = remembered.of_path();
        pg_sys::add_path(output, path.cast());
        Ok(())
    }
}

/// Window functions are leaves, not looked into.
const LEAVES: i32 = (pg_sys::PVC_INCLUDE_WINDOWFUNCS
    | pg_sys::PVC_RECURSE_AGGREGATES
    | pg_sys::PVC_INCLUDE_PLACEHOLDERS) as i32;

/// Refuses a call that cannot be computed.
unsafe fn check_call(translator: &mut Translator, call: &pg_sys::WindowFunc) -> Translation<()> {
    // SAFETY: the planner's live expressions.
    unsafe {
        let name = || function_name(call.winfnoid.to_u32());
        let Some(kind) = Kind::of(call) else {
            return Err(format!("function {}", name()));
        };
        if !call.aggfilter.is_null() {
            return Err(format!("FILTER of {}", name()));
        }
        let argument = |i| ports::list_nth::<pg_sys::Node>(call.args, i);
        let x = translator.value(argument(0))?;
        match kind {
            Kind::Ema => {
                if pg_sys::contain_var_clause(argument(1)) {
                    return Err("a weight of the row in ema".into());
                }
                translator.value(argument(1))?;
            }
            Kind::Delta => {}
            Kind::Rate => drop(translator.value(argument(1))?),
        }
        let doubles = kind != Kind::Delta;
        match x.number() {
            NumberType::F64 => Ok(()),
            NumberType::I32 | NumberType::I64 if !doubles => Ok(()),
            _ => Err(format!("{} of another type", name())),
        }
    }
}

/// What the rows of a window are ordered by.
unsafe fn time(
    root: *mut pg_sys::PlannerInfo,
    translator: &mut Translator,
    window: *mut pg_sys::WindowClause,
) -> Translation<*mut pg_sys::Node> {
    // SAFETY: the planner's live structures.
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
        translator.value(time)?;
        Ok(time)
    }
}

/// A row of expressions.
unsafe fn row_of(expressions: &[*mut pg_sys::Node]) -> *mut pg_sys::Node {
    // SAFETY: the planner's live expressions.
    unsafe {
        let row = tree::make::<pg_sys::RowExpr>(pg_sys::NodeTag::T_RowExpr);
        (*row).args = tree::list(expressions);
        (*row).row_typeid = pg_sys::RECORDOID;
        (*row).row_format = pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
        (*row).location = -1;
        row.cast()
    }
}

/// The plan, taken apart.
pub struct WindowPlan {
    /// Columns that are returned.
    pub columns: Vec<*mut pg_sys::Node>,
    /// The functions.
    pub calls: Vec<*mut pg_sys::Node>,
    /// Vectorised quals.
    pub quals: Vec<*mut pg_sys::Node>,
    /// What rows are partitioned by.
    pub keys: Vec<*mut pg_sys::Node>,
    /// What they are ordered by.
    pub time: *mut pg_sys::Node,
    /// Whether rows of one time and partition have one average.
    pub peers: bool,
    /// The range-table index of the table.
    pub index: u32,
}

impl WindowPlan {
    /// All expressions that the engine evaluates.
    pub fn expressions(&self) -> impl Iterator<Item = *mut pg_sys::Node> {
        let parts = [&self.calls, &self.quals, &self.keys];
        parts.into_iter().flatten().copied().chain([self.time])
    }

    /// # Safety
    /// `scan` is a plan of this node.
    pub unsafe fn of(scan: *mut pg_sys::CustomScan) -> WindowPlan {
        // SAFETY: the caller's promise.
        unsafe {
            let numbers = custom_scan::private_data::numbers(scan);
            let count = |part: usize| numbers[part] as usize;
            let mut entries = nodes::list::<pg_sys::TargetEntry>((*scan).custom_scan_tlist)
                .map(|entry| (*entry).expr.cast::<pg_sys::Node>());
            let columns = entries.by_ref().take(count(0)).collect();
            let calls = entries.by_ref().take(count(1)).collect();
            let hidden = entries.next().expect("the row is last");
            let mut hidden = nodes::list((*hidden.cast::<pg_sys::RowExpr>()).args);
            let quals = hidden.by_ref().take(count(2)).collect();
            let keys = hidden.by_ref().take(count(3)).collect();
            let time = hidden.next().expect("the time is behind the keys");
            let table = hidden.next().expect("the table's column is last");
            WindowPlan {
                columns,
                calls,
                quals,
                keys,
                time,
                peers: count(4) != 0,
                index: table_of(table),
            }
        }
    }
}
