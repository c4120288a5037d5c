//! What the planner asks the support function of a set-returning function.

use pgrx::datum::Internal;
use pgrx::pg_sys;

use super::tree::{Expr, plan_field};

/// The question how many rows a call returns. The planner reads the answer from the request itself.
pub struct RowsRequest<'a>(&'a mut pg_sys::SupportRequestRows);

impl<'a> RowsRequest<'a> {
    /// The request that is the argument of a support function; `None` if the planner asks something else.
    pub fn of(argument: Internal) -> Option<RowsRequest<'a>> {
        let request: *mut pg_sys::SupportRequestRows = argument.unwrap()?.cast_mut_ptr();
        // SAFETY: SQL cannot call a function with an argument of type internal. The planner passes a request, which is a
        // node of the kind that its tag names, and does not use it during the call.
        unsafe {
            let is_rows = (*request).type_ == pg_sys::NodeTag::T_SupportRequestRows;
            is_rows.then(|| RowsRequest(&mut *request))
        }
    }

    /// The call.
    pub fn call(&self) -> Option<Expr<'a>> {
        plan_field(self.0.node)
    }

    /// The result of the support function if it has no answer: a null pointer, which is not an SQL NULL.
    pub fn no_answer() -> Internal {
        Internal::from(Some(pg_sys::Datum::null()))
    }

    /// Answers the request. The result is that of the support function.
    pub fn answer(self, rows: f64) -> Internal {
        self.0.rows = rows;
        Internal::from(Some(pg_sys::Datum::from(
            std::ptr::from_mut(self.0).cast::<std::ffi::c_void>(),
        )))
    }
}
