//! Offers to compute SQL's own window functions.

use lanes_columnar::over::{Call, Function};
use pgrx::pg_sys;

use super::calls;
use super::plan::{self, DirectedKey};
use crate::custom_scan::node::Planned;
use crate::custom_scan::private_data::{PrivateData, Targets, table_column};
use crate::custom_scan::{callbacks, stand_in};
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::nodes::window::offer::{Leaves, filters, partition_keys, row_of};
use crate::nodes::window::state::WindowState;
use crate::pg::tree::make::copy_list;
use crate::pg::tree::{Expr, List, PlannerInfo, View, plan_field, plan_node};
use crate::pg::{nodes, ports, tree, windows};
use crate::planner::quals::VECTOR_SHARE;

/// The share of PostgreSQL's cost of a comparison that the engine's sort has.
const SORT_SHARE: f64 = 0.1;
/// Approximate bytes of a row: its places, room to sort it, and for each key, column and function some more.
const ROW_BYTES: f64 = 60.0;
const VALUE_BYTES: f64 = 12.0;

/// The windows of a query, all of which one order of rows serves.
struct Windows {
    keys: Vec<DirectedKey>,
    orders: Vec<DirectedKey>,
    /// The clauses of the keys, as pathkeys are made of them.
    clauses: *mut pg_sys::List,
    /// The conditions on results that PostgreSQL leaves to the node.
    conditions: *mut pg_sys::List,
}

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
    mut leaves: Leaves,
) -> Translation<()> {
    // SAFETY: the planner's structures are live.
    unsafe {
        let columns = &mut leaves.columns;
        columns.sort_by_key(|column| !plan::is_text_column(*column));
        let target = (*root).upper_targets[pg_sys::UpperRelationKind::UPPERREL_WINDOW as usize];
        let mut translator = Translator::new(Scalars::Unknown);
        let filters = filters(root, input, &mut translator)?;
        let windows = windows_of(root, &mut translator)?;
        let calls = calls_of(leaves.calls, windows.conditions);
        let mut specified = Vec::new();
        for call in &calls {
            specified.push(specify(root, &mut translator, &*call.cast())?);
        }
        let values = leaves.columns.len() + calls.len() + windows.orders.len();
        let bytes = (*input).rows * (ROW_BYTES + VALUE_BYTES * values as f64);
        if bytes > stand_in::memory_limit() as f64 {
            return Err("its rows would not fit in memory (see work_mem)".into());
        }

        let path = callbacks::path::<WindowState>(output, target);
        let base = &mut (*path).path;
        base.parallel_safe = false;
        let targets = (*root).processed_tlist;
        base.pathkeys = pg_sys::make_pathkeys_for_sortclauses(root, windows.clauses, targets);
        let Some(instead) = stand_in::path(plan_node(output)) else {
            return Err("no other plan".into());
        };
        let instead = plan_node::<PlannerInfo<'_>>(root).sorted(instead, plan_field(base.pathkeys));
        (*path).custom_paths = tree::list(&[instead.as_ptr()]);
        estimate(base, input, target, filters.len(), (&windows, calls.len()));

        (*path).custom_private = stored(
            (*input).relid,
            (&leaves.columns, &calls, &filters),
            &windows,
            &specified,
        );
        pg_sys::add_path(output, path.cast());
        Ok(())
    }
}

/// The calls of a target list and of conditions on results, each once.
unsafe fn calls_of(
    of_targets: Vec<*mut pg_sys::Node>,
    conditions: *mut pg_sys::List,
) -> Vec<*mut pg_sys::Node> {
    let mut met = of_targets;
    // SAFETY: the planner's expressions are live.
    unsafe {
        for condition in nodes::list::<pg_sys::Node>(conditions) {
            tree::walk_expression(condition, &mut |node, _| {
                if (*node).type_ == pg_sys::NodeTag::T_WindowFunc {
                    met.push(node);
                }
                false
            });
        }
        let mut calls: Vec<*mut pg_sys::Node> = Vec::new();
        for call in met {
            let is_call = |known: &*mut pg_sys::Node| pg_sys::equal(known.cast(), call.cast());
            if !calls.iter().any(is_call) {
                calls.push(call);
            }
        }
        calls
    }
}

/// The lists that a path stores: of columns, calls and conditions, of keys, and of what is computed.
unsafe fn stored(
    index: u32,
    (columns, calls, filters): (
        &[*mut pg_sys::Node],
        &[*mut pg_sys::Node],
        &[*mut pg_sys::Node],
    ),
    windows: &Windows,
    specified: &[Call],
) -> *mut pg_sys::List {
    // SAFETY: the planner's expressions are live.
    unsafe {
        let directed: Vec<DirectedKey> = [&windows.keys[..], &windows.orders[..]].concat();
        let mut hidden = filters.to_vec();
        hidden.extend(directed.iter().map(|key| key.expression));
        hidden.push(table_column(index));
        let mut entries = Targets::new();
        for expression in columns.iter().chain(calls) {
            entries.push(*expression);
        }
        entries.push(row_of(&hidden));
        let counts = [
            columns.len(),
            calls.len(),
            filters.len(),
            windows.keys.len(),
            windows.orders.len(),
        ];
        let data = PrivateData {
            index,
            numbers: plan::numbers(counts, &directed, specified),
            nodes: std::ptr::null_mut(),
            expressions: entries.parameters,
            targets: entries.entries,
        };
        data.to_path_list()
    }
}

/// Estimates the rows and the cost of a path.
unsafe fn estimate(
    base: &mut pg_sys::Path,
    input: *mut pg_sys::RelOptInfo,
    target: *mut pg_sys::PathTarget,
    filters: usize,
    (windows, calls): (&Windows, usize),
) {
    // SAFETY: the planner's structures are live.
    unsafe {
        base.rows = (*input).rows;
        let operator = pg_sys::cpu_operator_cost;
        let terms = (windows.keys.len() + windows.orders.len() + calls) as f64;
        let sorted = match windows.keys.len() + windows.orders.len() {
            0 => 0.0,
            _ => base.rows.max(2.0).log2() * operator * SORT_SHARE,
        };
        base.startup_cost = (*target).cost.startup
            + f64::from((*input).pages) * pg_sys::seq_page_cost * 0.1
            + (*input).tuples * (1.0 + filters as f64) * operator * VECTOR_SHARE
            + base.rows * (terms * operator * SORT_SHARE + sorted);
        let each = pg_sys::cpu_tuple_cost * 0.5 + (*target).cost.per_tuple;
        base.total_cost = base.startup_cost + base.rows * each;
    }
}

/// The windows of a query. One order serves them if they have the same partitions, and the order keys of each are the
/// first ones of the longest list.
unsafe fn windows_of(
    root: *mut pg_sys::PlannerInfo,
    translator: &mut Translator,
) -> Translation<Windows> {
    // SAFETY: the planner's structures are live.
    unsafe {
        let clauses = nodes::list::<pg_sys::WindowClause>((*(*root).parse).windowClause);
        let all: Vec<_> = clauses.filter(|window| is_used(root, *window)).collect();
        let longest = all
            .iter()
            .max_by_key(|window| ports::list_length((***window).orderClause));
        let Some(&longest) = longest else {
            return Err("no window".into());
        };
        for &window in &all {
            let has_same = starts_with((*longest).partitionClause, (*window).partitionClause)
                && starts_with((*window).partitionClause, (*longest).partitionClause)
                && starts_with((*longest).orderClause, (*window).orderClause);
            if !has_same {
                return Err("windows of different partitions or orders".into());
            }
        }
        let targets = (*root).processed_tlist;
        partition_keys(translator, longest, targets)?;
        let keys = directed(root, (*longest).partitionClause)?;
        let orders = directed(root, (*longest).orderClause)?;
        for key in &orders {
            let clause = plan_node(key.expression);
            translator
                .value(clause)
                .map_err(|reason| format!("ORDER BY: {reason}"))?;
        }
        Ok(Windows {
            keys,
            orders,
            clauses: pg_sys::list_concat_copy((*longest).partitionClause, (*longest).orderClause),
            conditions: conditions(plan_node(root)).as_ptr(),
        })
    }
}

/// Whether a window has functions. PostgreSQL keeps clauses that no function refers to.
unsafe fn is_used(root: *mut pg_sys::PlannerInfo, window: *mut pg_sys::WindowClause) -> bool {
    // SAFETY: the planner's structures are live.
    unsafe {
        let mut found = false;
        let reference = (*window).winref;
        tree::walk_expression((*root).processed_tlist.cast(), &mut |node, _| {
            found |= (*node).type_ == pg_sys::NodeTag::T_WindowFunc
                && (*node.cast::<pg_sys::WindowFunc>()).winref == reference;
            false
        });
        found
    }
}

/// Whether a list of clauses begins with another one.
unsafe fn starts_with(list: *mut pg_sys::List, with: *mut pg_sys::List) -> bool {
    // SAFETY: the planner's structures are live.
    unsafe {
        let length = ports::list_length(with);
        ports::list_length(list) >= length
            && (0..length).all(|place| {
                let a = ports::list_nth::<pg_sys::Node>(list, place);
                let b = ports::list_nth::<pg_sys::Node>(with, place);
                pg_sys::equal(a.cast(), b.cast())
            })
    }
}

/// The expressions of clauses, with the directions of their order.
unsafe fn directed(
    root: *mut pg_sys::PlannerInfo,
    clauses: *mut pg_sys::List,
) -> Translation<Vec<DirectedKey>> {
    let mut keys = Vec::new();
    // SAFETY: the planner's structures are live.
    unsafe {
        for clause in nodes::list::<pg_sys::SortGroupClause>(clauses) {
            let expression = pg_sys::get_sortgroupclause_expr(clause, (*root).processed_tlist);
            if pg_sys::contain_volatile_functions(expression) {
                return Err("a volatile expression".into());
            }
            let kind = pg_sys::lookup_type_cache(
                pg_sys::exprType(expression),
                pg_sys::TYPECACHE_BTREE_OPFAMILY as i32,
            );
            match ports::ordering_operator((*clause).sortop) {
                Some((is_descending, family)) if family == (*kind).btree_opf => {
                    keys.push(DirectedKey {
                        expression,
                        is_descending,
                        nulls_first: (*clause).nulls_first,
                    });
                }
                _ => return Err("an order other than that of the type".into()),
            }
        }
    }
    Ok(keys)
}

/// A call with its frame.
unsafe fn specify(
    root: *mut pg_sys::PlannerInfo,
    translator: &mut Translator,
    call: &pg_sys::WindowFunc,
) -> Translation<Call> {
    // SAFETY: the planner's structures are live.
    unsafe {
        let function = calls::function_of(call)?;
        if !call.aggfilter.is_null() {
            translator.predicate(plan_node(call.aggfilter.cast()))?;
        }
        calls::wanted(translator, call, function)?;
        if matches!(function, Function::Offset(_)) && calls::default_of(call).is_none() {
            return Err("a default that is no constant".into());
        }
        let mut windows = nodes::list::<pg_sys::WindowClause>((*(*root).parse).windowClause);
        let window = windows.find(|window| (**window).winref == call.winref);
        let window = window.ok_or_else(|| "no window".to_string())?;
        Ok(Call {
            function,
            frame: calls::frame_of(&*window)?,
            order_keys: ports::list_length((*window).orderClause) as usize,
        })
    }
}

/// The conditions on results that the plan evaluates, beside what the path stores.
pub fn plan(planned: &Planned) {
    planned.scan.set_quals(copy_list(conditions(planned.root)));
}

/// The conditions on results that PostgreSQL leaves to the node.
pub fn conditions(root: PlannerInfo<'_>) -> List<'_, Expr<'_>> {
    let mut conditions = std::ptr::null_mut();
    // SAFETY: the planner's structures are live.
    unsafe {
        let root = root.as_ptr();
        for window in nodes::list::<pg_sys::WindowClause>((*(*root).parse).windowClause) {
            if is_used(root, window) {
                for condition in windows::run_conditions(window, (*root).processed_tlist) {
                    conditions = pg_sys::lappend(conditions, condition.cast());
                }
            }
        }
    }
    plan_field(conditions)
}
