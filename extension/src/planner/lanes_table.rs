//! Which relations of a query are lanes tables, and what a query wants of them that only stock scans have.

use pgrx::pg_sys;

use crate::pg::nodes;
use crate::table_am::routine;

/// The tables of a join, by their range-table indexes.
pub unsafe fn joined_tables(
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
pub unsafe fn only_relation(relation: *mut pg_sys::RelOptInfo) -> Option<u32> {
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
pub unsafe fn has_current_of(relation: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: a live relation of the planner's.
    unsafe {
        nodes::list::<pg_sys::RestrictInfo>((*relation).baserestrictinfo)
            .any(|qual| (*(*qual).clause).type_ == pg_sys::NodeTag::T_CurrentOfExpr)
    }
}
