//! What plans remember of scans, and of what the engine carries out alone: aggregations and joins by time.
//!
//! | node | numbers | nodes | custom_exprs | custom_scan_tlist |
//! |---|---|---|---|---|
//! | LanesScan | | | pushed quals | |
//! | LanesAggregate | how many of each of the eight; whether a plan stands in; the [order](GroupOrder) of groups; the [numbers](HashJoinPlan::numbers) of a hash join | the join by time | parameters of all expressions | keys, aggregates, quals, quals above the join by time, its expressions, a hash join's keys, its outputs, what is grouped by instead of keys; a column of the table |
//! | LanesTimeJoin, LanesHashJoin | as LanesAggregate | as LanesAggregate | as LanesAggregate | as LanesAggregate, with the columns that the node returns for keys |
//!
//! The quals of an aggregation stand in its target list, [hidden](Targets::push_hidden), where PostgreSQL adjusts their
//! columns when plans are put together; the node never returns them. The column at the end says which table it is.
//! Parameters stand in `custom_exprs` because only there PostgreSQL looks for what makes a node run again.

use pgrx::pg_sys;

use super::group_order::GroupOrder;
use crate::custom_scan;
use crate::custom_scan::node::Planned;
use crate::custom_scan::private_data::{Remembered, Targets, table_column, table_of};
use crate::joins::by_key::plan::HashJoinPlan;
use crate::joins::by_time::find::TimeJoin;
use crate::joins::by_time::plan::{JoinPlan, Wanted};
use crate::pg::explain::Explain;
use crate::pg::{nodes, ports, tree};
use crate::planner::reasons::About;

/// Makes the plan of a `LanesScan`.
///
/// # Safety
/// The planner's live structures; the path has the vectorised quals as the planner holds them.
pub unsafe fn plan_scan(planned: &Planned) {
    // SAFETY: the caller's promise.
    unsafe {
        let index = (*planned.relation).relid;
        let (expressions, kept) = planned.quals((*planned.path).custom_private);
        planned.remember(&Remembered {
            index,
            numbers: Vec::new(),
            nodes: std::ptr::null_mut(),
            expressions,
            targets: std::ptr::null_mut(),
        });
        planned.note_reasons(index, None);
        (*planned.scan).scan.plan.qual = kept;
        (*planned.scan).scan.scanrelid = index;
    }
}

/// Makes the plan of a `LanesAggregate` or `LanesTimeJoin`.
///
/// # Safety
/// The planner's live structures; the path has what [`engine_private`] made.
pub unsafe fn plan_engine(planned: &Planned) {
    // SAFETY: the caller's promise.
    unsafe {
        let index = planned.take_over();
        planned.note_reasons(index, Some(About::Use));
    }
}

/// The join whose rows are aggregated or returned.
#[derive(Clone, Copy)]
pub enum Joined<'a> {
    /// None: the rows are the table's.
    No,
    /// A join by time.
    ByTime(&'a TimeJoin),
    /// A hash join, and what the engine groups by instead of each of the keys: the same values, of other columns. Null
    /// if it groups by the keys.
    ByHash(&'a HashJoinPlan, *mut pg_sys::List),
}

/// What a path of `LanesAggregate`, `LanesTimeJoin` or `LanesHashJoin` remembers.
///
/// # Safety
/// The lists are null or live.
pub unsafe fn engine_private(
    index: u32,
    keys: *mut pg_sys::List,
    calls: *mut pg_sys::List,
    quals: *mut pg_sys::List,
    join: Joined<'_>,
    has_stand_in: bool,
    order: Option<GroupOrder>,
) -> *mut pg_sys::List {
    // SAFETY: makes lists of the caller's.
    unsafe {
        let (mut above, mut expressions, mut nodes) = Default::default();
        let (mut left_keys, mut outputs, mut grouped) = Default::default();
        let mut of_hash_join = vec![0];
        match join {
            Joined::No => {}
            Joined::ByTime(join) => {
                above = tree::list(&join.quals);
                expressions = tree::list(&join.plan.left_expressions());
                nodes = join.plan.encode();
            }
            Joined::ByHash(plan, instead) => {
                grouped = instead;
                left_keys = tree::list(&plan.left_keys());
                outputs = tree::list(&plan.columns());
                of_hash_join = plan.numbers();
            }
        }
        let (mut numbers, mut targets) = (Vec::new(), Targets::new());
        for part in [keys, calls] {
            numbers.push(ports::list_length(part));
            for expression in nodes::list::<pg_sys::Node>(part) {
                targets.push(expression);
            }
        }
        for part in [quals, above, expressions, left_keys, outputs, grouped] {
            numbers.push(ports::list_length(part));
            for expression in nodes::list::<pg_sys::Node>(part) {
                targets.push_hidden(expression);
            }
        }
        targets.push(table_column(index));
        numbers.push(i32::from(has_stand_in));
        numbers.push(GroupOrder::number(order));
        numbers.extend(of_hash_join);
        // The numbers of a join have no parameters.
        for part in nodes::list::<pg_sys::Node>(nodes).skip(1) {
            nodes::parameters(part, &mut targets.parameters);
        }
        let remembered = Remembered {
            index,
            numbers,
            nodes,
            expressions: targets.parameters,
            targets: targets.entries,
        };
        remembered.of_path()
    }
}

/// A plan that the engine carries out alone, taken apart: that of `LanesAggregate`, `LanesTimeJoin` or `LanesHashJoin`.
pub struct EnginePlan {
    /// What is grouped by; of a join, what it returns.
    pub keys: Vec<*mut pg_sys::Node>,
    pub calls: Vec<*mut pg_sys::Aggref>,
    pub quals: Vec<*mut pg_sys::Node>,
    /// Quals on what the join gives.
    pub quals_above: Vec<*mut pg_sys::Node>,
    pub join: Option<JoinPlan>,
    pub hash_join: Option<HashJoinPlan>,
    /// Whether the last child is a plan that [stands in](crate::custom_scan::stand_in).
    pub has_stand_in: bool,
    /// In which order groups are returned, if that matters.
    pub order: Option<GroupOrder>,
    /// Why what is done with the rows is not vectorised, as strings.
    pub reasons: *mut pg_sys::List,
    /// The range-table index of the table.
    pub index: u32,
}

impl EnginePlan {
    /// How many small sides a hash join has: their plans are the first children. None without such a join.
    pub fn small_sides(&self) -> usize {
        self.hash_join
            .as_ref()
            .map_or(0, |join| join.dimensions.len())
    }

    /// All expressions that the engine evaluates.
    pub fn expressions(&self) -> Vec<*mut pg_sys::Node> {
        let parts = [&self.keys, &self.quals, &self.quals_above];
        let mut all: Vec<*mut pg_sys::Node> = parts.into_iter().flatten().copied().collect();
        all.extend(self.calls.iter().map(|call| call.cast::<pg_sys::Node>()));
        if let Some(join) = &self.hash_join {
            all.extend(join.left_keys());
        }
        if let Some(join) = &self.join {
            all.extend(join.left_expressions());
            all.push(join.table_quals.cast());
            all.extend(join.computed().iter().map(|(_, expression)| *expression));
            if let Wanted::Aggregates(calls) = &join.wanted {
                all.extend(calls.iter().map(|call| call.cast::<pg_sys::Node>()));
            }
        }
        all
    }

    /// # Safety
    /// A plan of such a node.
    pub unsafe fn of(scan: *mut pg_sys::CustomScan) -> EnginePlan {
        // SAFETY: the caller's promise.
        unsafe {
            let numbers = custom_scan::private_data::numbers(scan);
            let count = |part: usize| numbers[part] as usize;
            let mut expressions = nodes::list::<pg_sys::TargetEntry>((*scan).custom_scan_tlist)
                .map(|entry| (*entry).expr.cast::<pg_sys::Node>());
            let keys: Vec<_> = expressions.by_ref().take(count(0)).collect();
            let calls = expressions.by_ref().take(count(1));
            let calls = calls.map(|node| node.cast()).collect();
            let mut hidden = |part: usize| -> Vec<*mut pg_sys::Node> {
                let entries = expressions.by_ref().take(count(part));
                entries
                    .map(|entry| custom_scan::private_data::hidden(entry))
                    .collect()
            };
            let (quals, quals_above, of_join) = (hidden(2), hidden(3), hidden(4));
            let join = custom_scan::private_data::nodes(scan);
            let join = (!join.is_null()).then(|| JoinPlan::decode(join, &of_join));
            let (left_keys, outputs, grouped) = (hidden(5), hidden(6), hidden(7));
            let table = expressions.next().expect("the table's column is last");
            let index = table_of(table);
            let hash_join = HashJoinPlan::of_numbers(index, left_keys, outputs, &numbers[10..]);
            EnginePlan {
                keys: if grouped.is_empty() { keys } else { grouped },
                calls,
                quals,
                quals_above,
                join,
                hash_join,
                has_stand_in: numbers[8] != 0,
                order: GroupOrder::from_number(numbers[9]),
                reasons: custom_scan::private_data::reasons(scan),
                index,
            }
        }
    }

    /// What EXPLAIN says of all these nodes.
    ///
    /// # Safety
    /// The plan of the node that is explained.
    pub unsafe fn explain(&self, explain: &Explain) {
        if let Some(join) = &self.join {
            explain.text(c"Time Join", &join.describe());
        }
        if let Some(join) = &self.hash_join {
            explain.text(c"Hash Join", &join.kinds());
            // SAFETY: the caller's promise.
            unsafe { explain.expressions(c"Join Key", &join.left_keys()) }
        }
        // SAFETY: the caller's promise.
        unsafe {
            explain.quals(&self.quals);
            explain.expressions(c"Join Filter", &self.quals_above);
            explain.reasons(self.reasons);
        }
    }
}
