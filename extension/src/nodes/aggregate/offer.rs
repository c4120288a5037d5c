//! Offers `LanesAggregate`: the groups of a table, or of a join.

use pgrx::pg_sys;

use super::state::AggregateState;
use crate::custom_scan::{callbacks, stand_in};
use crate::expressions::aggregate_call;
use crate::expressions::lanes_aggregate::Arrival;
use crate::expressions::translate::{Scalars, Translation, Translator};
use crate::joins::by_key::sides::{HashJoin, Sides, sides_of_path};
use crate::joins::by_key::{conditions, equal_columns};
use crate::joins::by_time::find::TimeJoin;
use crate::nodes::engine::group_order::{self, GroupOrder};
use crate::nodes::engine::plan::{self, Joined};
use crate::nodes::hash_join;
use crate::nodes::time_join::offer::{JOIN_SHARE, fits_memory};
use crate::pg::tree::{View, plan_field, plan_node};
use crate::pg::{nodes, ports, tree};
use crate::planner;
use crate::planner::quals::{VECTOR_SHARE, quals};

/// Grouping joined rows by vectors costs at most this share of returning them. Where few rows are expected, the costs are
/// too close to distinguish plans, and usually many more rows come.
const LESS_THAN_ROWS: f64 = 0.95;

/// Bytes of a group besides its keys and results, roughly.
const GROUP_BYTES: f64 = 32.0;

/// The cost of rows in temporary files, which are written and read once, if so many bytes of groups do not fit into
/// memory.
unsafe fn waiting_cost(groups: f64, rows: f64) -> f64 {
    // SAFETY: reads settings of the session.
    unsafe {
        let limit = pg_sys::get_hash_memory_limit() as f64;
        let share = (1.0 - limit / groups.max(1.0)).max(0.0);
        2.0 * share * rows / f64::from(pg_sys::BLCKSZ) * pg_sys::seq_page_cost
    }
}

/// The cost of the rows of a hash join, if `LanesHashJoin` is the cheapest way to return them.
unsafe fn rows_cost(sides: &Sides) -> Option<f64> {
    // SAFETY: the planner's structures are live; the cast follows the tag.
    unsafe {
        let mut path = (*sides.joined).cheapest_total_path;
        let cost = (!path.is_null()).then(|| (*path).total_cost)?;
        while (*path).type_ == pg_sys::NodeTag::T_ProjectionPath {
            path = (*path.cast::<pg_sys::ProjectionPath>()).subpath;
        }
        sides_of_path(path).map(|_| cost)
    }
}

/// Offers to aggregate a table, or its join by time, or its hash join.
///
/// # Safety
/// The planner's structures are live: a table, and the relation of groups or of distinct rows.
///
/// # Errors
/// The reason why the node cannot aggregate them.
pub unsafe fn offer(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    join: Option<&TimeJoin>,
    hash_join: Option<&mut HashJoin>,
    output: *mut pg_sys::RelOptInfo,
    stage: pg_sys::UpperRelationKind::Type,
) -> Translation<()> {
    // SAFETY: the planner's structures are live.
    unsafe {
        check(root, input)?;
        let query = (*root).parse;
        let index = (*input).relid;
        let target = (*root).upper_targets[stage as usize];
        let leaves = leaves((*target).exprs, (*query).havingQual);
        let grouped = grouped(root, stage);
        // The expressions that the engine groups by.
        let mut evaluated: Vec<_> = grouped.iter().map(|(_, expression)| *expression).collect();
        let mut codes = 0;
        let hash_join = match hash_join {
            None => None,
            Some(join) => {
                codes = want_all(join, &grouped, &mut evaluated, &leaves)?;
                Some(&*join)
            }
        };
        let mut translator = translator(join, hash_join, &leaves, index, codes)?;
        let filters = filters(root, input, join.is_some(), &mut translator)?;
        if let Some(join) = join {
            join.plan.check(&mut translator)?;
            for qual in &join.quals {
                translator.predicate(crate::pg::tree::plan_node((*qual).cast()))?;
            }
        }
        let (mut keys, mut shapes) = (std::ptr::null_mut(), Vec::new());
        for ((_, expression), evaluated) in grouped.iter().zip(&evaluated) {
            let is_small = hash_join.is_some_and(|join| join.plan.is_small(*evaluated));
            shapes.push(match is_small {
                true => None,
                false => Some(
                    aggregate_call::key(
                        &mut translator,
                        crate::pg::tree::plan_node((*evaluated).cast()),
                    )?
                    .1,
                ),
            });
            keys = pg_sys::lappend(keys, expression.cast());
        }
        let expressions: Vec<_> = nodes::list::<pg_sys::Node>(keys).collect();
        let order = GroupOrder::wanted(root, &expressions, &shapes);
        let (calls, keeps_values) = calls(&mut translator, &leaves)?;
        ungrouped_columns((*target).exprs.cast(), keys)?;
        ungrouped_columns((*query).havingQual, keys)?;

        let path = callbacks::path::<AggregateState>(output, target);
        (*path).custom_paths = match (join, hash_join) {
            (_, Some(join)) => hash_join::offer::small_paths(root, join),
            (Some(join), None) => tree::list(&[join.path]),
            (None, None) => std::ptr::null_mut(),
        };
        let input = Input {
            root,
            relation: input,
            join,
            hash_join,
        };
        let terms = ports::list_length(keys) + ports::list_length(calls);
        input.estimate(path, output, filters, terms);
        // Without keys there is one group, which is small unless an aggregate keeps its values.
        let stand_in = match keys.is_null() && input.is_divisible() && !keeps_values {
            true => None,
            false => stand_in::path(output),
        };
        let stand_in = match (stand_in, order) {
            (Some(path), Some((_, order))) => Some(group_order::in_order(root, path, order)),
            (stand_in, _) => stand_in,
        };
        if stand_in.is_none() && (!input.is_divisible() || keeps_values) {
            return Err("no other plan".into());
        }
        if let Some(stand_in) = stand_in {
            (*path).path.parallel_safe &= !stand_in::has_workers(stand_in);
            (*path).custom_paths = pg_sys::lappend((*path).custom_paths, stand_in.cast());
        }
        let has_stand_in = stand_in.is_some();
        (*path).path.pathkeys = order.map_or(std::ptr::null_mut(), |(_, keys)| keys);
        let order = order.map(|(order, _)| order);
        let below = match (join, hash_join) {
            (_, Some(join)) => Joined::ByHash(&join.plan, tree::list(&evaluated)),
            (Some(join), None) => Joined::ByTime(join),
            (None, None) => Joined::No,
        };
        (*path).custom_private =
            plan::engine_private(index, keys, calls, filters, below, has_stand_in, order);
        pg_sys::add_path(output, path.cast());
        Ok(())
    }
}

/// Refuses queries that no groups of the engine answer.
unsafe fn check(root: *mut pg_sys::PlannerInfo, input: *mut pg_sys::RelOptInfo) -> Translation<()> {
    // SAFETY: the planner's structures are live.
    unsafe {
        if !(*(*root).parse).groupingSets.is_null() {
            return Err("grouping sets".into());
        }
        if (*(*root).parse).hasTargetSRFs {
            return Err("a set-returning function".into());
        }
        if !(*input).lateral_relids.is_null() {
            return Err("a lateral reference".into());
        }
        Ok(())
    }
}

/// A grouping expression with its clause.
type Grouped = (*mut pg_sys::SortGroupClause, *mut pg_sys::Node);

/// The grouping expressions of a query, or the ones that its distinct rows are distinct by.
unsafe fn grouped(
    root: *mut pg_sys::PlannerInfo,
    stage: pg_sys::UpperRelationKind::Type,
) -> Vec<Grouped> {
    // SAFETY: the planner's structures are live.
    unsafe {
        let query = (*root).parse;
        let clauses = if stage == pg_sys::UpperRelationKind::UPPERREL_DISTINCT {
            (*query).distinctClause
        } else {
            (*query).groupClause
        };
        nodes::list::<pg_sys::SortGroupClause>(clauses)
            .map(|clause| {
                let expression = pg_sys::get_sortgroupclause_expr(clause, (*root).processed_tlist);
                (clause, expression)
            })
            .collect()
    }
}

/// Adds what the groups and aggregates need to a hash join. Returns how many grouping expressions are of a small side;
/// `evaluated` are then the expressions that the engine groups by.
unsafe fn want_all(
    join: &mut HashJoin,
    grouped: &[Grouped],
    evaluated: &mut [*mut pg_sys::Node],
    leaves: &[*mut pg_sys::Node],
) -> Translation<usize> {
    let mut codes = 0;
    // SAFETY: the planner's structures are live.
    unsafe {
        for ((clause, expression), evaluated) in grouped.iter().zip(evaluated) {
            if let Some(key) = equal_columns::instead(join, *expression) {
                *evaluated = key;
            }
            join.want(*evaluated)?;
            if join.plan.is_small(*evaluated) {
                hash_join::offer::check_group(*clause, *evaluated)?;
                join.plan.dimension_of(*evaluated)?;
                codes += 1;
            }
        }
        // Columns outside of aggregates are in grouping expressions, which `ungrouped_columns` checks.
        for &leaf in leaves.iter().filter(|leaf| !is_column(**leaf)) {
            join.want(leaf)?;
        }
    }
    Ok(codes)
}

/// The translator of the expressions over a table or a join.
unsafe fn translator(
    join: Option<&TimeJoin>,
    hash_join: Option<&HashJoin>,
    leaves: &[*mut pg_sys::Node],
    index: u32,
    codes: usize,
) -> Translation<Translator> {
    // SAFETY: the planner's structures are live; the cast follows the tag.
    unsafe {
        Ok(match (join, hash_join) {
            (Some(join), _) => {
                fits_memory(join)?;
                Translator::of_joined(Scalars::Unknown, join.plan.joined_columns(index))
            }
            (None, Some(join)) => {
                let calls = leaves.iter().copied();
                let calls = calls.filter(|leaf| (**leaf).type_ == pg_sys::NodeTag::T_Aggref);
                let conditions = conditions::of_filters(&join.plan, calls.map(|leaf| leaf.cast()));
                Translator::of_joined(Scalars::Unknown, join.plan.joined_columns(codes))
                    .with_conditions(&conditions)
            }
            (None, None) => Translator::new(Scalars::Unknown),
        })
    }
}

/// The conditions on a table, all of which the engine can check.
unsafe fn filters(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    is_joined_by_time: bool,
    translator: &mut Translator,
) -> Translation<*mut pg_sys::List> {
    let mut filters = std::ptr::null_mut();
    // SAFETY: the planner's structures are live.
    unsafe {
        for qual in quals(plan_node(root), plan_node(input))
            .into_iter()
            .map(View::as_ptr)
        {
            if (*qual).pseudoconstant {
                return Err("a qual without columns".into());
            }
            if is_joined_by_time && (*qual).security_level > 0 {
                return Err("a join behind a security barrier".into());
            }
            let clause = (*qual).clause.cast::<pg_sys::Node>();
            translator.predicate(plan_node(clause.cast()))?;
            filters = pg_sys::lappend(filters, clause.cast());
        }
    }
    Ok(filters)
}

/// The aggregates among the leaves, each once, and whether one of them keeps its values.
unsafe fn calls(
    translator: &mut Translator,
    leaves: &[*mut pg_sys::Node],
) -> Translation<(*mut pg_sys::List, bool)> {
    let (mut calls, mut keeps_values) = (std::ptr::null_mut(), false);
    // SAFETY: the planner's expressions are live; the casts follow the tag.
    unsafe {
        for &leaf in leaves {
            if (*leaf).type_ == pg_sys::NodeTag::T_Aggref {
                keeps_values |= aggregate_call::keeps_values(plan_node(leaf.cast()));
                aggregate_call::aggregate(translator, plan_node(leaf.cast()), Arrival::InOrder)?;
                calls = pg_sys::list_append_unique(calls, leaf.cast());
            }
        }
    }
    Ok((calls, keeps_values))
}

/// What is aggregated: a table, or its join by time, or its hash join.
struct Input<'a> {
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    join: Option<&'a TimeJoin>,
    hash_join: Option<&'a HashJoin>,
}

impl Input<'_> {
    /// Whether it can be divided if its groups are too large for the memory limit. A join by time cannot.
    fn is_divisible(&self) -> bool {
        self.join.is_none() && self.hash_join.is_none_or(|join| join.plan.is_divisible())
    }

    /// Estimates the rows and the cost of a path, whose children are the small sides of a hash join, if there is one. Each
    /// row costs the evaluation of so many terms: keys and aggregates.
    unsafe fn estimate(
        &self,
        path: *mut pg_sys::CustomPath,
        output: *mut pg_sys::RelOptInfo,
        filters: *mut pg_sys::List,
        terms: i32,
    ) {
        let (root, input) = (self.root, self.relation);
        // SAFETY: the planner's structures are live.
        unsafe {
            let base = &mut (*path).path;
            base.parallel_safe =
                self.join.is_none() && self.hash_join.is_none() && (*output).consider_parallel;
            base.rows = nodes::list::<pg_sys::Path>((*output).pathlist)
                .next()
                .map_or(1.0, |path| (*path).rows);
            let per_row =
                |work: i32| f64::from(work.max(1)) * pg_sys::cpu_operator_cost * VECTOR_SHARE;
            let grouping = |rows: f64| rows * per_row(terms);
            let read = match self.hash_join {
                Some(join) => {
                    let rows = (*join.sides.joined).rows;
                    let cost = hash_join::offer::Cost::of(root, join, rows, filters);
                    hash_join::offer::total_cost((*path).custom_paths)
                        + cost.build
                        + cost.reading
                        + grouping(rows)
                }
                None => {
                    // Keys and aggregates see only rows that pass the conditions.
                    let share = planner::selectivity::of(
                        plan_node(root),
                        plan_node(input),
                        plan_field(filters),
                    );
                    let filtering = (*input).tuples * share * per_row(ports::list_length(filters));
                    let pages = f64::from((*input).pages) * share;
                    let reading = pages * pg_sys::seq_page_cost * 0.1 + filtering;
                    let by_time = self.join.map_or(0.0, |join| {
                        (join.right_rows + (*input).tuples) * pg_sys::cpu_operator_cost * JOIN_SHARE
                    });
                    let group = f64::from((*base.pathtarget).width) + GROUP_BYTES;
                    let row = f64::from((*(*input).reltarget).width);
                    let waiting = waiting_cost(base.rows * group, (*input).rows * row);
                    reading + by_time + grouping((*input).rows) + waiting
                }
            };
            let target = &*base.pathtarget;
            base.startup_cost = read + target.cost.startup;
            base.total_cost = base.startup_cost
                + base.rows * (pg_sys::cpu_tuple_cost * 0.5 + target.cost.per_tuple);
            if let Some(join) = self.hash_join
                && let Some(handed_over) = rows_cost(&join.sides)
            {
                let less = handed_over * LESS_THAN_ROWS;
                base.startup_cost = base.startup_cost.min(less);
                base.total_cost = base.total_cost.min(less);
            }
        }
    }
}

/// The columns and aggregates of a target list and of HAVING.
///
/// # Safety
/// The planner's expressions are live or null.
pub unsafe fn leaves(
    target: *mut pg_sys::List,
    having: *mut pg_sys::Node,
) -> Vec<*mut pg_sys::Node> {
    // SAFETY: the planner's expressions are live.
    unsafe {
        let leaves = pg_sys::pull_var_clause(target.cast(), LEAVES);
        let leaves = pg_sys::list_concat(leaves, pg_sys::pull_var_clause(having, LEAVES));
        nodes::list(leaves).collect()
    }
}

/// Whether a leaf is a column.
unsafe fn is_column(leaf: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller has a live expression.
    unsafe { (*leaf).type_ == pg_sys::NodeTag::T_Var }
}

/// `pull_var_clause` returns aggregates as a whole.
const LEAVES: i32 = (pg_sys::PVC_INCLUDE_AGGREGATES
    | pg_sys::PVC_RECURSE_WINDOWFUNCS
    | pg_sys::PVC_INCLUDE_PLACEHOLDERS) as i32;

/// Refuses columns outside of aggregates that are no grouping expressions. Such a column depends functionally on one.
///
/// # Safety
/// The planner's expressions are live or null.
///
/// # Errors
/// There is such a column.
pub unsafe fn ungrouped_columns(
    node: *mut pg_sys::Node,
    keys: *mut pg_sys::List,
) -> Translation<()> {
    // A comparison may raise an ERROR, which a visitor must not. So candidates are collected first, and compared then.
    let (mut grouped, mut is_found) = (Vec::new(), false);
    // SAFETY: the planner's expressions are live; the copy is not used.
    unsafe {
        let tags: Vec<_> = nodes::list::<pg_sys::Node>(keys)
            .map(|key| (*key).type_)
            .collect();
        tree::walk_expression(node, &mut |node, _| {
            if tags.contains(&(*node).type_) {
                grouped.push(node);
            }
            false
        });
        grouped.retain(|node| pg_sys::list_member(keys, node.cast()));
        tree::replaced(node, &mut |node| {
            let is_column = matches!(
                (*node).type_,
                pg_sys::NodeTag::T_Var
                    | pg_sys::NodeTag::T_PlaceHolderVar
                    | pg_sys::NodeTag::T_GroupingFunc
            );
            let is_settled = (*node).type_ == pg_sys::NodeTag::T_Aggref || grouped.contains(&node);
            is_found |= is_column && !is_settled;
            (is_column || is_settled).then_some(node)
        });
    }
    if is_found {
        return Err("a column that depends on a grouping column".into());
    }
    Ok(())
}
