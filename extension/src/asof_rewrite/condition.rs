//! Reads a marker's call: the right side's time, the direction of the search, the tolerance, and the order of ties.

use pgrx::PgSqlErrorCode;
use pgrx::pg_sys;

use super::marker::{self, Functions, Marker};
use super::tolerance;
use crate::error;
use crate::pg::{names, tree};

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
pub struct SortKey {
    /// The expression, in the terms of the join's query.
    pub expression: *mut pg_sys::Node,
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
    ///
    /// # Safety
    /// Runs inside a transaction.
    pub unsafe fn of_type(kind: pg_sys::Oid) -> Operators {
        let (mut less, mut equal, mut greater, mut hashable) = (
            pg_sys::InvalidOid,
            pg_sys::InvalidOid,
            pg_sys::InvalidOid,
            false,
        );
        // SAFETY: catalogue look-ups.
        unsafe {
            pg_sys::get_sort_group_operators(
                kind,
                true,
                true,
                true,
                &mut less,
                &mut equal,
                &mut greater,
                &mut hashable,
            );
        }
        Operators {
            less,
            equal,
            greater,
        }
    }
}

/// One direction of a search, with the conditions that candidates must meet.
#[derive(Clone, Debug)]
pub struct Look {
    /// The direction.
    pub direction: Direction,
    /// The comparison and, with a tolerance, the bound.
    pub conditions: Vec<*mut pg_sys::Node>,
}

/// A marker's call. All expressions are in the terms of the join's query.
#[derive(Clone, Debug)]
pub struct Asof {
    /// The right side's time.
    pub time: SortKey,
    /// The left side's time, or a constant.
    pub left: *mut pg_sys::Node,
    /// One search, or two (backward and forward) for the nearest row.
    pub looks: Vec<Look>,
    /// The key that decides among equal times, if the user names one.
    pub tie: Option<SortKey>,
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

unsafe fn sides(expression: *mut pg_sys::Node, right: i32) -> Sides {
    let mut sides = Sides::default();
    // SAFETY: the visitor reads live nodes; the cast follows the tag.
    unsafe {
        tree::walk_expression(expression, &mut |node, depth| {
            if (*node).type_ == pg_sys::NodeTag::T_Var {
                let variable: *const pg_sys::Var = node.cast();
                if (*variable).varlevelsup == depth {
                    if (*variable).varno == right {
                        sides.right = true;
                    } else {
                        sides.left = true;
                    }
                }
            }
            false
        });
    }
    sides
}

/// The arguments of a call in their declared order; `None` for an omitted argument.
unsafe fn arguments(call: *const pg_sys::FuncExpr) -> [Option<*mut pg_sys::Node>; 4] {
    let mut found = [None; 4];
    // SAFETY: a live call of at most four arguments; the cast follows the tag.
    unsafe {
        for (place, argument) in tree::elements::<pg_sys::Node>((*call).args)
            .into_iter()
            .enumerate()
        {
            if tree::is_a(argument, pg_sys::NodeTag::T_NamedArgExpr) {
                let named: *const pg_sys::NamedArgExpr = argument.cast();
                found[(*named).argnumber as usize] = Some((*named).arg.cast());
            } else {
                found[place] = Some(argument);
            }
        }
    }
    found
}

/// Reads a marker's call in a join whose right side is range-table entry `right`. It is an error if the call is illegal.
///
/// # Safety
/// A live call in the terms of the join's query.
pub unsafe fn understand(
    functions: &Functions,
    marker: Marker,
    call: *mut pg_sys::FuncExpr,
    right: i32,
) -> Asof {
    // SAFETY: the caller's promise.
    unsafe {
        let arguments = arguments(call);
        if pg_sys::contain_volatile_functions((*call).args.cast()) || nests(functions, call) {
            misuse(
                marker,
                "its arguments must not contain volatile functions or another marker",
                "Compute the value in a sub-select first.",
            );
        }
        let (tolerance, tie) = (
            arguments[marker.required()],
            arguments[marker.required() + 1],
        );
        let tie = tie.map(|tie| tie_key(marker, tie));
        let (Some(first), second) = (arguments[0], arguments[1]) else {
            misuse(marker, "its condition is missing", marker::PLACE);
        };
        match (marker, second) {
            (Marker::Nearest, Some(second)) => {
                nearest(marker, first, second, tolerance, tie, right)
            }
            _ => directed(marker, first, tolerance, tie, right),
        }
    }
}

unsafe fn nests(functions: &Functions, call: *mut pg_sys::FuncExpr) -> bool {
    // SAFETY: the visitor reads live nodes.
    unsafe {
        tree::walk_expression((*call).args.cast(), &mut |node, _| {
            functions.marker(node).is_some()
        })
    }
}

unsafe fn tie_key(marker: Marker, tie: *mut pg_sys::Node) -> SortKey {
    // SAFETY: a live expression.
    unsafe {
        let kind = pg_sys::exprType(tie);
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
}

const ONE_COMPARISON: &str = "Compare an expression of the right side with one of the left side by one of <= < >= >, as in: lanes.asof(q.ts <= t.ts).";

/// `lanes.asof(condition, …)`.
unsafe fn directed(
    marker: Marker,
    condition: *mut pg_sys::Node,
    tolerance: Option<*mut pg_sys::Node>,
    tie: Option<SortKey>,
    right: i32,
) -> Asof {
    // SAFETY: live expressions; each cast follows the tag.
    unsafe {
        if !tree::is_a(condition, pg_sys::NodeTag::T_OpExpr) {
            misuse(
                marker,
                "its condition must be exactly one comparison",
                ONE_COMPARISON,
            );
        }
        let comparison: *const pg_sys::OpExpr = condition.cast();
        let operands = tree::elements::<pg_sys::Node>((*comparison).args);
        let [first, second] = operands[..] else {
            misuse(
                marker,
                "its condition must be exactly one comparison",
                ONE_COMPARISON,
            );
        };
        let right_is_first = right_is_first(marker, first, second, right);
        let (time, left) = if right_is_first {
            (first, second)
        } else {
            (second, first)
        };
        let (mut first_type, mut second_type) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
        pg_sys::op_input_types((*comparison).opno, &mut first_type, &mut second_type);
        let declared = if right_is_first {
            first_type
        } else {
            second_type
        };
        let family = family_of_times(marker, declared);
        let strategy = pg_sys::get_op_opfamily_strategy((*comparison).opno, family);
        // `left <= right` means `right >= left`.
        let backward = match strategy {
            LESS | LESS_EQUAL => right_is_first,
            GREATER | GREATER_EQUAL => !right_is_first,
            _ => misuse(
                marker,
                "its condition must be a comparison by <=, <, >= or >",
                ONE_COMPARISON,
            ),
        };
        let direction = if backward {
            Direction::Backward
        } else {
            Direction::Forward
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
}

/// `lanes.asof_nearest(a, b, …)`.
unsafe fn nearest(
    marker: Marker,
    first: *mut pg_sys::Node,
    second: *mut pg_sys::Node,
    tolerance: Option<*mut pg_sys::Node>,
    tie: Option<SortKey>,
    right: i32,
) -> Asof {
    // SAFETY: live expressions.
    unsafe {
        let (time, left) = if right_is_first(marker, first, second, right) {
            (first, second)
        } else {
            (second, first)
        };
        // Distances are between values of one type.
        let mut operands = [time, left];
        let common = pg_sys::select_common_type(
            std::ptr::null_mut(),
            tree::list(&operands),
            c"lanes.asof_nearest".as_ptr(),
            std::ptr::null_mut(),
        );
        let common = tolerance::measured_type(common).unwrap_or_else(|| {
            misuse(
                marker,
                &format!("times of type {} have no distance", names::type_name(common)),
                "The nearest can be found among timestamptz, timestamp, date, integer, float and numeric values.",
            )
        });
        for operand in &mut operands {
            *operand = pg_sys::coerce_to_common_type(
                std::ptr::null_mut(),
                *operand,
                common,
                c"lanes.asof_nearest".as_ptr(),
            );
        }
        let [time, left] = operands;
        let family = family_of_times(marker, common);
        let reach = tolerance.map(|tolerance| reach(marker, left, tolerance, right));
        let look = |direction, name| {
            let mut conditions = vec![operator(name, time, left)];
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
}

/// Whether the first of two expressions is the right side's. It is an error if they are not one of each side.
unsafe fn right_is_first(
    marker: Marker,
    first: *mut pg_sys::Node,
    second: *mut pg_sys::Node,
    right: i32,
) -> bool {
    // SAFETY: live expressions.
    unsafe {
        match (sides(first, right), sides(second, right)) {
            (
                Sides {
                    left: false,
                    right: true,
                },
                Sides { right: false, .. },
            ) => true,
            (
                Sides { right: false, .. },
                Sides {
                    left: false,
                    right: true,
                },
            ) => false,
            _ => misuse(
                marker,
                "it must compare an expression of the right side of the join with one of the left side",
                ONE_COMPARISON,
            ),
        }
    }
}

/// The default B-tree family of times of a type.
unsafe fn family_of_times(marker: Marker, kind: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: catalogue look-ups.
    unsafe {
        let cache = pg_sys::lookup_type_cache(kind, pg_sys::TYPECACHE_BTREE_OPFAMILY as i32);
        let family = (*cache).btree_opf;
        if family == pg_sys::InvalidOid || pg_sys::type_is_collatable(kind) {
            misuse(
                marker,
                &format!("values of type {} are not times", names::type_name(kind)),
                "Compare timestamptz, timestamp, date, integer, float or numeric values.",
            );
        }
        family
    }
}

unsafe fn operators(family: pg_sys::Oid, kind: pg_sys::Oid) -> Operators {
    // SAFETY: catalogue look-ups.
    let member =
        |strategy: i32| unsafe { pg_sys::get_opfamily_member(family, kind, kind, strategy as i16) };
    Operators {
        less: member(LESS),
        equal: member(EQUAL),
        greater: member(GREATER),
    }
}

/// The tolerance, of a type that can be added to the left side's time. Evaluating it is an error if it is negative or
/// NULL.
unsafe fn reach(
    marker: Marker,
    left: *mut pg_sys::Node,
    given: *mut pg_sys::Node,
    right: i32,
) -> *mut pg_sys::Node {
    // SAFETY: live expressions.
    unsafe {
        if sides(given, right).right {
            misuse(
                marker,
                "its tolerance must not depend on the right side of the join",
                "Add such a condition to the ON beside the marker: it applies to each candidate.",
            );
        }
        tolerance::checked(given, pg_sys::exprType(left))
    }
}

/// `time >= left - reach`, or `time <= left + reach`.
unsafe fn bound(
    time: *mut pg_sys::Node,
    left: *mut pg_sys::Node,
    reach: *mut pg_sys::Node,
    direction: Direction,
) -> *mut pg_sys::Node {
    // SAFETY: live expressions.
    unsafe {
        match direction {
            Direction::Backward => operator(c">=", time, operator(c"-", left, reach)),
            Direction::Forward => operator(c"<=", time, operator(c"+", left, reach)),
        }
    }
}

/// An operator of PostgreSQL's own on copies of two expressions.
unsafe fn operator(
    name: &std::ffi::CStr,
    first: *mut pg_sys::Node,
    second: *mut pg_sys::Node,
) -> *mut pg_sys::Node {
    // SAFETY: live expressions.
    unsafe {
        pg_sys::make_op(
            std::ptr::null_mut(),
            tree::system_name(name),
            tree::copy(first),
            tree::copy(second),
            std::ptr::null_mut(),
            -1,
        )
        .cast()
    }
}
