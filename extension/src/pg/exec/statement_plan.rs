//! A statement as a plan under execution, whose rows are read by whoever started it, and not sent to a client.
//!
//! So the reader can take vectors from a node of this extension instead of rows.

use pgrx::prelude::*;

use super::child::Child;
use crate::pg::executor;
use crate::pg::statement::Statement;
use crate::pg::tree::View;

impl Statement {
    /// Starts the statement and calls `visit` with its plan under execution, of which `visit` reads as many rows as it
    /// wants. PostgreSQL has checked the caller's privileges by then. The execution ends when `visit` returns.
    pub fn with_plan<T>(&self, arguments: &[pg_sys::Datum], visit: impl FnOnce(Child) -> T) -> T {
        Spi::connect(|_| {
            // SAFETY: connected to SPI, whose memory is the current one. The statement consists of one query that
            // returns rows, so its plan has one source and one statement. The plan is released after its execution has
            // ended. If an error is raised, the end of the transaction releases everything.
            unsafe {
                let parameters = self.parameters(arguments);
                let sources = pg_sys::SPI_plan_get_plan_sources(self.plan());
                let source = (*(*sources).elements).ptr_value.cast();
                let owner = pg_sys::CurrentResourceOwner;
                let none = std::ptr::null_mut();
                let plan = pg_sys::GetCachedPlan(source, parameters, owner, none);
                let query = pg_sys::CreateQueryDesc(
                    (*(*(*plan).stmt_list).elements).ptr_value.cast(),
                    self.sql.as_ptr(),
                    pg_sys::GetActiveSnapshot(),
                    std::ptr::null_mut(),
                    pg_sys::None_Receiver,
                    parameters,
                    none,
                    0,
                );
                pg_sys::ExecutorStart(query, 0);
                let memory = (*(*query).estate).es_query_cxt;
                let result = executor::in_context(memory, || visit(Child::at((*query).planstate)));
                pg_sys::ExecutorFinish(query);
                pg_sys::ExecutorEnd(query);
                pg_sys::FreeQueryDesc(query);
                pg_sys::ReleaseCachedPlan(plan, owner);
                result
            }
        })
    }
}
