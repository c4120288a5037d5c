//! Reads a marker's call: the right side's time, the direction of the search, the tolerance, and the order of ties.

use pgrx::PgSqlErrorCode;
use pgrx::pg_sys;

use super::marker::{self, Functions, Marker};
use super::tolerance;
use crate::error;
use crate::pg::tree::{Expr, FuncExpr, Kind, parse, walk};
use crate::pg::{catalog, names};

const LESS: i32 = pg_sys::BTLessStrategyNumber as i32;
const LESS_EQUAL: i32 = pg_sys::BTLessEqualStrategyNumber as i32;
const EQUAL: i32 = pg_sys::BTEqualStrategyNumber as i32;
const GREATER_EQUAL: i32 = pg_sys::BTGreaterEqualStrategyNumber as i32;
const GREATER: i32 = pg_sys::BTGreaterStrategyNumber as i32;

/// The direction in which a match is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The latest row at or before the left side's time; of equal rows the last.
    Backward,
    /// The earliest row at or after the left side's time; of equal rows the first.
    Forward,
}

/// A sort key: an expression and the operators of its order.
#[derive(Clone, Copy, Debug)]
pub struct SortKey<'p> {
    /// The expression, in the terms of the join's query.
    pub expression: Expr<'p>,
    /// The operators `<`, `=` and `>` of one family.
    pub operators: Operators,
}

/// The operators of an order.
#[derive(Clone, Copy, Debug)]
pub struct Operators {
    /// `<`
    pub less: pg_sys::Oid,
    /// `=`
    pub equal: pg_sys::Oid,
    /// `>`
    pub greater: pg_sys::Oid,
}

impl Operators {
    /// The default order of a type. A type without an order is an error.
    pub fn of_type(kind: pg_sys::Oid) -> Operators {
        let (less, equal, greater) = catalog::sort_operators(kind);
        Operators {
            less,
            equal,
            greater,
        }
    }
}

/// One direction of a search, with the conditions that candidates must meet.
#[derive(Clone, Debug)]
pub struct Look<'p> {
    /// The direction.
    pub direction: Direction,
    /// The comparison and, with a tolerance, the bound.
    pub conditions: Vec<Expr<'p>>,
}

/// A marker's call. All expressions are in the terms of the join's query.
#[derive(Clone, Debug)]
pub struct Asof<'p> {
    /// The right side's time.
    pub time: SortKey<'p>,
    /// The left side's time, or a constant.
    pub left: Expr<'p>,
    /// One search, or two (backward and forward) for the nearest row.
    pub looks: Vec<Look<'p>>,
    /// The key that decides among equal times, if the user names one.
    pub tie: Option<SortKey<'p>>,
}

fn misuse(marker: Marker, what: &str, hint: &str) -> ! {
    error::raise(
        PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
        format!("{}: {what}", marker.name()),
        hint,
    )
}

/// The sides of a join that an expression refers to.
#[derive(Clone, Copy, Default)]
struct Sides {
    left: bool,
    right: bool,
}

fn sides(expression: Expr<'_>, right: i32) -> Sides {
    let mut sides = Sides::default();
    walk::expression(expression, &mut |node, depth| {
        if let Kind::Var(var) = node.kind()
            && var.varlevelsup() == depth
        {
            match var.varno() == right {
                true => sides.right = true,
                false => sides.left = true,
            }
        }
        false
    });
    sides
}

/// The arguments of a call in their declared order, of which there are at most four; `None` for an omitted argument.
fn arguments(call: FuncExpr<'_>) -> [Option<Expr<'_>>; 4] {
    let mut found = [None; 4];
    for (place, argument) in call.args().iter().enumerate() {
        match argument.kind() {
            Kind::NamedArgExpr(named) => found[named.argnumber() as usize] = named.arg(),
            _ => found[place] = Some(argument),
        }
    }
    found
}

/// Reads a marker's call in a join whose right side is range-table entry `right`. It is an error if
/// the call is illegal.
pub fn understand<'p>(
    functions: &Functions,
    marker: Marker,
    call: FuncExpr<'p>,
    right: i32,
) -> Asof<'p> {
    let is_illegal = |argument: Expr<'_>| {
        argument.is_volatile()
            || walk::expression(argument, &mut |node, _| functions.marker(node).is_some())
    };
    if call.args().iter().any(is_illegal) {
        misuse(
            marker,
            "its arguments must not contain volatile functions or another marker",
            "Compute the value in a sub-select first.",
        );
    }
    let arguments = arguments(call);
    let (tolerance, tie) = (
        arguments[marker.required()],
        arguments[marker.required() + 1],
    );
    let tie = tie.map(|tie| tie_key(marker, tie));
    let (Some(first), second) = (arguments[0], arguments[1]) else {
        misuse(marker, "its condition is missing", marker::PLACE);
    };
    match (marker, second) {
        (Marker::Nearest, Some(second)) => nearest(marker, first, second, tolerance, tie, right),
        _ => directed(marker, first, tolerance, tie, right),
    }
}

fn tie_key(marker: Marker, tie: Expr<'_>) -> SortKey<'_> {
    let kind = tie.type_of();
    if kind == pg_sys::UNKNOWNOID {
        misuse(
            marker,
            "its tie must not be a constant",
            "Name what decides among rows of equal time, as in: tie => q.seq.",
        );
    }
    SortKey {
        expression: tie,
        operators: Operators::of_type(kind),
    }
}

const ONE_COMPARISON: &str = "Compare an expression of the right side with one of the left side by one of <= < >= >, as in: lanes.asof(q.ts <= t.ts).";

/// `lanes.asof(condition, …)`.
fn directed<'p>(
    marker: Marker,
    condition: Expr<'p>,
    tolerance: Option<Expr<'p>>,
    tie: Option<SortKey<'p>>,
    right: i32,
) -> Asof<'p> {
    let comparison = condition.as_op();
    let operands = comparison.map(|comparison| comparison.args().iter().collect::<Vec<_>>());
    let (Some(comparison), Some(&[first, second])) = (comparison, operands.as_deref()) else {
        misuse(
            marker,
            "its condition must be exactly one comparison",
            ONE_COMPARISON,
        );
    };
    let right_is_first = right_is_first(marker, first, second, right);
    let (first_type, second_type) = catalog::operand_types(comparison.opno());
    let (time, left, declared) = match right_is_first {
        true => (first, second, first_type),
        false => (second, first, second_type),
    };
    let family = family_of_times(marker, declared);
    // `left <= right` means `right >= left`.
    let backward = match catalog::strategy(comparison.opno(), family) {
        LESS | LESS_EQUAL => right_is_first,
        GREATER | GREATER_EQUAL => !right_is_first,
        _ => misuse(
            marker,
            "its condition must be a comparison by <=, <, >= or >",
            ONE_COMPARISON,
        ),
    };
    let direction = match backward {
        true => Direction::Backward,
        false => Direction::Forward,
    };
    let mut conditions = vec![condition];
    if let Some(tolerance) = tolerance {
        let reach = reach(marker, left, tolerance, right);
        conditions.push(bound(time, left, reach, direction));
    }
    Asof {
        time: SortKey {
            expression: time,
            operators: operators(family, declared),
        },
        left,
        looks: vec![Look {
            direction,
            conditions,
        }],
        tie,
    }
}

/// `lanes.asof_nearest(a, b, …)`.
fn nearest<'p>(
    marker: Marker,
    first: Expr<'p>,
    second: Expr<'p>,
    tolerance: Option<Expr<'p>>,
    tie: Option<SortKey<'p>>,
    right: i32,
) -> Asof<'p> {
    let operands = match right_is_first(marker, first, second, right) {
        true => [first, second],
        false => [second, first],
    };
    // Distances are between values of one type.
    let context = c"lanes.asof_nearest";
    let common = parse::common_type(&operands, context);
    let common = tolerance::measured_type(common).unwrap_or_else(|| {
        misuse(
            marker,
            &format!("times of type {} have no distance", names::type_name(common)),
            "The nearest can be found among timestamptz, timestamp, date, integer, float and numeric values.",
        )
    });
    let [time, left] = operands.map(|operand| parse::coerced_to_common(operand, common, context));
    let family = family_of_times(marker, common);
    let reach = tolerance.map(|tolerance| reach(marker, left, tolerance, right));
    let look = |direction, name| {
        let mut conditions = vec![parse::operator(name, time, left)];
        if let Some(reach) = reach {
            conditions.push(bound(time, left, reach, direction));
        }
        Look {
            direction,
            conditions,
        }
    };
    Asof {
        time: SortKey {
            expression: time,
            operators: operators(family, common),
        },
        left,
        looks: vec![
            look(Direction::Backward, c"<="),
            look(Direction::Forward, c">"),
        ],
        tie,
    }
}

/// Whether the first of two expressions is the right side's. It is an error if they are not one of each side.
fn right_is_first(marker: Marker, first: Expr<'_>, second: Expr<'_>, right: i32) -> bool {
    let (first, second) = (sides(first, right), sides(second, right));
    let is_right = |sides: Sides| sides.right && !sides.left;
    match () {
        () if is_right(first) && !second.right => true,
        () if is_right(second) && !first.right => false,
        () => misuse(
            marker,
            "it must compare an expression of the right side of the join with one of the left side",
            ONE_COMPARISON,
        ),
    }
}

/// The default B-tree family of times of a type.
fn family_of_times(marker: Marker, kind: pg_sys::Oid) -> pg_sys::Oid {
    let family = catalog::btree_family(kind);
    if family == pg_sys::InvalidOid || catalog::is_collatable(kind) {
        misuse(
            marker,
            &format!("values of type {} are not times", names::type_name(kind)),
            "Compare timestamptz, timestamp, date, integer, float or numeric values.",
        );
    }
    family
}

fn operators(family: pg_sys::Oid, kind: pg_sys::Oid) -> Operators {
    let member = |strategy| catalog::family_member(family, kind, kind, strategy);
    Operators {
        less: member(LESS),
        equal: member(EQUAL),
        greater: member(GREATER),
    }
}

/// The tolerance, of a type that can be added to the left side's time. Evaluating it is an error if it is negative or
/// NULL.
fn reach<'p>(marker: Marker, left: Expr<'p>, given: Expr<'p>, right: i32) -> Expr<'p> {
    if sides(given, right).right {
        misuse(
            marker,
            "its tolerance must not depend on the right side of the join",
            "Add such a condition to the ON beside the marker: it applies to each candidate.",
        );
    }
    tolerance::checked(given, left.type_of())
}

/// `time >= left - reach`, or `time <= left + reach`.
fn bound<'p>(time: Expr<'p>, left: Expr<'p>, reach: Expr<'p>, direction: Direction) -> Expr<'p> {
    let (comparison, sum) = match direction {
        Direction::Backward => (c">=", c"-"),
        Direction::Forward => (c"<=", c"+"),
    };
    parse::operator(comparison, time, parse::operator(sum, left, reach))
}
