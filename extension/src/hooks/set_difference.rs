//! Makes joins of EXCEPT, INTERSECT and UNION, before planning.
//!
//! ```text
//! SELECT k, x FROM t EXCEPT SELECT k, x FROM u
//!
//! SELECT DISTINCT k, x FROM t WHERE k IS NOT NULL AND NOT EXISTS (SELECT FROM u WHERE u.k = t.k AND u.x = t.x)
//! UNION ALL
//! (SELECT k, x FROM t WHERE k IS NULL EXCEPT SELECT k, x FROM u WHERE k IS NULL)
//! ```
//! UNION becomes the rows of one operand, and those of the other one that the first one does not have.
//!
//! PostgreSQL passes all rows of both operands to one hash table, row by row. An aggregation by vectors above a join by
//! vectors does the same work. Equality in a join knows no NULL, so the rows with a NULL stay with PostgreSQL. The
//! second half is left out if the columns of `t` are NOT NULL, here `x`.
//!
//! Invariants:
//! - Both operands read one lanes table each and select columns of it, of types that are compared in the same way by
//!   the operation and by the join. Conditions are not volatile, because they are evaluated more than once.
//! - The operation is without ALL, and the distinct rows of an operand are not few: these are
//!   [found first](super::set_operands).
//! - The operand that is looked up probably fits into memory.

use pgrx::pg_sys::{self, Oid};

use super::set_operands::{is_shortened, set_distinct};
use crate::joins::by_key::plan::JoinKind;
use crate::pg::table::OpenedTable;
use crate::pg::tree::{
    Expr, FromExpr, List, Node, Query, RangeTblEntry, RangeTblRef, SetOperationStmt, TargetEntry,
    make, parse,
};
use crate::pg::{catalog, descriptor};
use crate::planner::{lanes_table, time_match};

/// The types of columns that the join takes for keys.
const TYPES: [Oid; 11] = [
    pg_sys::INT2OID,
    pg_sys::INT4OID,
    pg_sys::INT8OID,
    pg_sys::FLOAT4OID,
    pg_sys::FLOAT8OID,
    pg_sys::DATEOID,
    pg_sys::TIMESTAMPOID,
    pg_sys::TIMESTAMPTZOID,
    pg_sys::TEXTOID,
    pg_sys::VARCHAROID,
    pg_sys::UUIDOID,
];

/// Approximate bytes that a row takes in a join, and the share of rows that is assumed to pass conditions.
const ROW_BYTES: f64 = 60.0;
const CONDITION_SHARE: f64 = 0.3;

/// Replaces operations in the tree of a query. Returns whether there was one.
pub fn rewrite<'p>(query: Query<'p>, tree: Expr<'p>) -> bool {
    let Some(changed) = replaced(query, tree) else {
        return false;
    };
    match changed.downcast::<RangeTblRef<'p>>() {
        // The targets of the query are those of its first operand already.
        Some(only) => {
            query.set_set_operation_tree(None);
            query.set_jointree(Some(make::from(&[only.as_join_tree()], None)));
        }
        None => query.set_set_operation_tree(Some(changed)),
    }
    true
}

/// What takes the place of an operation, if its operands or it itself are replaced.
fn replaced<'p>(query: Query<'p>, tree: Expr<'p>) -> Option<Expr<'p>> {
    let operation = tree.downcast::<SetOperationStmt<'p>>()?;
    if let Some(operands) = Operands::of(query, operation) {
        return Some(operands.joined(query, operation));
    }
    let (left, right) = (operation.left()?, operation.right()?);
    let (new_left, new_right) = (replaced(query, left), replaced(query, right));
    if new_left.is_none() && new_right.is_none() {
        return None;
    }
    operation.set_left_side(new_left.or(Some(left)));
    operation.set_right_side(new_right.or(Some(right)));
    Some(tree)
}

/// An operand: its reference, and its query.
type Operand<'p> = (RangeTblRef<'p>, Query<'p>);

/// The operands of an operation that becomes a join.
struct Operands<'p> {
    left: Operand<'p>,
    right: Operand<'p>,
    kind: pg_sys::SetOperation::Type,
    /// Whether the rows of the left one are looked up.
    is_left_found: bool,
    /// The columns that may be NULL in rows that are returned.
    nullable: Vec<usize>,
}

impl<'p> Operands<'p> {
    /// The operands of an operation, if it can become a join.
    fn of(query: Query<'p>, operation: SetOperationStmt<'p>) -> Option<Operands<'p>> {
        let operand = |side: Option<Expr<'p>>| {
            let reference = side?.downcast::<RangeTblRef<'p>>()?;
            Some((reference, query.entry(reference.rtindex())?.subquery()?))
        };
        let (left, right) = (operand(operation.left())?, operand(operation.right())?);
        let kind = operation.operation();
        let few = |query| is_shortened(query, operation);
        let are_keys = has_keys(left.1, operation) && has_keys(right.1, operation);
        if operation.is_all() || !are_keys || few(left.1) && few(right.1) {
            return None;
        }
        let mut nullable = nullable(left.1)?;
        let mut is_left_found = false;
        if kind == pg_sys::SetOperation::SETOP_UNION {
            nullable.extend(self::nullable(right.1)?);
            is_left_found = bytes(left.1)? < bytes(right.1)?;
        }
        let found = if is_left_found { left } else { right };
        let fits = bytes(found.1)? <= JoinKind::Anti.memory_limit() as f64;
        fits.then_some(Operands {
            left,
            right,
            kind,
            is_left_found,
            nullable,
        })
    }

    /// The join, and what is left of the operation for rows with NULLs.
    fn joined(self, query: Query<'p>, operation: SetOperationStmt<'p>) -> Expr<'p> {
        let (left, right) = (self.left.1, self.right.1);
        let with_nulls = [left, right].map(make::copy);
        let (changed, found) = match self.is_left_found {
            true => (self.right, left),
            false => (self.left, right),
        };
        let exists = exists(changed.1, found);
        for operand in [left, right] {
            if let Some(not_null) = all_not_null(operand, &self.nullable) {
                add_condition(operand, not_null);
            }
            set_distinct(operand, operation);
        }
        let condition = match self.kind {
            pg_sys::SetOperation::SETOP_INTERSECT => exists,
            _ => make::not(exists),
        };
        add_condition(changed.1, condition);
        changed.1.set_has_sublinks(true);
        let mut parts = vec![self.left.0.as_node()];
        if self.kind == pg_sys::SetOperation::SETOP_UNION {
            parts.push(self.right.0.as_node());
        }
        if !self.nullable.is_empty() {
            parts.push(self.rest(query, operation, with_nulls));
        }
        let parts = parts.into_iter();
        let all = parts.reduce(|before, part| union_all(operation, before, part));
        all.expect("there is a part")
    }

    /// The operation for rows with NULLs, of these operands.
    fn rest(
        &self,
        query: Query<'p>,
        operation: SetOperationStmt<'p>,
        operands: [Query<'p>; 2],
    ) -> Expr<'p> {
        let sides = operands.map(|operand| {
            if let Some(not_null) = all_not_null(operand, &self.nullable) {
                add_condition(operand, make::not(not_null));
            }
            added(query, self.left.0, operand)
        });
        let rest = make::copy(operation);
        rest.set_left(Some(sides[0]));
        rest.set_right(Some(sides[1]));
        rest.as_node()
    }
}

/// Both sides, with the columns of an operation.
fn union_all<'p>(like: SetOperationStmt<'p>, left: Expr<'p>, right: Expr<'p>) -> Expr<'p> {
    let union = make::copy(like);
    union.set_operation(pg_sys::SetOperation::SETOP_UNION);
    union.set_is_all(true);
    union.set_clauses(List::EMPTY);
    union.set_left_side(Some(left));
    union.set_right_side(Some(right));
    union.as_node()
}

/// The condition that an operand has a row like one of the other one.
fn exists<'p>(operand: Query<'p>, other: Query<'p>) -> Expr<'p> {
    let found = make::copy(other);
    // Its references to outer queries have one more query to pass.
    found.raise_levels(1, 1);
    for (target, of_found) in operand.targetList().iter().zip(found.targetList()) {
        add_condition(found, equality(of_found.expr(), target.expr()));
    }
    make::exists(found)
}

/// Approximate bytes that the rows of a query take in a join.
fn bytes(query: Query<'_>) -> Option<f64> {
    let (_, entry) = time_match::single_table(query).ok()?;
    let table = OpenedTable::find_locked(entry.relid())?;
    let (_, rows) = table.get().catalogued_size();
    let share = match query.conjuncts().is_empty() {
        true => 1.0,
        false => CONDITION_SHARE,
    };
    Some(f64::from(rows).max(0.0) * share * ROW_BYTES)
}

/// Whether a query reads one lanes table, and selects columns of it that an operation and a join compare in the same
/// way.
fn has_keys(query: Query<'_>, operation: SetOperationStmt<'_>) -> bool {
    let is_plain = time_match::reads_plainly(query)
        && !query.hasAggs()
        && !query.hasSubLinks()
        && query.sortClause().is_empty()
        && query.limitCount().is_none()
        && !query.conjuncts().into_iter().any(Expr::is_volatile);
    let table = time_match::single_table(query).map(|(_, entry)| entry);
    let is_lanes = |entry: RangeTblEntry<'_>| {
        entry.relkind() == pg_sys::RELKIND_RELATION && lanes_table::is_lanes_table(entry.relid())
    };
    if !is_plain || !table.is_ok_and(is_lanes) {
        return false;
    }
    let types = operation.types().iter().zip(operation.collations().iter());
    let targets = query.targetList();
    let is_key = |(target, (type_of, collation)): (TargetEntry<'_>, (Oid, Oid))| {
        let value = target.expr();
        let is_column = value
            .as_var()
            .is_some_and(|column| column.varattno() > 0 && column.varlevelsup() == 0);
        is_column
            && !target.resjunk()
            && TYPES.contains(&type_of)
            && value.type_of() == type_of
            && value.collation() == collation
            && (collation == pg_sys::InvalidOid || catalog::is_deterministic(collation))
    };
    !targets.is_empty()
        && targets.len() == operation.clauses().len()
        && targets.iter().zip(types).all(is_key)
}

/// The places of the columns that a query on one table selects and that may be NULL.
fn nullable(query: Query<'_>) -> Option<Vec<usize>> {
    let (_, entry) = time_match::single_table(query).ok()?;
    let table = OpenedTable::find_locked(entry.relid())?;
    let columns = table.get().descriptor();
    let may_be_null = |target: TargetEntry<'_>| {
        let number = target.expr().as_var().map(|column| column.varattno());
        let place = number.and_then(|number| usize::try_from(number - 1).ok());
        place.is_none_or(|place| !descriptor::is_not_null(columns.attribute(place)))
    };
    let targets = query.targetList().iter().enumerate();
    let targets = targets.filter(|(_, target)| may_be_null(*target));
    Some(targets.map(|(place, _)| place).collect())
}

/// The condition that the targets in these places are not NULL; `None` without a place.
fn all_not_null<'p>(query: Query<'p>, places: &[usize]) -> Option<Expr<'p>> {
    let targets = query.targetList();
    let tests = places.iter().filter_map(|place| targets.get(*place));
    let tests: Vec<Expr<'p>> = tests
        .map(|target| make::is_not_null(target.expr()))
        .collect();
    (!tests.is_empty()).then(|| make::all_of(&tests))
}

/// The equality of a column with one of the query around.
fn equality<'p>(inner: Expr<'p>, outer: Expr<'p>) -> Expr<'p> {
    let outer = make::copy(outer);
    if let Some(column) = outer.as_var() {
        column.set_levels_up(1);
    }
    let collation = inner.collation();
    let equality = parse::operator(c"=", inner, outer);
    if let Some(call) = equality.as_op() {
        call.set_input_collation(collation);
    }
    equality
}

/// Adds a condition to WHERE.
fn add_condition<'p>(query: Query<'p>, condition: Expr<'p>) {
    let from = query.jointree();
    let tables: Vec<_> = from.into_iter().flat_map(FromExpr::fromlist).collect();
    let mut conditions: Vec<Expr<'p>> = from.and_then(FromExpr::quals).into_iter().collect();
    conditions.push(condition);
    query.set_jointree(Some(make::from(&tables, Some(make::all_of(&conditions)))));
}

/// A reference to a new entry of a query, which is like another one but for its sub-select.
fn added<'p>(query: Query<'p>, like: RangeTblRef<'p>, operand: Query<'p>) -> RangeTblRef<'p> {
    let entries = query.rtable();
    let entry = make::copy(
        query
            .entry(like.rtindex())
            .expect("an operand has an entry"),
    );
    entry.set_subquery(Some(operand));
    query.set_rtable(List::new(entries.iter().chain([entry])));
    make::reference(entries.len() as i32 + 1)
}
