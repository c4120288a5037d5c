//! This extension's own SQL statements, each planned once a session.
//!
//! A statement is a `static`, and each session keeps its own plan of it. Statements qualify all
//! names with a schema, even operators, so the caller's `search_path` has no effect. (A `SET
//! search_path` of a function that returns rows would be executed once a row.)

use std::sync::atomic::{AtomicPtr, Ordering};

use pgrx::prelude::*;

use super::exec::child::Child;
use super::executor;
use super::tree::View;

/// A statement. It is executed by [`Statement::each_row`], by [`Statement::run`] or, as a plan that
/// is read, by [`Statement::with_plan`].
pub struct Statement {
    sql: &'static std::ffi::CStr,
    arguments: &'static [pg_sys::BuiltinOid],
    /// Whether the statement uses the snapshot of the calling query. Otherwise it uses a new one.
    is_read_only: bool,
    /// Options of planning: `CURSOR_OPT_…`.
    planning: u32,
    /// The session's plan; null before the first execution.
    plan: AtomicPtr<pg_sys::_SPI_plan>,
}

/// An argument by reference, whose memory is freed when it is dropped.
pub struct OwnedArgument(pg_sys::Datum);

impl OwnedArgument {
    /// The argument that a value becomes; `None` if that is NULL.
    pub fn of(value: impl OwnedDatum) -> Option<OwnedArgument> {
        value.into_datum().map(OwnedArgument)
    }

    /// A text, of bytes in the database's encoding.
    pub fn of_text(text: &[u8]) -> OwnedArgument {
        // SAFETY: the function copies so many bytes into a new value.
        unsafe {
            let text = pg_sys::cstring_to_text_with_len(text.as_ptr().cast(), text.len() as i32);
            OwnedArgument(pg_sys::Datum::from(text))
        }
    }

    /// The argument, for a statement that is executed while `self` lives.
    pub fn datum(&self) -> pg_sys::Datum {
        self.0
    }
}

impl Drop for OwnedArgument {
    fn drop(&mut self) {
        // While an error passes, its transaction frees the memory.
        if !std::thread::panicking() {
            // SAFETY: `of` made the datum, which is passed by reference, in memory of its own.
            unsafe { pg_sys::pfree(self.0.cast_mut_ptr()) };
        }
    }
}

/// Values whose datums are allocated.
pub trait OwnedDatum: IntoDatum {}

impl OwnedDatum for &[u8] {}
impl OwnedDatum for Vec<u8> {}
impl OwnedDatum for Vec<i32> {}

/// A row of a result.
pub struct Row {
    tuple: pg_sys::HeapTuple,
    descriptor: pg_sys::TupleDesc,
}

impl Row {
    /// A column, from 1; `None` if it is NULL.
    pub fn get<T: FromDatum>(&self, column: i32) -> Option<T> {
        let mut is_null = false;
        // SAFETY: the row lives as long as the result.
        unsafe {
            let value =
                pg_sys::SPI_getbinval(self.tuple, self.descriptor, column, &raw mut is_null);
            T::from_datum(value, is_null)
        }
    }
}

impl Statement {
    /// A statement that uses the snapshot of the calling query.
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

    /// A statement that may change data, and sees all that is committed when it starts.
    pub const fn changing(
        sql: &'static std::ffi::CStr,
        arguments: &'static [pg_sys::BuiltinOid],
    ) -> Statement {
        let mut statement = Statement::reading(sql, arguments);
        statement.is_read_only = false;
        statement
    }

    /// The statement, planned anew for the values of its arguments at each execution. They decide which plan is good.
    pub const fn planned_with_values(mut self) -> Statement {
        self.planning = pg_sys::CURSOR_OPT_CUSTOM_PLAN;
        self
    }

    /// The statement, planned once for any values of its arguments.
    pub const fn planned_once(mut self) -> Statement {
        self.planning = pg_sys::CURSOR_OPT_GENERIC_PLAN;
        self
    }

    /// Executes the statement.
    pub fn run(&self, arguments: &[pg_sys::Datum]) {
        self.each_row(arguments, |_| {});
    }

    /// Executes the statement and calls `visit` with each row of its result.
    pub fn each_row(&self, arguments: &[pg_sys::Datum], mut visit: impl FnMut(Row)) {
        assert_eq!(
            arguments.len(),
            self.arguments.len(),
            "arguments of {:?}",
            self.sql
        );
        Spi::connect(|_| {
            let mut values = arguments.to_vec();
            // SAFETY: connected to SPI; the statement has as many arguments. The result lives until the connection
            // ends. `visit` may connect again, which changes the global variable, so it is read once.
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

    /// The list of parameters that an execution takes, in the current memory.
    ///
    /// # Panics
    /// If these are not as many arguments as the statement has.
    fn parameters(&self, arguments: &[pg_sys::Datum]) -> pg_sys::ParamListInfo {
        assert_eq!(
            arguments.len(),
            self.arguments.len(),
            "arguments of {:?}",
            self.sql
        );
        // SAFETY: the list has room for as many parameters.
        unsafe {
            let parameters = pg_sys::makeParamList(arguments.len() as i32);
            let places = (*parameters).params.as_mut_ptr();
            for (place, value) in arguments.iter().enumerate() {
                *places.add(place) = pg_sys::ParamExternData {
                    value: *value,
                    isnull: false,
                    pflags: pg_sys::PARAM_FLAG_CONST as u16,
                    ptype: self.arguments[place].value(),
                };
            }
            parameters
        }
    }

    /// The session's plan.
    ///
    /// # Safety
    /// The session is connected to SPI.
    unsafe fn plan(&self) -> pg_sys::SPIPlanPtr {
        // SAFETY: connected to SPI; a kept plan lives as long as the session.
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
