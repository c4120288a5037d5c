//! Recognises lanes tables among a query's relations, and what a query needs that only PostgreSQL's own scans have.

use pgrx::pg_sys::{self, NodeTag, Oid};

use crate::pg::table::OpenedTable;
use crate::pg::tree::{Node, PlannerInfo, Query, RangeTblEntry, RelOptInfo};

/// The range-table indexes of a join's tables.
pub fn joined_tables<'p>(root: PlannerInfo<'p>, joined: RelOptInfo<'p>) -> Vec<u32> {
    let is_table = |index: &u32| root.entry(*index).is_some_and(RangeTblEntry::is_relation);
    let indexes = joined.relids().iter().map(|index| index as u32);
    indexes.filter(is_table).collect()
}

/// The range-table index of a relation that is no join.
pub fn only_relation(relation: RelOptInfo<'_>) -> Option<u32> {
    relation.is_base().then(|| relation.relid())
}

/// Whether a relation of a query is a scan of a lanes table without children.
pub fn is_lanes_scan<'p>(relation: RelOptInfo<'p>, entry: Option<RangeTblEntry<'p>>) -> bool {
    entry.is_some_and(|entry| {
        entry.is_relation()
            && !entry.inh()
            && entry.tablesample().is_none()
            && matches!(
                entry.relkind(),
                pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW
            )
            && !relation.pathlist().is_empty()
            && is_lanes_table(entry.relid())
    })
}

/// Whether a table has the access method `lanes`.
pub fn is_lanes_table(table: Oid) -> bool {
    let table = OpenedTable::find_locked(table);
    table.is_some_and(|table| table.get().is_lanes())
}

/// Whether UPDATE and DELETE could use a cursor of this query with WHERE CURRENT OF, unless something that stores rows
/// comes between: its rows are those of one table, in the table's order.
pub fn is_updatable(root: PlannerInfo<'_>) -> bool {
    let is_plain = |query: Query<'_>| {
        !query.hasAggs()
            && !query.hasWindowFuncs()
            && query.groupClause().is_empty()
            && query.distinctClause().is_empty()
            && query.sortClause().is_empty()
    };
    root.all_baserels().len() == 1 && root.parse().is_some_and(is_plain)
}

/// Whether a query uses `xmin` or another system column that only PostgreSQL's own scans have.
pub fn asks_for_transaction_ids(relation: RelOptInfo<'_>) -> bool {
    let is_known = |attribute: i16| {
        matches!(
            i32::from(attribute),
            pg_sys::SelfItemPointerAttributeNumber | pg_sys::TableOidAttributeNumber
        )
    };
    // The planner does not maintain `attr_needed` for a child of a partitioned table.
    let targets = relation
        .reltarget()
        .into_iter()
        .flat_map(|target| target.exprs());
    let quals = relation.baserestrictinfo().iter().map(|qual| qual.clause());
    let used: Vec<i16> = targets
        .chain(quals)
        .flat_map(|expr| expr.attributes(relation.relid()))
        .collect();
    (relation.min_attr()..0).any(|attribute| {
        let is_used = !relation.attr_needed(attribute).is_empty() || used.contains(&attribute);
        is_used && !is_known(attribute)
    })
}

/// Whether the table is the target of WHERE CURRENT OF.
pub fn has_current_of(relation: RelOptInfo<'_>) -> bool {
    let mut quals = relation.baserestrictinfo().iter();
    quals.any(|qual| qual.clause().tag() == NodeTag::T_CurrentOfExpr)
}
