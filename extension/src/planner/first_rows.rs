//! Queries that need only the first rows of an order.

use pgrx::pg_sys;

use crate::pg::tree::{Expr, Query};

/// Whether a query returns only the first rows of what it joins, unchanged, in the order of its path keys.
pub fn needs_first_rows(query: Query<'_>) -> bool {
    let is_limited = query.limitCount().is_some_and(|limit| {
        let constant = limit.as_const();
        constant.is_none_or(|constant| !constant.constisnull())
    });
    is_limited
        && query.limitOption() != pg_sys::LimitOption::LIMIT_OPTION_WITH_TIES
        && query.commandType() == pg_sys::CmdType::CMD_SELECT
        && query.groupClause().is_empty()
        && query.groupingSets().is_empty()
        && query.distinctClause().is_empty()
        && query.rowMarks().is_empty()
        && query.setOperations().is_none()
        && !(query.hasAggs() || query.hasWindowFuncs() || query.hasTargetSRFs())
}

/// The number of rows that LIMIT and OFFSET ask for, if both are constants and this is between 1 and `most`.
pub fn constant_limit(query: Query<'_>, most: usize) -> Option<usize> {
    let number = |expression: Expr<'_>| {
        let value = expression.as_const()?.value()?;
        usize::try_from(value.datum().value() as i64).ok()
    };
    let count = number(query.limitCount()?)?;
    let offset = match query.limitOffset() {
        None => 0,
        Some(offset) => number(offset)?,
    };
    let limit = count.checked_add(offset)?;
    (1..=most).contains(&limit).then_some(limit)
}
