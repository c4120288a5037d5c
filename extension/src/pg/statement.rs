//! SQL statements of ours, planned once a session.
//!
//! A statement is a `static`; each session keeps its own plan of it. Statements name all that they use with its schema,
//! operators too: the caller's `search_path` decides nothing. (`SET search_path` at a function that returns rows would
//! be carried out once a row.)

use std::sync::atomic::{AtomicPtr, Ordering};

use pgrx::prelude::*;

/// A statement. It is executed by [`Statement::each_row`] or [`Statement::run`].
pub struct Statement {
    sql: &'static std::ffi::CStr,
    arguments: &'static [pg_sys::BuiltinOid],
    /// Whether it sees what the calling query sees. Otherwise it sees what is committed by now.
    is_read_only: bool,
    /// `CURSOR_OPT_…`: how it is planned.
    planning: u32,
    /// The session's plan, once it has been executed.
    plan: AtomicPtr<pg_sys::_SPI_plan>,
}

/// A row of an answer.
pub struct Row {
    tuple: pg_sys::HeapTuple,
    descriptor: pg_sys::TupleDesc,
}

impl Row {
    /// A column, from 1; `None` if it is NULL.
    pub fn get<T: FromDatum>(&self, column: i32) -> Option<T> {
        let mut is_null = false;
        // SAFETY: the answer's row, while it is there.
        unsafe {
            let value =
                pg_sys::SPI_getbinval(self.tuple, self.descriptor, column, &raw mut is_null);
            T::from_datum(value, is_null)
        }
    }
}

impl Statement {
    /// A statement that sees what the calling query sees.
    pub const fn reading(
        sql: &'static std::ffi::CStr,
        arguments: &'static [pg_sys::BuiltinOid],
    ) -> Statement {
        Statement {
            sql,
            arguments,
            is_read_only: true,
            planning: 0,
            plan: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// A statement that may change something, and sees what is committed by now.
    pub const fn changing(
        sql: &'static std::ffi::CStr,
        arguments: &'static [pg_sys::BuiltinOid],
    ) -> Statement {
        let mut statement = Statement::reading(sql, arguments);
        statement.is_read_only = false;
        statement
    }

    /// The statement, planned for the values of its arguments each time: they decide which plan is good.
    pub const fn planned_with_values(mut self) -> Statement {
        self.planning = pg_sys::CURSOR_OPT_CUSTOM_PLAN;
        self
    }

    /// Executes the statement.
    pub fn run(&self, arguments: &[pg_sys::Datum]) {
        self.each_row(arguments, |_| {});
    }

    /// Executes the statement, and calls `visit` with each row of its answer.
    pub fn each_row(&self, arguments: &[pg_sys::Datum], mut visit: impl FnMut(Row)) {
        assert_eq!(
            arguments.len(),
            self.arguments.len(),
            "arguments of {:?}",
            self.sql
        );
        Spi::connect(|_| {
            let mut values = arguments.to_vec();
            // SAFETY: connected; the plan is of this statement, which has as many arguments; the answer lives until the
            // connection ends, and `visit` may connect once more, so it is remembered here.
            unsafe {
                let plan = self.plan();
                let executed = pg_sys::SPI_execute_plan(
                    plan,
                    values.as_mut_ptr(),
                    std::ptr::null(),
                    self.is_read_only,
                    0,
                );
                assert!(executed >= 0, "{:?} was not executed: {executed}", self.sql);
                let answer = pg_sys::SPI_tuptable;
                if answer.is_null() {
                    return;
                }
                for place in 0..(*answer).numvals as usize {
                    visit(Row {
                        tuple: *(*answer).vals.add(place),
                        descriptor: (*answer).tupdesc,
                    });
                }
            }
        });
    }

    /// The session's plan.
    ///
    /// # Safety
    /// Connected to SPI.
    unsafe fn plan(&self) -> pg_sys::SPIPlanPtr {
        // SAFETY: the caller's promise; a plan that is kept lives as long as the session.
        unsafe {
            let mut plan = self.plan.load(Ordering::Relaxed);
            if plan.is_null() {
                let mut types: Vec<pg_sys::Oid> = self
                    .arguments
                    .iter()
                    .map(|argument| argument.value())
                    .collect();
                plan = pg_sys::SPI_prepare_cursor(
                    self.sql.as_ptr(),
                    types.len() as i32,
                    types.as_mut_ptr(),
                    self.planning as i32,
                );
                assert!(!plan.is_null(), "{:?} cannot be planned", self.sql);
                pg_sys::SPI_keepplan(plan);
                self.plan.store(plan, Ordering::Relaxed);
            }
            plan
        }
    }
}
