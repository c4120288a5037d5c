//! Makes operands of UNION, INTERSECT and EXCEPT distinct, before planning.
//!
//! ```text
//! SELECT k FROM t UNION SELECT k FROM q     SELECT DISTINCT k FROM t UNION SELECT DISTINCT k FROM q
//! ```
//! PostgreSQL hashes or sorts all rows of all operands. Here it receives the distinct rows of each, which an aggregation
//! by vectors finds.
//!
//! Invariants:
//! - Only an operand whose duplicates make no difference becomes distinct: one of an operation without ALL, or of a
//!   UNION ALL that is such an operand itself.
//! - Rows that the operand finds equal are equal for the operation too: the collations are the same, and so are the
//!   types, unless both are of numbers or times.
//! - By the statistics, few of the operand's rows are distinct. Otherwise the work would be done twice.

use std::collections::BTreeSet;

use pgrx::pg_sys;

use super::set_difference;
use crate::pg::table::OpenedTable;
use crate::pg::tree::{
    Expr, List, Node, Query, RangeTblEntry, RangeTblRef, SetOperationStmt, TargetEntry, make,
};
use crate::pg::{catalog, table_catalog};
use crate::planner::{lanes_table, time_match};
use crate::vectorize::{self, Vectorize};

/// An operand becomes distinct if this share of its rows is distinct at most. PostgreSQL takes at least twice as long for a
/// row as an aggregation by vectors: of 1M rows with 1,000 distinct ones 110 ms instead of 2, with all distinct 860 of
/// 1,000 ms.
const DISTINCT_SHARE: f64 = 0.5;

/// Types that the operation may convert to one another: what is equal remains so, and all have hashes.
const NUMBERS: [pg_sys::Oid; 9] = [
    pg_sys::INT2OID,
    pg_sys::INT4OID,
    pg_sys::INT8OID,
    pg_sys::NUMERICOID,
    pg_sys::FLOAT4OID,
    pg_sys::FLOAT8OID,
    pg_sys::DATEOID,
    pg_sys::TIMESTAMPOID,
    pg_sys::TIMESTAMPTZOID,
];

/// A query whose operands are distinct where that helps. It is a copy if there are any.
pub fn rewritten(query: Query<'_>) -> Query<'_> {
    if vectorize::vectorize() == Vectorize::Off || !has_operation(query) {
        return query;
    }
    let copy = make::copy(query);
    match rewrite(copy) {
        true => copy,
        false => query,
    }
}

/// Whether the query, or one in its FROM or WITH, is a set operation.
fn has_operation(query: Query<'_>) -> bool {
    query.setOperations().is_some() || inner(query).any(has_operation)
}

/// The queries in FROM and WITH.
fn inner<'p>(query: Query<'p>) -> impl Iterator<Item = Query<'p>> {
    let entries = query.rtable().iter().filter_map(RangeTblEntry::subquery);
    entries.chain(query.common_tables().map(|(_, common)| common))
}

fn rewrite(query: Query<'_>) -> bool {
    let mut has_changed = false;
    for inner in inner(query) {
        has_changed |= rewrite(inner);
    }
    if let Some(operation) = query.setOperations() {
        has_changed |= set_difference::rewrite(query, operation);
    }
    if let Some(operation) = query.setOperations() {
        has_changed |= make_distinct(query, operation, None);
    }
    has_changed
}

/// Makes the operands of an operation distinct. `removing` is the operation around it that makes duplicates of its rows
/// indifferent, if there is one.
fn make_distinct<'p>(
    query: Query<'p>,
    node: Expr<'p>,
    removing: Option<SetOperationStmt<'p>>,
) -> bool {
    if let Some(operation) = node.downcast::<SetOperationStmt<'p>>() {
        let is_union = operation.operation() == pg_sys::SetOperation::SETOP_UNION;
        let removing = match operation.is_all() {
            false => Some(operation),
            true => removing.filter(|_| is_union),
        };
        let sides = [operation.left(), operation.right()];
        let sides = sides.into_iter().flatten();
        // Each side is visited.
        return sides.fold(false, |has_changed, side| {
            make_distinct(query, side, removing) | has_changed
        });
    }
    let operand = node
        .downcast::<RangeTblRef<'p>>()
        .and_then(|reference| query.entry(reference.rtindex())?.subquery());
    let (Some(operand), Some(removing)) = (operand, removing) else {
        return false;
    };
    if !is_shortened(operand, removing) {
        return false;
    }
    set_distinct(operand, removing);
    true
}

/// Makes the rows of an operand distinct, as an operation compares them.
pub fn set_distinct<'p>(operand: Query<'p>, operation: SetOperationStmt<'p>) {
    let mut clauses = List::EMPTY;
    let targets = operand.targetList().iter().zip(operation.clauses());
    let targets = targets.zip(operation.types().iter());
    for (reference, ((target, clause), compared)) in (1..).zip(targets) {
        target.set_sort_group_ref(reference);
        let clause = make::copy(clause);
        clause.set_reference(reference);
        let type_of = target.expr().type_of();
        if type_of != compared {
            // A number that the operation converts has the operators of its own type.
            let (less, equal, _) = catalog::sort_operators(type_of);
            clause.set_equality(equal);
            clause.set_order(less);
        }
        clauses.push(clause);
    }
    operand.set_distinct_clause(clauses);
}

/// Whether a query reads one lanes table, few of whose rows are distinct, as an operation compares them.
pub fn is_shortened(query: Query<'_>, operation: SetOperationStmt<'_>) -> bool {
    let is_plain = time_match::reads_plainly(query)
        && !query.hasAggs()
        && query.sortClause().is_empty()
        && query.limitCount().is_none();
    let table = time_match::single_table(query).map(|(index, entry)| (index, entry.relid()));
    let (true, Ok((index, table))) = (is_plain, table) else {
        return false;
    };
    let targets = query.targetList();
    let types = operation.types().iter().zip(operation.collations().iter());
    let mut is_same = targets
        .iter()
        .zip(types)
        .map(|(target, (type_of, collation))| {
            let value = target.expr();
            let is_type = value.type_of() == type_of
                || [value.type_of(), type_of]
                    .iter()
                    .all(|of| NUMBERS.contains(of));
            !target.resjunk() && is_type && value.collation() == collation
        });
    if targets.is_empty()
        || targets.len() != operation.clauses().len()
        || !is_same.all(|is_same| is_same)
        || !lanes_table::is_lanes_table(table)
    {
        return false;
    }
    // There are at most as many rows as combinations of the values that they are computed from.
    let values = targets.iter().map(TargetEntry::expr);
    let columns: BTreeSet<i16> = values
        .flat_map(|value| value.attributes(index as u32))
        .collect();
    let rows = OpenedTable::find_locked(table).map_or(0.0, |table| {
        let (_, rows) = table.get().catalogued_size();
        f64::from(rows)
    });
    let distinct = columns
        .iter()
        .map(|column| table_catalog::distinct_values(table, *column, rows))
        .product::<Option<f64>>();
    distinct.is_some_and(|distinct| distinct <= rows * DISTINCT_SHARE)
}
