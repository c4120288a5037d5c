//! Estimates how much of a table a scan reads.
//!
//! Sealed rows are sorted by the table's `order_by`. Rows with a few values of its leading column
//! are therefore in a few segments of each part, and zones skip the others. Open rows are in no
//! order, but they are few.

use lanes_columnar::limits::SEGMENT_ROWS;

use crate::pg::tree::{Expr, Kind, List, Node, PlannerInfo, RelOptInfo};
use crate::table_options;

/// The usual number of small parts of a table: a few of each size that are not merged yet.
const PARTS: f64 = 8.0;
/// The number of rows of a large part.
const PART_ROWS: f64 = 4_000_000.0;

/// The share of a table's rows that are in segments which quals do not skip. The list contains
/// quals of the table or their clauses.
pub fn of<'p, T: Node<'p>>(
    root: PlannerInfo<'p>,
    relation: RelOptInfo<'p>,
    pushed: List<'p, T>,
) -> f64 {
    let segments = relation.tuples() / f64::from(SEGMENT_ROWS);
    if segments <= PARTS || pushed.is_empty() {
        return 1.0;
    }
    let Some(table) = root.entry(relation.relid()).map(|entry| entry.relid()) else {
        return 1.0;
    };
    let keys = table_options::of(table).keys(table);
    let Some(leading) = keys.and_then(|keys| keys.first().copied()) else {
        return 1.0;
    };
    let bounds = pushed.iter().map(Node::as_node);
    let bounds = List::new(bounds.filter(|qual| compares_column(*qual, leading)));
    if bounds.is_empty() {
        return 1.0;
    }
    let selectivity = root.selectivity(bounds, relation);
    // In each part, one segment more than the rows would fill.
    let parts = PARTS + relation.tuples() / PART_ROWS;
    (selectivity + parts / segments).min(1.0)
}

/// Whether a qual compares a column itself, counted from 0, with something.
pub fn compares_column(qual: Expr<'_>, attribute: usize) -> bool {
    let operands = match qual.kind() {
        Kind::RestrictInfo(qual) => return compares_column(qual.clause(), attribute),
        Kind::OpExpr(operation) => operation.args(),
        Kind::ScalarArrayOpExpr(operation) => operation.args(),
        _ => return false,
    };
    let is_column = |operand: Expr<'_>| {
        let column = operand.stripped().as_var();
        column.is_some_and(|column| usize::try_from(column.varattno()) == Ok(attribute + 1))
    };
    operands.iter().any(is_column)
}
