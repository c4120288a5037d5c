//! Offers `LanesNestedAggregate`: an aggregation of a sub-select that `LanesAggregate` or `LanesWindow` computes.

use pgrx::pg_sys;

use super::outputs::Outputs;
use super::state::NestedState;
use crate::custom_scan::{callbacks, stand_in};
use crate::expressions::aggregate_call;
use crate::expressions::lanes_aggregate::Arrival;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::nodes::aggregate;
use crate::nodes::aggregate::offer::ungrouped_columns;
use crate::nodes::aggregate::state::AggregateState;
use crate::nodes::engine::plan::{Joined, engine_private};
use crate::nodes::window::partitioned;
use crate::nodes::window::state::WindowState;
use crate::pg::{nodes, ports, tree};
use crate::planner::quals::VECTOR_SHARE;

/// The operator `=` of texts.
const TEXT_EQUALITY: pg_sys::Oid = pg_sys::Oid::from_u32(pg_sys::TextEqualOperator);

/// The aggregation of a sub-select, or its window functions, while it is planned.
struct Below {
    /// The path of the sub-select in the query above.
    scan: *mut pg_sys::Path,
    aggregation: *mut pg_sys::CustomPath,
    root: *mut pg_sys::PlannerInfo,
    /// Whether it returns rows with window functions.
    is_window: bool,
}

impl Below {
    /// The cheapest path of a sub-select whose rows are the groups of a node of this extension.
    ///
    /// # Safety
    /// The planner's structures are live.
    unsafe fn of(root: *mut pg_sys::PlannerInfo, input: *mut pg_sys::RelOptInfo) -> Option<Below> {
        // SAFETY: the planner's structures are live; casts follow tags.
        unsafe {
            let is_alone = (*input).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
                && (*input).rtekind == pg_sys::RTEKind::RTE_SUBQUERY
                && !(*input).subroot.is_null();
            if !is_alone {
                return None;
            }
            let entry = *(*root).simple_rte_array.add((*input).relid as usize);
            let is_plain = (*input).lateral_relids.is_null()
                && (*input).baserestrictinfo.is_null()
                && !(*entry).inh;
            let paths = nodes::list::<pg_sys::Path>((*input).pathlist).filter_map(|path| {
                // The engine evaluates grouping expressions above it itself.
                let path = match (*path).type_ {
                    pg_sys::NodeTag::T_ProjectionPath => {
                        (*path.cast::<pg_sys::ProjectionPath>()).subpath
                    }
                    _ => path,
                };
                if (*path).type_ != pg_sys::NodeTag::T_SubqueryScanPath
                    || !(*path).param_info.is_null()
                {
                    return None;
                }
                let below = (*path.cast::<pg_sys::SubqueryScanPath>()).subpath;
                let is_window = is_window(below);
                (is_window || is_groups(below)).then_some(Below {
                    scan: path,
                    aggregation: below.cast(),
                    root: (*input).subroot,
                    is_window,
                })
            });
            let cost = |below: &Below| (*below.scan).total_cost;
            paths
                .filter(|_| is_plain)
                .min_by(|a, b| cost(a).total_cmp(&cost(b)))
        }
    }

    /// A list that the path stores.
    unsafe fn stored(&self, part: i32) -> *mut pg_sys::List {
        // SAFETY: `engine_private` made the path's lists.
        unsafe { ports::list_nth((*self.aggregation).custom_private, part) }
    }

    /// How many keys and aggregates there are. The texts of a window are keys, its other columns and its functions count
    /// as aggregates.
    unsafe fn counts(&self) -> (usize, usize) {
        // SAFETY: `engine_private` made the path's lists, or those of a window.
        let numbers = unsafe { nodes::integers_of(ports::list_nth(self.stored(0), 0)) };
        match self.is_window {
            true => {
                // SAFETY: the path's list is live.
                let entries = unsafe { nodes::list::<pg_sys::TargetEntry>(self.stored(2)) };
                // SAFETY: as above.
                let entries = entries.map(|entry| unsafe { (*entry).expr.cast() });
                let count = partitioned::plan::entries(&numbers);
                let columns = entries.take(partitioned::plan::columns(&numbers));
                let keys = partitioned::plan::text_columns(columns);
                (keys, count - keys)
            }
            false => (numbers[0] as usize, numbers[1] as usize),
        }
    }

    /// The columns of the sub-select.
    unsafe fn outputs(&self, index: u32) -> Outputs {
        // SAFETY: `engine_private` made the path's lists.
        unsafe {
            let (keys, calls) = self.counts();
            let entries = nodes::list::<pg_sys::TargetEntry>(self.stored(2));
            let entries: Vec<_> = entries
                .take(keys + calls)
                .map(|entry| (*entry).expr.cast::<pg_sys::Node>())
                .collect();
            let list = (*(*self.aggregation).path.pathtarget).exprs;
            Outputs::of_path(index, list, &entries, keys)
        }
    }

    /// The operator that makes the values of a key distinct.
    unsafe fn equality(&self, key: usize) -> pg_sys::Oid {
        if self.is_window {
            return TEXT_EQUALITY;
        }
        // SAFETY: the keys are in the order of these clauses.
        unsafe {
            let query = (*self.root).parse;
            let clauses = match (*query).groupClause.is_null() {
                true => (*query).distinctClause,
                false => (*query).groupClause,
            };
            let clause: *mut pg_sys::SortGroupClause = ports::list_nth(clauses, key as i32);
            (*clause).eqop
        }
    }

    /// The conditions of HAVING, or those on results of window functions.
    unsafe fn having(&self) -> *mut pg_sys::List {
        // SAFETY: the planner's structures are live.
        unsafe {
            match self.is_window {
                true => partitioned::offer::conditions(self.root),
                false => (*(*self.root).parse).havingQual.cast(),
            }
        }
    }
}

/// Whether a path returns the groups of a node of this extension.
unsafe fn is_groups(path: *mut pg_sys::Path) -> bool {
    // SAFETY: the planner's paths are live.
    unsafe {
        let is_nested = || callbacks::path_of::<NestedState>(path).is_some();
        callbacks::path_of::<AggregateState>(path).is_some() || is_nested()
    }
}

/// Whether a path returns rows with SQL's own window functions.
unsafe fn is_window(path: *mut pg_sys::Path) -> bool {
    // SAFETY: the planner's paths are live; the path stores what a window's plan consists of.
    unsafe {
        callbacks::path_of::<WindowState>(path).is_some_and(|path| {
            let stored = ports::list_nth::<pg_sys::List>((*path).custom_private, 0);
            let numbers = nodes::integers_of(ports::list_nth(stored, 0));
            numbers.first() == Some(&partitioned::plan::PARTITIONED)
        })
    }
}

/// Offers to aggregate the groups of a sub-select. Nothing happens if the relation is no such sub-select.
///
/// # Errors
/// The reason why the node cannot aggregate them.
///
/// # Safety
/// The planner's structures are live.
pub unsafe fn offer(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
) -> Translation<()> {
    // SAFETY: the planner's structures are live.
    unsafe {
        let Some(below) = Below::of(root, input) else {
            return Ok(());
        };
        let query = (*root).parse;
        if !(*query).groupingSets.is_null() || (*query).hasTargetSRFs {
            return Err("grouping sets, or a set-returning function".into());
        }
        let index = (*input).relid;
        let outputs = below.outputs(index);
        let mut translator = Translator::of_other_table(Scalars::Unknown);
        having(&below, index, &mut translator)?;
        let target = (*root).upper_targets[pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG as usize];
        let keys = keys(root, &below, &outputs, &mut translator)?;
        let mut calls = std::ptr::null_mut();
        for leaf in aggregate::offer::leaves((*target).exprs, (*query).havingQual) {
            if (*leaf).type_ == pg_sys::NodeTag::T_Aggref {
                let call = outputs.over_entries(leaf)?;
                aggregate_call::aggregate(
                    &mut translator,
                    crate::pg::tree::plan_node(call.cast()),
                    Arrival::Any,
                )?;
                calls = pg_sys::list_append_unique(calls, leaf.cast());
            }
        }
        outputs.check(&translator.attributes())?;
        ungrouped_columns((*target).exprs.cast(), keys)?;
        ungrouped_columns((*query).havingQual, keys)?;

        let path = callbacks::path::<NestedState>(output, target);
        let stand_in = stand_in::path(output).ok_or("no other plan")?;
        let base = &mut (*path).path;
        // As PostgreSQL's own path: of two paths with about equal costs, the planner keeps the parallel-safe one.
        base.parallel_safe = (*output).consider_parallel
            && (*below.scan).parallel_safe
            && !stand_in::has_workers(stand_in);
        base.rows = (*stand_in).rows;
        let work = ports::list_length(keys) + ports::list_length(calls);
        let per_row = f64::from(work.max(1)) * pg_sys::cpu_operator_cost * VECTOR_SHARE;
        let groups = &(*below.aggregation).path;
        base.startup_cost = groups.startup_cost + groups.rows * per_row + (*target).cost.startup;
        base.total_cost = base.startup_cost
            + base.rows * (pg_sys::cpu_tuple_cost * 0.5 + (*target).cost.per_tuple);
        (*path).custom_paths = tree::list(&[below.scan, stand_in]);
        let quals = std::ptr::null_mut();
        (*path).custom_private = engine_private(index, keys, calls, quals, Joined::No, true, None);
        pg_sys::add_path(output, path.cast());
        Ok(())
    }
}

/// Refuses conditions of HAVING below that the engine cannot evaluate.
unsafe fn having(below: &Below, index: u32, translator: &mut Translator) -> Translation<()> {
    // SAFETY: the planner's structures are live.
    unsafe {
        let (keys, calls) = below.counts();
        let entries = nodes::list::<pg_sys::TargetEntry>(below.stored(2)).take(keys + calls);
        let entries: Vec<_> = entries.map(|entry| (*entry).expr.cast()).collect();
        let conditions = Outputs::of_path(index, below.having(), &entries, keys);
        for condition in conditions.columns() {
            translator.predicate(crate::pg::tree::plan_node((*condition).cast()))?;
        }
        Ok(())
    }
}

/// The grouping expressions.
unsafe fn keys(
    root: *mut pg_sys::PlannerInfo,
    below: &Below,
    outputs: &Outputs,
    translator: &mut Translator,
) -> Translation<*mut pg_sys::List> {
    // SAFETY: the planner's structures are live.
    unsafe {
        let mut keys = std::ptr::null_mut();
        for clause in nodes::list::<pg_sys::SortGroupClause>((*(*root).parse).groupClause) {
            let expression = pg_sys::get_sortgroupclause_expr(clause, (*root).processed_tlist);
            keys = pg_sys::lappend(keys, expression.cast());
            match outputs.key_of(expression) {
                Some(key) if below.equality(key) != (*clause).eqop => {
                    return Err("GROUP BY with two ideas of what is equal".into());
                }
                Some(_) => {}
                None => {
                    let expression = outputs.over_entries(expression)?;
                    aggregate_call::key(translator, crate::pg::tree::plan_node(expression.cast()))?;
                }
            }
        }
        Ok(keys)
    }
}
