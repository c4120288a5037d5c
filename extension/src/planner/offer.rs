//! The planner's hooks: where vectorised paths are offered.
//!
//! Both hooks do nothing in a moment for relations that are not lanes tables, and always call the hook before them. The
//! first one also gives the function of a metric's view the conditions on labels ([`narrow`]).

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::require::{self, About};
use super::selectivity;
use crate::custom_scan::node;
use crate::expressions::translate::{Scalars, Translator};
use crate::labels::narrow;
use crate::nodes::hash_join::sides::Sides;
use crate::nodes::scan::state::ScanState;
use crate::nodes::time_join::find::TimeJoin;
use crate::nodes::{aggregate, hash_join, latest, nested_aggregate, top_n, window};
use crate::pg::{executor, nodes, ports, tree};
use crate::table_am::routine;
use crate::vectorize::{self, Vectorize};

static mut PREVIOUS_RELATION: pg_sys::set_rel_pathlist_hook_type = None;
static mut PREVIOUS_UPPER: pg_sys::create_upper_paths_hook_type = None;

/// Cost of a qual or an aggregate for one row, in units of `cpu_operator_cost`: a vector takes about a thirtieth of
/// what the row-by-row executor takes.
pub const VECTOR_SHARE: f64 = 1.0 / 30.0;

/// Installs the hooks.
pub fn register() {
    // SAFETY: single-threaded, once a process.
    unsafe {
        PREVIOUS_RELATION = pg_sys::set_rel_pathlist_hook;
        pg_sys::set_rel_pathlist_hook = Some(relation_hook);
        PREVIOUS_UPPER = pg_sys::create_upper_paths_hook;
        pg_sys::create_upper_paths_hook = Some(upper_hook);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_hook(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    index: pg_sys::Index,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the planner's live structures.
    unsafe {
        if let Some(previous) = PREVIOUS_RELATION {
            previous(root, relation, index, entry);
        }
        narrow::narrow(relation, entry);
        if vectorize::vectorize() != Vectorize::Off && is_lanes_scan(relation, entry) {
            offer_scan(root, relation);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn upper_hook(
    root: *mut pg_sys::PlannerInfo,
    stage: pg_sys::UpperRelationKind::Type,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
    extra: *mut std::ffi::c_void,
) {
    // SAFETY: the planner's live structures.
    unsafe {
        if let Some(previous) = PREVIOUS_UPPER {
            previous(root, stage, input, output, extra);
        }
        if vectorize::vectorize() == Vectorize::Off {
            return;
        }
        if stage == pg_sys::UpperRelationKind::UPPERREL_DISTINCT {
            offer_distinct(root, input, output);
            return;
        }
        if stage == pg_sys::UpperRelationKind::UPPERREL_WINDOW {
            offer_window(root, input, output);
            return;
        }
        if stage != pg_sys::UpperRelationKind::UPPERREL_GROUP_AGG {
            return;
        }
        if let Some(index) = only_relation(input) {
            let entry = *(*root).simple_rte_array.add(index as usize);
            if !is_lanes_scan(input, entry) {
                // The sub-select is vectorised all the same; its rows are handed over.
                if let Err(reason) = nested_aggregate::offer::offer(root, input, output) {
                    pgrx::debug1!("nested aggregation: {reason}");
                }
                return;
            }
            if let Err(reason) = aggregate::offer::offer(root, input, None, None, output, stage) {
                require::note(root, index, About::Use, format!("aggregation: {reason}"));
            }
        } else if let Some(join) = TimeJoin::of(root, input) {
            let offered = join.and_then(|join| {
                let left = join.left_relation;
                aggregate::offer::offer(root, left, Some(&join), None, output, stage)
            });
            if let Err(reason) = offered {
                for table in joined_tables(root, input) {
                    require::note(root, table, About::Use, format!("join by time: {reason}"));
                }
            }
        } else if pg_sys::enable_hashjoin
            && let Some(sides) = Sides::of_joined(root, input)
        {
            let lanes = sides.lanes;
            let offered = sides.join(root).and_then(|mut join| {
                aggregate::offer::offer(root, lanes, None, Some(&mut join), output, stage)
            });
            if let Err(reason) = offered {
                let index = (*lanes).relid;
                require::note(root, index, About::Use, format!("hash join: {reason}"));
            }
        }
    }
}

/// Offers what gives the distinct rows of a table, or of one joined with something smaller: its groups, or for DISTINCT
/// ON the first row of each.
unsafe fn offer_distinct(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the planner's live structures.
    unsafe {
        let query = &*(*root).parse;
        if query.hasAggs || query.hasWindowFuncs || !query.groupClause.is_null() {
            // What is distinct are no rows of the table.
            return;
        }
        let stage = pg_sys::UpperRelationKind::UPPERREL_DISTINCT;
        let (index, offered) = if let Some(index) = only_relation(input) {
            let entry = *(*root).simple_rte_array.add(index as usize);
            if !is_lanes_scan(input, entry) {
                return;
            }
            let offered = match query.hasDistinctOn {
                true => latest::plan::offer(root, input, output),
                false => aggregate::offer::offer(root, input, None, None, output, stage),
            };
            (index, offered)
        } else if pg_sys::enable_hashjoin
            && let Some(sides) = Sides::of_joined(root, input)
        {
            let lanes = sides.lanes;
            let grouped = |mut join| {
                aggregate::offer::offer(root, lanes, None, Some(&mut join), output, stage)
            };
            let offered = match query.hasDistinctOn {
                true => hash_join::latest_plan::offer(root, sides, output),
                false => sides.join(root).and_then(grouped),
            };
            ((*lanes).relid, offered)
        } else {
            return;
        };
        if let Err(reason) = offered {
            require::note(root, index, About::Use, format!("distinct: {reason}"));
        }
    }
}

/// Offers what gives the rows of a table with this extension's window functions.
unsafe fn offer_window(
    root: *mut pg_sys::PlannerInfo,
    input: *mut pg_sys::RelOptInfo,
    output: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the planner's live structures.
    unsafe {
        let Some(index) = only_relation(input) else {
            return;
        };
        let entry = *(*root).simple_rte_array.add(index as usize);
        if !is_lanes_scan(input, entry) {
            return;
        }
        if let Err(reason) = window::plan::offer(root, input, output) {
            require::note(root, index, About::Use, format!("window: {reason}"));
        }
    }
}

/// The tables of a join, by their range-table indexes.
unsafe fn joined_tables(
    root: *mut pg_sys::PlannerInfo,
    joined: *mut pg_sys::RelOptInfo,
) -> Vec<u32> {
    // SAFETY: the planner's live structures.
    unsafe {
        let mut tables = Vec::new();
        let mut index = -1;
        loop {
            index = pg_sys::bms_next_member((*joined).relids, index);
            if index < 0 {
                return tables;
            }
            let entry = *(*root).simple_rte_array.add(index as usize);
            if (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
                tables.push(index as u32);
            }
        }
    }
}

/// The range-table index of a relation that is no join.
unsafe fn only_relation(relation: *mut pg_sys::RelOptInfo) -> Option<u32> {
    // SAFETY: a live relation of the planner's.
    unsafe {
        let kind = (*relation).reloptkind;
        (kind == pg_sys::RelOptKind::RELOPT_BASEREL && (*relation).relid > 0)
            .then_some((*relation).relid)
    }
}

/// Whether a relation of a query is a lanes table to be scanned, one without children.
pub unsafe fn is_lanes_scan(
    relation: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) -> bool {
    // SAFETY: the planner's live structures.
    unsafe {
        if entry.is_null()
            || (*entry).rtekind != pg_sys::RTEKind::RTE_RELATION
            || (*entry).inh
            || !(*entry).tablesample.is_null()
            || (*entry).relkind as u8 != pg_sys::RELKIND_RELATION
                && (*entry).relkind as u8 != pg_sys::RELKIND_MATVIEW
            || (*relation).pathlist.is_null()
        {
            return false;
        }
        is_lanes_table((*entry).relid)
    }
}

/// Whether a table, which is locked, is one of ours.
pub unsafe fn is_lanes_table(table: pg_sys::Oid) -> bool {
    // SAFETY: the planner has locked the table.
    unsafe {
        let opened = pg_sys::RelationIdGetRelation(table);
        if opened.is_null() {
            return false;
        }
        let ours = std::ptr::eq((*opened).rd_tableam, routine::routine());
        pg_sys::RelationClose(opened);
        ours
    }
}

/// Quals in the order in which they are to be evaluated, which is that of the planner's `order_qual_clauses`: by
/// security level, then by cost, then as written; but of one level the engine's own go first, as they cost far less
/// than those that PostgreSQL evaluates, by rows or [by values](crate::expressions::value_quals).
pub unsafe fn quals(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
) -> Vec<*mut pg_sys::RestrictInfo> {
    // SAFETY: the planner's live structures.
    unsafe {
        let known: *mut pg_sys::List = ports::list_nth(known_of(root, relation), 0);
        nodes::list(known).collect()
    }
}

/// Whether all quals of a lanes table are the engine's.
///
/// # Safety
/// The planner's live structures.
pub unsafe fn has_vector_quals(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let known: *mut pg_sys::List = ports::list_nth(known_of(root, relation), 1);
        nodes::integers_of(known)[0] != 0
    }
}

/// What is known of the quals of a lanes table: their list in order, and whether all are the
/// engine's. Each join with the table asks for it, so it is found out once a plan. It is kept where a
/// foreign table would keep something of its own: no lanes table is one.
unsafe fn known_of(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
) -> *mut pg_sys::List {
    // SAFETY: the caller has the planner's live structures, which live as long as the relation.
    unsafe {
        if (*relation).fdw_private.is_null() {
            let quals = ordered_quals(root, relation);
            let mut translator = Translator::new(Scalars::Unknown);
            let are_vectorised = quals.iter().all(|qual| {
                !(**qual).pseudoconstant && translator.predicate((**qual).clause.cast()).is_ok()
            });
            // The current context may be one that a search for an order of joins empties.
            let known = executor::in_context((*root).planner_cxt, || {
                let flag = nodes::integers(&[i32::from(are_vectorised)]);
                tree::list(&[tree::list(&quals), flag])
            });
            (*relation).fdw_private = known.cast();
        }
        (*relation).fdw_private.cast()
    }
}

unsafe fn ordered_quals(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
) -> Vec<*mut pg_sys::RestrictInfo> {
    // SAFETY: the planner's live structures.
    unsafe {
        let mut translator = Translator::new(Scalars::Unknown);
        let mut quals: Vec<_> = nodes::list::<pg_sys::RestrictInfo>((*relation).baserestrictinfo)
            .map(|qual| {
                let mut cost = pg_sys::QualCost::default();
                pg_sys::cost_qual_eval_node(&raw mut cost, qual.cast(), root);
                // A cheap leakproof qual may go before those of lower levels.
                let promoted =
                    (*qual).leakproof && cost.per_tuple < 10.0 * pg_sys::cpu_operator_cost;
                let level = if promoted { 0 } else { (*qual).security_level };
                let before = translator.by_value;
                let is_translated = translator.predicate((*qual).clause.cast()).is_ok();
                let is_slow = !is_translated || translator.by_value > before;
                ((level, is_slow), cost.per_tuple, qual)
            })
            .collect();
        quals.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        quals.into_iter().map(|(_, _, qual)| qual).collect()
    }
}

/// The quals of a table in the order in which they are to be evaluated, those without columns left out.
pub struct Quals {
    /// Those that are vectorised.
    pub pushed: *mut pg_sys::List,
    /// Those that are evaluated a row at a time, after them.
    pub kept: *mut pg_sys::List,
}

/// Tells quals that can be vectorised from those that cannot.
///
/// # Safety
/// The planner's live structures.
pub unsafe fn split_quals(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    translator: &mut Translator,
) -> Quals {
    // SAFETY: the caller's promise.
    unsafe {
        let index = (*relation).relid;
        let mut pushed: *mut pg_sys::List = std::ptr::null_mut();
        let mut kept: *mut pg_sys::List = std::ptr::null_mut();
        let mut kept_level = u32::MAX;
        for qual in quals(root, relation) {
            if (*qual).pseudoconstant {
                continue;
            }
            let level = (*qual).security_level;
            let asked = translator.by_value;
            match translator.predicate((*qual).clause.cast()) {
                // What PostgreSQL evaluates fails for no row that it would not be evaluated for.
                Ok(_) if translator.by_value > asked && !kept.is_null() && !(*qual).leakproof => {
                    let reason = "qual: evaluated by values, after one that is not vectorised";
                    require::note(root, index, About::Reading, reason.into());
                    kept_level = kept_level.min(level);
                }
                // A row that a kept qual of a lower level would hide must not be seen by a leaky one.
                Ok(_) if level <= kept_level || (*qual).leakproof => {
                    pushed = pg_sys::lappend(pushed, qual.cast());
                    continue;
                }
                Ok(_) => {
                    require::note(
                        root,
                        index,
                        About::Reading,
                        "qual: not leakproof, behind a barrier".into(),
                    );
                }
                Err(reason) => {
                    require::note(root, index, About::Reading, format!("qual: {reason}"));
                    kept_level = kept_level.min(level);
                }
            }
            kept = pg_sys::lappend(kept, qual.cast());
        }
        Quals { pushed, kept }
    }
}

/// Offers to scan a table.
unsafe fn offer_scan(root: *mut pg_sys::PlannerInfo, relation: *mut pg_sys::RelOptInfo) {
    // SAFETY: the planner's live structures.
    unsafe {
        let index = (*relation).relid;
        if has_current_of(relation) {
            // Only a TID scan can find the row that a cursor stands on.
            return;
        }
        if require::may_scroll() {
            require::note(
                root,
                index,
                About::Reading,
                "scan: a cursor without NO SCROLL".into(),
            );
            return;
        }
        if asks_for_transaction_ids(relation) {
            require::note(
                root,
                index,
                About::Reading,
                "scan: a system column other than ctid".into(),
            );
            return;
        }
        let mut translator = Translator::new(Scalars::Unknown);
        let quals = split_quals(root, relation, &mut translator);
        let (path, pages) = scan_path(root, relation, &quals);
        let Quals { pushed, kept } = quals;
        top_n::plan::offer(root, relation, &mut translator, path, pushed, kept);
        offer_parallel_scan(relation, path, pages);
        pg_sys::add_path(relation, path.cast());
    }
}

/// A path that scans a table by one process, and the pages that it is expected to read.
///
/// # Safety
/// The planner's live structures: a lanes table, and its quals.
pub unsafe fn scan_path(
    root: *mut pg_sys::PlannerInfo,
    relation: *mut pg_sys::RelOptInfo,
    quals: &Quals,
) -> (*mut pg_sys::CustomPath, f64) {
    // SAFETY: the caller's promise.
    unsafe {
        let Quals { pushed, kept } = *quals;
        let path = node::path::<ScanState>(relation, (*relation).reltarget);
        let base = &mut (*path).path;
        base.param_info =
            pg_sys::get_baserel_parampathinfo(root, relation, (*relation).lateral_relids);
        base.rows = match base.param_info.is_null() {
            true => (*relation).rows,
            false => (*base.param_info).ppi_rows,
        };
        let share = selectivity::of(root, relation, pushed);
        let tuples = (*relation).tuples * share;
        let pages = f64::from((*relation).pages) * share;
        let target = (*(*relation).reltarget).cost;
        base.startup_cost = target.startup;
        base.total_cost = target.startup
            + pages * pg_sys::seq_page_cost * 0.1
            + tuples
                * f64::from(ports::list_length(pushed))
                * (pg_sys::cpu_operator_cost * VECTOR_SHARE)
            + base.rows
                * (pg_sys::cpu_tuple_cost * 0.5
                    + f64::from(ports::list_length(kept)) * pg_sys::cpu_operator_cost
                    + target.per_tuple);
        (*path).custom_private = pushed;
        (path, pages)
    }
}

/// Offers to scan a table by several processes, each of which takes segments. `scan` is the path for one, which reads so many
/// pages.
unsafe fn offer_parallel_scan(
    relation: *mut pg_sys::RelOptInfo,
    scan: *mut pg_sys::CustomPath,
    pages: f64,
) {
    // SAFETY: the planner's live structures.
    unsafe {
        if !(*relation).consider_parallel || !(*scan).path.param_info.is_null() {
            return;
        }
        let most = pg_sys::max_parallel_workers_per_gather;
        let workers = pg_sys::compute_parallel_worker(relation, pages, -1.0, most);
        if workers <= 0 {
            return;
        }
        let path = tree::make::<pg_sys::CustomPath>(pg_sys::NodeTag::T_CustomPath);
        *path = *scan;
        // As PostgreSQL reckons: the leader has less time the more workers it hears from.
        let leader = 1.0 - 0.3 * f64::from(workers);
        let takes_part = pg_sys::parallel_leader_participation && leader > 0.0;
        let processes = f64::from(workers) + if takes_part { leader } else { 0.0 };
        let reading = pages * pg_sys::seq_page_cost * 0.1;
        let base = &mut (*path).path;
        let computing = base.total_cost - base.startup_cost - reading;
        base.parallel_aware = true;
        base.parallel_workers = workers;
        base.rows = pg_sys::clamp_row_est(base.rows / processes);
        base.total_cost = base.startup_cost + reading + computing / processes;
        pg_sys::add_partial_path(relation, path.cast());
    }
}

/// Whether a query asks for `xmin` and its like, which only the stock scan has.
pub unsafe fn asks_for_transaction_ids(relation: *mut pg_sys::RelOptInfo) -> bool {
    let is_known = |attribute: i32| {
        matches!(
            attribute,
            pg_sys::SelfItemPointerAttributeNumber | pg_sys::TableOidAttributeNumber
        )
    };
    // SAFETY: a live relation of the planner's; `attr_needed` begins at `min_attr`.
    unsafe {
        let mut in_expressions = std::ptr::null_mut();
        // Of a child of a partitioned table nobody keeps `attr_needed`.
        let targets = (*(*relation).reltarget).exprs.cast();
        pg_sys::pull_varattnos(targets, (*relation).relid, &raw mut in_expressions);
        for qual in nodes::list::<pg_sys::RestrictInfo>((*relation).baserestrictinfo) {
            let clause = (*qual).clause.cast();
            pg_sys::pull_varattnos(clause, (*relation).relid, &raw mut in_expressions);
        }
        ((*relation).min_attr..0).any(|attribute| {
            let above = *(*relation)
                .attr_needed
                .add((attribute - (*relation).min_attr) as usize);
            let offset = i32::from(attribute) - pg_sys::FirstLowInvalidHeapAttributeNumber;
            let needed = !above.is_null() || pg_sys::bms_is_member(offset, in_expressions);
            needed && !is_known(attribute.into())
        })
    }
}

/// Whether the table is the target of WHERE CURRENT OF.
unsafe fn has_current_of(relation: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: a live relation of the planner's.
    unsafe {
        nodes::list::<pg_sys::RestrictInfo>((*relation).baserestrictinfo)
            .any(|qual| (*(*qual).clause).type_ == pg_sys::NodeTag::T_CurrentOfExpr)
    }
}
