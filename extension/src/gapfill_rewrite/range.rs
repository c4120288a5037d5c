//! Where the buckets of a query with filled gaps begin and end.
//!
//! An argument of `lanes.time_bucket_gapfill` that is given decides. Otherwise the conditions of WHERE do that are
//! joined by AND and compare the time itself with something that is the same in all rows. Of several bounds, the
//! narrowest counts.

use pgrx::{PgSqlErrorCode, pg_sys};

use super::spec::{self, Bound, Role};
use crate::error;
use crate::pg::catalog;
use crate::pg::tree::{Expr, FuncExpr, Kind, Query, make, walk};

/// The arguments of a call of `lanes.time_bucket_gapfill`.
#[derive(Clone, Copy)]
pub struct Arguments<'p> {
    pub width: Expr<'p>,
    pub time: Expr<'p>,
    pub zone: Option<Expr<'p>>,
    start: Option<Expr<'p>>,
    finish: Option<Expr<'p>>,
}

impl<'p> Arguments<'p> {
    /// The arguments of a call as the parser left it: by position or by name, and without defaults.
    pub fn of(call: FuncExpr<'p>, has_zone: bool) -> Arguments<'p> {
        let mut given = [None; 5];
        for (place, argument) in call.args().iter().enumerate() {
            let (place, argument) = match argument.kind() {
                Kind::NamedArgExpr(named) => (named.argnumber() as usize, named.arg()),
                _ => (place, Some(argument)),
            };
            if let Some(slot) = given.get_mut(place) {
                *slot = argument;
            }
        }
        let [width, time, third, fourth, fifth] = given;
        let (Some(width), Some(time)) = (width, time) else {
            refuse(
                "lanes.time_bucket_gapfill needs a width and a time",
                super::functions::USE,
            )
        };
        let (zone, start, finish) = match has_zone {
            true => (third, fourth, fifth),
            false => (None, third, fourth),
        };
        let is_given = |argument: &Expr<'_>| {
            let constant = argument.stripped().as_const();
            constant.is_none_or(|constant| !constant.constisnull())
        };
        let arguments = Arguments {
            width,
            time,
            zone,
            start: start.filter(is_given),
            finish: finish.filter(is_given),
        };
        let fixed = [Some(width), zone, arguments.start, arguments.finish];
        if !fixed.into_iter().flatten().all(is_same_in_all_rows) {
            refuse(
                "the width, time zone, start and finish of lanes.time_bucket_gapfill must be the same in all rows",
                "Use constants, parameters, or expressions such as now() - interval '1 day'.",
            )
        }
        arguments
    }

    /// The call that finds a row's bucket.
    pub fn bucket_call(self) -> Expr<'p> {
        let mut arguments = vec![self.width, self.time];
        arguments.extend(self.zone);
        // The types of the arguments may be domains over those of the function.
        let base_type = |argument: &Expr<'_>| catalog::base_type(argument.type_of());
        let types: Vec<_> = arguments.iter().map(base_type).collect();
        let function = catalog::lanes_function(c"time_bucket", &types);
        let arguments: Vec<_> = arguments.into_iter().map(make::copy).collect();
        make::call(function, catalog::function_result(function), &arguments)
    }

    /// The call of `lanes.gapfill` for the columns of these roles, over a query's conditions.
    pub fn spec_call(self, roles: &[Role], query: Query<'p>) -> Expr<'p> {
        let bounds = self.bounds(query);
        let kinds: Vec<_> = bounds.iter().map(|bound| bound.0).collect();
        let zone = self.zone.unwrap_or_else(make::null_text);
        let mut arguments = vec![make::text(&spec::encode(roles, &kinds)), self.width, zone];
        arguments.extend(bounds.iter().map(|bound| bound.1));
        let arguments: Vec<_> = arguments.into_iter().map(make::copy).collect();
        make::call(spec_function(), pg_sys::BOOLOID, &arguments)
    }

    fn bounds(self, query: Query<'p>) -> Vec<(Bound, Expr<'p>)> {
        let of_where: Vec<_> = query
            .conjuncts()
            .into_iter()
            .filter_map(|condition| bound_of(condition, self.time))
            .collect();
        let side = |given: Option<Expr<'p>>, exact, is_side: fn(Bound) -> bool| match given {
            Some(given) => vec![(exact, given)],
            None => of_where
                .iter()
                .copied()
                .filter(|(bound, _)| is_side(*bound))
                .collect(),
        };
        let is_start = |bound| matches!(bound, Bound::From | Bound::After);
        let is_finish = |bound| matches!(bound, Bound::Before | Bound::To);
        let starts = side(self.start, Bound::From, is_start);
        let finishes = side(self.finish, Bound::Before, is_finish);
        if starts.is_empty() {
            unknown("start", ">=");
        }
        if finishes.is_empty() {
            unknown("finish", "<");
        }
        starts.into_iter().chain(finishes).collect()
    }
}

/// The function `lanes.gapfill`.
pub fn spec_function() -> pg_sys::Oid {
    catalog::lanes_function(c"gapfill", &[pg_sys::ANYOID])
}

/// The bound that a condition sets to a time, converted to the type of the time.
fn bound_of<'p>(condition: Expr<'p>, time: Expr<'p>) -> Option<(Bound, Expr<'p>)> {
    let operation = condition.as_op()?;
    let (left, right) = (operation.args().get(0)?, operation.args().get(1)?);
    let is_time = |side: Expr<'p>| side.stripped().equals(time.stripped());
    let (is_left, limit) = match (is_time(left), is_time(right)) {
        (true, false) => (true, right),
        (false, true) => (false, left),
        _ => return None,
    };
    if !is_same_in_all_rows(limit) || limit.is_volatile() {
        return None;
    }
    if !converts_exactly(limit.type_of(), time.type_of()) {
        return None;
    }
    let family = catalog::btree_family(time.type_of());
    let strategy = catalog::strategy(operation.opno(), family) as u32;
    let bound = match (strategy, is_left) {
        (pg_sys::BTLessStrategyNumber, true) | (pg_sys::BTGreaterStrategyNumber, false) => {
            Bound::Before
        }
        (pg_sys::BTLessEqualStrategyNumber, true)
        | (pg_sys::BTGreaterEqualStrategyNumber, false) => Bound::To,
        (pg_sys::BTGreaterEqualStrategyNumber, true)
        | (pg_sys::BTLessEqualStrategyNumber, false) => Bound::From,
        (pg_sys::BTGreaterStrategyNumber, true) | (pg_sys::BTLessStrategyNumber, false) => {
            Bound::After
        }
        _ => return None,
    };
    Some((
        bound,
        make::cast(make::copy(limit), catalog::base_type(time.type_of()))?,
    ))
}

/// Whether a limit keeps its meaning when it is converted to the type of the time: no part of it is lost, and all its
/// values are in range.
fn converts_exactly(from: pg_sys::Oid, to: pg_sys::Oid) -> bool {
    use pg_sys::*;
    let (from, to) = (catalog::base_type(from), catalog::base_type(to));
    from == to
        || matches!(
            (from, to),
            (DATEOID, TIMESTAMPOID | TIMESTAMPTZOID)
                | (TIMESTAMPOID, TIMESTAMPTZOID)
                | (TIMESTAMPTZOID, TIMESTAMPOID)
                | (INT2OID, INT4OID | INT8OID)
                | (INT4OID, INT8OID)
        )
}

/// Whether an expression contains neither columns of any query nor sub-selects nor aggregates.
fn is_same_in_all_rows(expr: Expr<'_>) -> bool {
    !expr.has_subplan()
        && !walk::expression(expr, &mut |node, _| {
            matches!(
                node.kind(),
                Kind::Var(_) | Kind::Aggref(_) | Kind::WindowFunc(_) | Kind::GroupingFunc(_)
            )
        })
}

fn unknown(which: &str, operator: &str) -> ! {
    error::raise(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("lanes.time_bucket_gapfill does not know the {which} of its buckets"),
        format!(
            "Compare the time in WHERE, as in ts {operator} '2026-01-01', or give {which} => '2026-01-01'."
        ),
    )
}

fn refuse(message: &str, hint: &str) -> ! {
    error::raise(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message,
        hint,
    )
}
