//! The executor's hook: the start and end of an execution, for gathered rows
//! ([`crate::table::pending_rows`]) and for the spare memory of scans.

use pgrx::pg_sys;

use crate::pg::hooks::{self, ExecutorHook};
use crate::pg::insert_indexes::InsertTarget;
use crate::pg::tree::QueryDesc;
use crate::table::kept;
use crate::table::pending_rows::{self, Gathers};
use crate::table::row_numbers;
use crate::table::scan::spare_memory;
use crate::table::speculation;

/// The depth of an execution that is not part of another.
const OUTERMOST: usize = 1;

/// Installs the hook and the callbacks of transactions. Called from `_PG_init`.
pub fn register() {
    hooks::chain_executor::<Execution>();
    hooks::on_abort(aborted);
    hooks::on_end(ended);
}

/// The executor's hook of this extension: pending rows and spare memory begin and end with an execution.
struct Execution;

impl ExecutorHook for Execution {
    fn before(query: QueryDesc<'_>) -> usize {
        let gathers = match gathers(query) {
            true => Gathers::Rows(InsertTarget::of(query)),
            false => Gathers::Nothing,
        };
        spare_memory::query_begins();
        pending_rows::begin(gathers)
    }

    fn after(depth: usize) {
        pending_rows::end(depth);
        if depth == OUTERMOST {
            spare_memory::queries_ended();
            kept::forget_contents();
        }
    }
}

/// Whether nothing in a query can use the tuple ids of rows that it inserts.
fn gathers(query: QueryDesc<'_>) -> bool {
    let Some(plan) = query.plannedstmt() else {
        return false;
    };
    if plan.commandType() == pg_sys::CmdType::CMD_INSERT {
        return !plan.hasReturning() && !plan.hasModifyingCTE();
    }
    // CREATE TABLE AS and REFRESH MATERIALIZED VIEW insert the rows of a SELECT.
    matches!(
        query.destination(),
        Some(pg_sys::CommandDest::DestIntoRel | pg_sys::CommandDest::DestTransientRel)
    )
}

/// Ends all executions of an aborted transaction or subtransaction. It neither raises errors nor allocates.
fn aborted(nest_level: i32) {
    pending_rows::forget(nest_level);
    speculation::forget(nest_level);
    // The locks of a subtransaction are released too, so pages may move.
    ended();
    if nest_level == 0 {
        spare_memory::queries_ended();
    }
}

/// Forgets what is kept within a transaction. It neither raises errors nor allocates.
fn ended() {
    kept::forget();
    row_numbers::forget();
}
