//! Windows of a query, and calls of window functions.

use pgrx::pg_sys::Oid;

use super::expression::Expr;
use super::list::List;
use super::query::SortGroupClause;
use super::view::views;

views! {
    /// A window of a query.
    WindowClause of WindowClause {
        frameOptions: i32;
        winref: u32;
    } {
        partitionClause: List<'p, SortGroupClause<'p>>;
        orderClause: List<'p, SortGroupClause<'p>>;
        startOffset: Option<Expr<'p>>;
        endOffset: Option<Expr<'p>>;
        /// The conditions on the results of the window's functions. From version 17 on each call has its own.
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        runCondition: List<'p, Expr<'p>>;
    } {}

    /// A call of a window function.
    WindowFunc of WindowFunc {
        winfnoid: Oid;
        wintype: Oid;
        wincollid: Oid;
        inputcollid: Oid;
        winref: u32;
        winstar: bool;
        winagg: bool;
    } {
        args: List<'p, Expr<'p>>;
        aggfilter: Option<Expr<'p>>;
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        runCondition: List<'p, RunCondition<'p>>;
    } {}
}

#[cfg(not(any(feature = "pg15", feature = "pg16")))]
views! {
    /// A condition on the result of a call.
    RunCondition of WindowFuncRunCondition {
        opno: Oid;
        inputcollid: Oid;
        /// Whether the call is the left operand.
        wfunc_left: bool;
    } {
        /// The other operand.
        arg: Expr<'p>;
    } {}
}
