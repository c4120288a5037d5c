//! What the planner asks the support function of a set-returning function.

use pgrx::datum::Internal;
use pgrx::pg_sys;

use super::tree::{Expr, Node, RowsRequest, View, plan_field};

/// The request for the number of rows of a call that is the argument of a support function; `None` if the planner asks
/// something else. SQL cannot call such a function, as it has no values of type internal.
pub fn rows_request<'a>(argument: Internal) -> Option<RowsRequest<'a>> {
    let request: Option<Expr<'a>> = plan_field(argument.unwrap()?.cast_mut_ptr());
    request?.downcast()
}

/// The result of a support function that answers a request.
pub fn answered(request: RowsRequest<'_>, rows: f64) -> Internal {
    request.set_rows(rows);
    Internal::from(Some(pg_sys::Datum::from(request.as_ptr())))
}

/// The result of a support function that has no answer: a null pointer, which is not an SQL NULL.
pub fn no_answer() -> Internal {
    Internal::from(Some(pg_sys::Datum::null()))
}
