//! Offers to compute SQL's own window functions.

use lanes_columnar::over::{Call, Function};

use super::order_key::OrderKey;
use super::plan::{self, DirectedKey};
use super::{calls, conditions as of_ranks};
use crate::custom_scan::node::Planned;
use crate::custom_scan::private_data::PrivateData;
use crate::custom_scan::{callbacks, stand_in};
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::nodes::nested_aggregate::outputs::is_text;
use crate::nodes::window::offer::{Leaves, filters, partition_keys};
use crate::nodes::window::state::WindowState;
use crate::pg::tree::make::copy_list;
use crate::pg::tree::{
    Expr, List, Node, Path, PathTarget, PlannerInfo, Query, RelOptInfo, SortGroupClause,
    TargetEntry, WindowClause, WindowFunc, plan_field, walk,
};
use crate::pg::{catalog, ports, server, windows};
use crate::planner::quals::VECTOR_SHARE;

/// The share of PostgreSQL's cost of a comparison that the engine's sort has.
const SORT_SHARE: f64 = 0.1;
/// Approximate bytes of a row: its places, room to sort it, and for each key, column and function some more.
const ROW_BYTES: f64 = 60.0;
const VALUE_BYTES: f64 = 12.0;

/// The table is read for so many parts of the partitions at most, each of which has so many partitions at least.
const PARTS_MAX: f64 = 100.0;
const PARTITIONS_A_PART: f64 = 4.0;

/// The windows of a query, all of which one order of rows serves.
struct Windows<'p> {
    keys: Vec<DirectedKey<'p>>,
    orders: Vec<DirectedKey<'p>>,
    /// The clauses of the keys, as pathkeys are made of them.
    clauses: List<'p, SortGroupClause<'p>>,
    /// The conditions on results that PostgreSQL leaves to the node.
    conditions: List<'p, Expr<'p>>,
}

/// Offers to compute the window functions of a query on one lanes table: the target's `leaves`.
///
/// # Errors
/// The reason why the node cannot compute them.
pub fn offer<'p>(
    (root, query): (PlannerInfo<'p>, Query<'p>),
    input: RelOptInfo<'p>,
    (output, target): (RelOptInfo<'p>, PathTarget<'p>),
    mut leaves: Leaves<'p>,
) -> Translation<()> {
    let columns = &mut leaves.columns;
    columns.sort_by_key(|column| !plan::is_text_column(*column));
    let mut translator = Translator::new(Scalars::Unknown);
    let filters = filters(root, input, &mut translator)?;
    let windows = windows_of(root, query, &mut translator)?;
    leaves.calls = calls_of(leaves.calls, windows.conditions);
    let (targets, mut specified) = (root.processed_tlist(), Vec::new());
    for call in &leaves.calls {
        specified.push(specify(query, targets, &mut translator, *call)?);
    }
    let values = leaves.columns.len() + leaves.calls.len() + windows.orders.len();
    let bytes = input.rows() * (ROW_BYTES + VALUE_BYTES * values as f64);
    let first = windows.orders.first();
    let keeps_few = of_ranks::keep_few(windows.conditions, &specified)
        && first.is_none_or(|key| !is_text(key.expression.type_of()));
    let passes = match keeps_few {
        true => Some(1.0),
        false => passes(root, input.rows(), bytes, &windows.keys),
    };
    let Some(passes) = passes else {
        return Err("its rows would not fit in memory (see work_mem)".into());
    };

    let path = callbacks::new_path::<WindowState>(output, Some(target));
    let base = path.as_path();
    base.set_parallel_safe(false);
    let order = root.order_of(windows.clauses);
    base.set_keys(order);
    let instead = stand_in::path(output).ok_or("no other plan")?;
    path.set_children(List::new([root.sorted(instead, order)]));
    let counts = (filters.len(), leaves.calls.len());
    estimate(base, input, target, &windows, counts, passes);

    let stored = stored(input.relid(), &leaves, &filters, &windows, &specified);
    path.set_private(plan_field(stored.to_path_list()));
    output.add_path(path);
    Ok(())
}

/// How often the table is read for so many rows of so many bytes in all; `None` if its partitions do not fit.
fn passes(root: PlannerInfo<'_>, rows: f64, bytes: f64, keys: &[DirectedKey<'_>]) -> Option<f64> {
    // Parts are cut so that columns may grow to twice what they need.
    let parts = (2.0 * bytes / stand_in::memory_limit() as f64).ceil();
    if parts <= 2.0 && bytes <= stand_in::memory_limit() as f64 {
        return Some(1.0);
    }
    let keys = List::new(keys.iter().map(|key| key.expression));
    let partitions = root.groups_of(keys, rows);
    (parts <= PARTS_MAX && partitions >= PARTITIONS_A_PART * parts).then_some(parts + 1.0)
}

/// The calls of a target list and of conditions on results, each once.
fn calls_of<'p>(
    of_targets: Vec<WindowFunc<'p>>,
    conditions: List<'p, Expr<'p>>,
) -> Vec<WindowFunc<'p>> {
    let mut met = of_targets;
    for condition in conditions {
        walk::expression(condition, &mut |node, _| {
            met.extend(node.downcast::<WindowFunc<'p>>());
            false
        });
    }
    windows::distinct(met)
}

/// What a path stores: columns, calls and conditions, keys, and what is computed.
fn stored<'p>(
    index: u32,
    leaves: &Leaves<'p>,
    filters: &[Expr<'p>],
    windows: &Windows<'p>,
    specified: &[Call],
) -> PrivateData {
    let directed: Vec<DirectedKey<'p>> = [&windows.keys[..], &windows.orders[..]].concat();
    let keys = directed.iter().map(|key| key.expression);
    let entries = leaves.entries(List::new(filters.iter().copied().chain(keys)), index);
    let counts = [
        leaves.columns.len(),
        leaves.calls.len(),
        filters.len(),
        windows.keys.len(),
        windows.orders.len(),
    ];
    PrivateData {
        index,
        numbers: plan::numbers(counts, &directed, specified),
        nodes: std::ptr::null_mut(),
        expressions: entries.parameters,
        targets: entries.entries,
    }
}

/// Estimates the rows and the cost of a path, with so many conditions and calls.
fn estimate(
    base: Path<'_>,
    input: RelOptInfo<'_>,
    target: PathTarget<'_>,
    windows: &Windows<'_>,
    (filters, calls): (usize, usize),
    passes: f64,
) {
    let (rows, cost) = (input.rows(), target.cost());
    base.set_rows(rows);
    let operator = server::cpu_operator_cost();
    let terms = (windows.keys.len() + windows.orders.len() + calls) as f64;
    let sorted = match windows.keys.len() + windows.orders.len() {
        0 => 0.0,
        _ => rows.max(2.0).log2() * operator * SORT_SHARE,
    };
    let startup = cost.startup
        + f64::from(input.pages()) * server::seq_page_cost() * 0.1
        + passes * input.tuples() * (1.0 + filters as f64) * operator * VECTOR_SHARE
        + rows * (terms * operator * SORT_SHARE + sorted);
    let each = server::cpu_tuple_cost() * 0.5 + cost.per_tuple;
    base.set_startup_cost(startup);
    base.set_total_cost(startup + rows * each);
}

/// The windows of a query. One order serves them if they have the same partitions, and the order keys of each are the
/// first ones of the longest list.
fn windows_of<'p>(
    root: PlannerInfo<'p>,
    query: Query<'p>,
    translator: &mut Translator,
) -> Translation<Windows<'p>> {
    let clauses = query.windowClause().iter();
    let all: Vec<_> = clauses.filter(|window| is_used(root, *window)).collect();
    let longest = all.iter().max_by_key(|window| window.orderClause().len());
    let longest = *longest.ok_or("no window")?;
    let (partitions, orders) = (longest.partitionClause(), longest.orderClause());
    for window in all {
        let has_same = starts_with(partitions, window.partitionClause())
            && starts_with(window.partitionClause(), partitions)
            && starts_with(orders, window.orderClause());
        if !has_same {
            return Err("windows of different partitions or orders".into());
        }
    }
    partition_keys(translator, longest, root.processed_tlist())?;
    let keys = directed(root, partitions)?;
    let order_keys = directed(root, orders)?;
    for key in &order_keys {
        OrderKey::of(translator, key)?;
    }
    Ok(Windows {
        keys,
        orders: order_keys,
        clauses: List::new(partitions.iter().chain(orders)),
        conditions: conditions(root),
    })
}

/// Whether a window has functions. PostgreSQL keeps clauses that no function refers to.
fn is_used<'p>(root: PlannerInfo<'p>, window: WindowClause<'p>) -> bool {
    let mut found = false;
    if let Some(targets) = root.processed_tlist().as_node() {
        walk::expression(targets, &mut |node, _| {
            let call = node.downcast::<WindowFunc<'p>>();
            found |= call.is_some_and(|call| call.winref() == window.winref());
            false
        });
    }
    found
}

/// Whether a list of clauses begins with another one.
fn starts_with<'p>(
    list: List<'p, SortGroupClause<'p>>,
    with: List<'p, SortGroupClause<'p>>,
) -> bool {
    let mut pairs = list.iter().zip(with);
    list.len() >= with.len() && pairs.all(|(a, b)| a.as_node().equals(b.as_node()))
}

/// The expressions of clauses, with the directions of their order.
fn directed<'p>(
    root: PlannerInfo<'p>,
    clauses: List<'p, SortGroupClause<'p>>,
) -> Translation<Vec<DirectedKey<'p>>> {
    let mut keys = Vec::new();
    for clause in clauses {
        let expression = clause.expr(root.processed_tlist());
        if expression.is_volatile() {
            return Err("a volatile expression".into());
        }
        let of_type = catalog::btree_family(expression.type_of());
        match ports::ordering_operator(clause.sortop()) {
            Some((is_descending, family)) if family == of_type => {
                keys.push(DirectedKey {
                    expression,
                    is_descending,
                    nulls_first: clause.nulls_first(),
                });
            }
            _ => return Err("an order other than that of the type".into()),
        }
    }
    Ok(keys)
}

/// A call with its frame. The order of its window is by some of these targets.
fn specify<'p>(
    query: Query<'p>,
    targets: List<'p, TargetEntry<'p>>,
    translator: &mut Translator,
    call: WindowFunc<'p>,
) -> Translation<Call> {
    let function = calls::function_of(call)?;
    if let Some(filter) = call.aggfilter() {
        translator.predicate(filter)?;
    }
    calls::wanted(translator, call, function)?;
    if matches!(function, Function::Offset(_)) && calls::default_of(call).is_none() {
        return Err("a default that is no constant".into());
    }
    let mut windows = query.windowClause().iter();
    let window = windows.find(|window| window.winref() == call.winref());
    let window = window.ok_or("no window")?;
    let orders = window.orderClause().iter();
    let orders: Vec<_> = orders.map(|clause| clause.expr(targets)).collect();
    Ok(Call {
        function,
        frame: calls::frame_of(window, &orders)?,
        order_keys: orders.len(),
    })
}

/// The conditions on results that the plan evaluates, beside what the path stores.
pub fn plan(planned: &Planned) {
    planned.scan.set_quals(copy_list(conditions(planned.root)));
}

/// The conditions on results that PostgreSQL leaves to the node.
pub fn conditions<'p>(root: PlannerInfo<'p>) -> List<'p, Expr<'p>> {
    let all = root.parse().map_or(List::EMPTY, Query::windowClause);
    let used = all.iter().filter(|window| is_used(root, *window));
    List::new(used.flat_map(|window| windows::run_conditions(window, root.processed_tlist())))
}
