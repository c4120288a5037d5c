//! What a plan that gives whole rows remembers: [`LanesTopN`](super::top_n_plan), [`LanesLatest`](super::latest_plan).
//!
//! | custom_private | custom_exprs |
//! |---|---|
//! | rows of a first pass, how many pushed quals, kept quals, groups, flags a key, reasons | pushed quals, kept quals, groups, keys |

use pgrx::pg_sys;

use super::sort_key::{self, OrderedBy};
use crate::pg::{nodes, ports};

/// The plan, taken apart.
pub struct RowPlan {
    /// Rows that the first pass should keep, where there are passes.
    pub first_pass: i32,
    /// Vectorised quals.
    pub pushed: *mut pg_sys::List,
    /// Quals that are evaluated a row at a time.
    pub kept: *mut pg_sys::List,
    /// What rows are grouped by.
    pub groups: Vec<*mut pg_sys::Node>,
    /// What they are ordered by.
    pub keys: Vec<OrderedBy>,
    /// Why something is not vectorised, as strings.
    pub reasons: *mut pg_sys::List,
}

impl RowPlan {
    /// Writes all of it into a plan.
    ///
    /// # Safety
    /// A fresh plan; lists and expressions are live.
    pub unsafe fn write(&self, scan: *mut pg_sys::CustomScan) {
        // SAFETY: the caller's promise.
        unsafe {
            let integer = |value: i32| pg_sys::makeInteger(value).cast::<std::ffi::c_void>();
            let mut flags = std::ptr::null_mut();
            let mut expressions = pg_sys::list_concat_copy(self.pushed, self.kept);
            for group in &self.groups {
                expressions = pg_sys::lappend(expressions, group.cast());
            }
            for key in &self.keys {
                expressions = pg_sys::lappend(expressions, key.expression.cast());
                flags = pg_sys::lappend(flags, integer(sort_key::to_flags(key.order)));
            }
            let mut private = std::ptr::null_mut();
            for value in [
                self.first_pass,
                ports::list_length(self.pushed),
                ports::list_length(self.kept),
                self.groups.len() as i32,
            ] {
                private = pg_sys::lappend(private, integer(value));
            }
            private = pg_sys::lappend(private, flags.cast());
            private = pg_sys::lappend(private, self.reasons.cast());
            (*scan).custom_exprs = expressions;
            (*scan).custom_private = private;
        }
    }

    /// Reads it back. Lists are made in the current memory context.
    ///
    /// # Safety
    /// `scan` is a plan that was written to.
    pub unsafe fn of(scan: *mut pg_sys::CustomScan) -> RowPlan {
        // SAFETY: the caller's promise.
        unsafe {
            let private = (*scan).custom_private;
            let integer = |part| (*ports::list_nth::<pg_sys::Integer>(private, part)).ival;
            let (pushed, kept, groups) = (integer(1), integer(2), integer(3));
            let part = |from: i32, count: i32| {
                let rest = pg_sys::list_copy_tail((*scan).custom_exprs, from);
                pg_sys::list_truncate(rest, count)
            };
            let mut expressions =
                nodes::list::<pg_sys::Node>((*scan).custom_exprs).skip((pushed + kept) as usize);
            let found = expressions.by_ref().take(groups as usize).collect();
            let flags = nodes::list::<pg_sys::Integer>(ports::list_nth(private, 4));
            let key = |(expression, flags): (_, *mut pg_sys::Integer)| OrderedBy {
                expression,
                order: sort_key::of_flags((*flags).ival),
            };
            RowPlan {
                first_pass: integer(0),
                pushed: part(0, pushed),
                kept: part(pushed, kept),
                groups: found,
                keys: expressions.zip(flags).map(key).collect(),
                reasons: ports::list_nth(private, 5),
            }
        }
    }
}
