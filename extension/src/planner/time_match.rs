//! Recognises a lateral sub-select that finds one row by time: the rewrite makes such sub-selects,
//! and people write them.
//!
//! ```text
//! SELECT columns FROM table
//! WHERE [key = outer …] AND [time <= outer] [AND time >= outer …] [AND anything else]
//! ORDER BY time [DESC] [, tie] [, ctid] LIMIT 1
//! ```
//! Matching changes nothing and plans nothing. Expressions in a [`Shape`] are folded copies in the terms of the
//! sub-select: columns of its table have level 0 and index [`Shape::entry`], columns of the outer query have level 1.

use pgrx::pg_sys;

use super::time_condition::{self, Bounds};
use crate::pg::kind::Kind;
use crate::pg::tree::{
    Aggref, Expr, Expression, FromExpr, JoinKind, Kind as ExprKind, PlannerInfo, Query,
    RangeTblEntry, SortGroupClause, TargetEntry, View,
};
use crate::pg::{catalog, ports};

/// An equality between a column and an expression of the outer query.
#[derive(Clone, Debug)]
pub struct Key {
    /// The column, counted from 1.
    pub column: i16,
    /// How the column is read.
    pub kind: Kind,
    /// The other side, which refers to the outer query only.
    pub outer: *mut pg_sys::Node,
    /// How the other side is read.
    pub outer_kind: Kind,
    /// Whether NULL equals NULL, as in `IS NOT DISTINCT FROM`. Otherwise NULL equals nothing.
    pub nulls_match: bool,
}

/// An inequality between the time and an expression of the outer query.
#[derive(Clone, Debug)]
pub struct Bound {
    /// `time <= outer` or `time < outer`; otherwise `>=` or `>`.
    pub upper: bool,
    /// Whether times that equal the bound are included.
    pub inclusive: bool,
    /// The other side, which refers to the outer query only.
    pub outer: *mut pg_sys::Node,
    /// How the other side is read.
    pub outer_kind: Kind,
}

/// A further column of the order.
#[derive(Clone, Copy, Debug)]
pub struct Tie {
    /// The column, counted from 1.
    pub column: i16,
    /// How it is read.
    pub kind: Kind,
    /// Sorted DESC.
    pub descending: bool,
    /// Whether NULLs come first in the order as it is written.
    pub nulls_first: bool,
}

/// A column of the sub-select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A column of the table, counted from 1.
    Column(i16),
    /// Something else.
    Other,
}

/// A lateral sub-select that finds one row by time.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The table.
    pub table: pg_sys::Oid,
    /// The table's index in the sub-select's range table.
    pub entry: i32,
    /// The time's column, counted from 1.
    pub time: i16,
    /// How the time is read.
    pub time_kind: Kind,
    /// Whether the latest row is requested (`ORDER BY time DESC`), not the earliest.
    pub backward: bool,
    /// Equalities.
    pub keys: Vec<Key>,
    /// Inequalities of the time.
    pub bounds: Vec<Bound>,
    /// The tolerance, if the far bound is the near bound `-` or `+` an expression.
    pub tolerance: Option<*mut pg_sys::Node>,
    /// Further columns of the order.
    pub ties: Vec<Tie>,
    /// Whether `ctid`, with which the order ends, is descending; `None` if it does not end so.
    pub arrival: Option<bool>,
    /// Conditions on the table alone.
    pub table_quals: Vec<*mut pg_sys::Node>,
    /// Conditions on both sides, or on the outer one alone.
    pub residual_quals: Vec<*mut pg_sys::Node>,
    /// The sub-select's columns in their order, including columns that only sort.
    pub outputs: Vec<Output>,
}

impl Shape {
    /// A shape without order, conditions and outputs.
    pub fn without_order(table: pg_sys::Oid, entry: i32, time: i16, time_kind: Kind) -> Shape {
        Shape {
            table,
            entry,
            time,
            time_kind,
            backward: false,
            keys: Vec::new(),
            bounds: Vec::new(),
            tolerance: None,
            ties: Vec::new(),
            arrival: None,
            table_quals: Vec::new(),
            residual_quals: Vec::new(),
            outputs: Vec::new(),
        }
    }
}

/// The shape of a lateral sub-select.
///
/// # Errors
/// Why the sub-select does not have this shape, for EXPLAIN.
pub fn match_shape<'p>(root: PlannerInfo<'p>, query: Query<'p>) -> Result<Shape, &'static str> {
    let is_plain = reads_plainly(query)
        && !query.hasAggs()
        && query.limitOption() == pg_sys::LimitOption::LIMIT_OPTION_COUNT;
    if !is_plain
        || !query
            .limitCount()
            .is_some_and(|limit| is_one(Some(root), limit))
    {
        return Err("it is not a plain SELECT … ORDER BY … LIMIT 1");
    }
    let (entry, table) = single_table(query)?;
    let order = Order::of(query)?;
    let mut shape = Shape {
        backward: order.descending,
        ties: order.ties,
        arrival: order.arrival,
        outputs: outputs(query),
        ..Shape::without_order(table.relid(), entry, order.time, order.kind)
    };
    let mut bounds = Bounds::default();
    for condition in query.conjuncts() {
        time_condition::add(root, &mut shape, &mut bounds, condition)?;
    }
    if shape.bounds.is_empty() {
        return Err("nothing bounds its time");
    }
    shape.tolerance = bounds.tolerance(shape.backward).map(View::as_ptr);
    Ok(shape)
}

/// Whether a query does nothing with the rows of one FROM and WHERE but what its target list, order and limit say.
pub fn reads_plainly(query: Query<'_>) -> bool {
    query.commandType() == pg_sys::CmdType::CMD_SELECT
        && query.setOperations().is_none()
        && query.cteList().is_empty()
        && query.groupClause().is_empty()
        && query.groupingSets().is_empty()
        && query.havingQual().is_none()
        && query.distinctClause().is_empty()
        && query.windowClause().is_empty()
        && query.rowMarks().is_empty()
        && query.limitOffset().is_none()
        && !query.hasTargetSRFs()
        // An expression that has effects is evaluated even if nothing uses its result.
        && !query.targetList().iter().any(|target| target.expr().is_volatile())
}

/// The only table that a query reads, and its range-table index.
///
/// # Errors
/// If the query reads something else, or row-level security applies to the table.
pub fn single_table(query: Query<'_>) -> Result<(i32, RangeTblEntry<'_>), &'static str> {
    let mut from = query.jointree().into_iter().flat_map(FromExpr::fromlist);
    let (Some(only), None) = (from.next(), from.next()) else {
        return Err("it reads more than one table");
    };
    let JoinKind::Entry(reference) = only.kind() else {
        return Err("it reads more than one table");
    };
    let index = reference.rtindex();
    let table = query
        .entry(index)
        .filter(|table| table.is_relation() && table.tablesample().is_none())
        .ok_or("it does not read a plain table")?;
    if !table.securityQuals().is_empty() {
        return Err("row-level security applies to its table");
    }
    Ok((index, table))
}

/// Whether an aggregate's argument or filter refers to the outer query, or cannot be evaluated by itself.
pub fn mentions_outer(call: Aggref<'_>) -> bool {
    let arguments = call.args().iter().map(TargetEntry::expr);
    arguments.chain(call.aggfilter()).any(|input| {
        let about = time_condition::References::of(input);
        about.outer || about.unfit
    })
}

/// Whether a limit is the constant 1.
pub fn is_one<'p>(root: Option<PlannerInfo<'p>>, limit: Expr<'p>) -> bool {
    let limit = limit.folded(root).as_const();
    let limit = limit.and_then(|limit| limit.value());
    limit.is_some_and(|limit| limit.datum().value() as i64 == 1)
}

/// The number of the column that an expression is, below any relabelling.
pub(super) fn column(expr: Expr<'_>) -> Option<i16> {
    let column = expr.stripped().as_var()?;
    (column.varlevelsup() == 0 && column.varattno() > 0).then_some(column.varattno())
}

/// The order of a sub-select.
struct Order {
    time: i16,
    kind: Kind,
    descending: bool,
    ties: Vec<Tie>,
    arrival: Option<bool>,
}

impl Order {
    fn of(query: Query<'_>) -> Result<Order, &'static str> {
        let mut order: Option<Order> = None;
        for clause in query.sortClause() {
            let (expr, descending, kind) = sort_key(query, clause)?;
            let Some(order) = &mut order else {
                let (time, kind) = sorted_column(expr, kind)?;
                order = Some(Order {
                    time,
                    kind,
                    descending,
                    ties: Vec::new(),
                    arrival: None,
                });
                continue;
            };
            if order.arrival.is_some() {
                return Err("its order goes on after ctid");
            }
            if is_ctid(expr) {
                order.arrival = Some(descending);
                continue;
            }
            let (column, kind) = sorted_column(expr, kind)?;
            order.ties.push(Tie {
                column,
                kind,
                descending,
                nulls_first: clause.nulls_first(),
            });
        }
        order.ok_or("it has no order")
    }
}

/// A sort key: its expression, whether it is descending, and the type that its operator compares, of which the operator
/// is in the given family.
type SortOf<'p> = (Expr<'p>, bool, (pg_sys::Oid, pg_sys::Oid));

fn sort_key<'p>(query: Query<'p>, clause: SortGroupClause<'p>) -> Result<SortOf<'p>, &'static str> {
    let mut targets = query.targetList().iter();
    let target = targets
        .find(|target| target.ressortgroupref() == clause.tleSortGroupRef())
        .ok_or("its order is not of columns")?;
    let (descending, family) =
        ports::ordering_operator(clause.sortop()).ok_or("its order is not a usual one")?;
    let (compared, _) = catalog::operand_types(clause.sortop());
    Ok((target.expr(), descending, (compared, family)))
}

/// The column that a sort key is, and how it is read, if it is of times or numbers in their default order.
fn sorted_column(
    expr: Expr<'_>,
    (compared, family): (pg_sys::Oid, pg_sys::Oid),
) -> Result<(i16, Kind), &'static str> {
    let kind = Kind::of_type(compared).filter(|kind| kind.is_ordered());
    let default = catalog::btree_family(catalog::base_type(expr.type_of()));
    match (column(expr), kind) {
        (Some(column), Some(kind)) if family == default => Ok((column, kind)),
        _ => Err("its order is not of columns of times or numbers"),
    }
}

fn is_ctid(expr: Expr<'_>) -> bool {
    expr.as_var().is_some_and(|column| {
        column.varlevelsup() == 0
            && i32::from(column.varattno()) == pg_sys::SelfItemPointerAttributeNumber
    })
}

/// The columns of a sub-select.
fn outputs(query: Query<'_>) -> Vec<Output> {
    let output = |target: TargetEntry<'_>| match target.expr().kind() {
        ExprKind::Var(var) => column(var.as_expr()).map_or(Output::Other, Output::Column),
        _ => Output::Other,
    };
    query.targetList().iter().map(output).collect()
}
