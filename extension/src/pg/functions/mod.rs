//! PostgreSQL's functions and variables with safe types.
//!
//! The bindings declare all of them as unsafe and with raw pointers. The tables of this folder declare those that this
//! library calls once more, under their C names. A table states for each argument and each result which view, handle
//! or number it is. So whoever calls such a function needs no unsafe code.
//!
//! | module | functions |
//! |---|---|
//! | [`catalog`] | look-ups in the system catalogs |
//! | [`encoding`] | encodings of text |
//! | [`executor`] | plans, expressions, rows and memory in execution |
//! | [`nodes`] | expressions, lists and query trees |
//! | [`planner`] | paths, costs and estimates |
//! | [`process`] | the server, this process, its transactions and locks |
//! | [`relation`] | open tables: files, locks, statistics |
//! | `special` | functions that no line of a table can declare |
//! | [`values`] | functions of SQL on values |
//!
//! Invariants:
//! - A declaration has the types of PostgreSQL's own. An argument that is a view or a handle is live, because its type
//!   says so. A result that is a view without `Option` is never null.
//! - Any values of a function's types are legal arguments, or its callers in `pg` keep the condition that its comment
//!   states. So the tables are private to `pg`: other rooms call the types that keep the conditions.
//! - An ERROR of such a function arrives as a panic, which the callback's guard turns back into the ERROR.
//!
//! Macros and inline functions of C are in [`ports`](super::ports), those of the executor that run once a row in
//! [`executor`](super::executor), and what calls of aggregates and window functions need in
//! [`call_ports`](super::call_ports).

#![allow(non_snake_case, reason = "functions have their C names")]

pub mod catalog;
pub mod encoding;
pub mod executor;
pub mod nodes;
pub mod planner;
pub mod process;
pub mod relation;
mod special;
pub mod values;

use std::ffi::{CStr, c_char};

use pgrx::pg_sys::{self, Datum, NodeTag, Oid};

use super::snapshot::Snapshot;
use super::tree::view::{Field, View};

/// A value that is passed to C as a `C`.
pub trait Argument<C> {
    /// The value in C.
    fn into_c(self) -> C;
}

/// A value that C returns as a `C`.
pub trait Answer<C> {
    /// The value that C returned.
    ///
    /// # Safety
    /// The function returns what this type describes, and that lives as long as the type says.
    unsafe fn of_c(value: C) -> Self;
}

macro_rules! plain {
    ($($type:ty),*) => {$(
        impl Argument<$type> for $type {
            fn into_c(self) -> $type {
                self
            }
        }

        impl Answer<$type> for $type {
            unsafe fn of_c(value: $type) -> $type {
                value
            }
        }
    )*};
}

plain!(
    (),
    bool,
    i8,
    i16,
    i32,
    u32,
    i64,
    u64,
    usize,
    f64,
    Oid,
    Datum,
    NodeTag,
    pg_sys::TransactionId
);

/// A pointer that is null where there is no argument.
pub struct Null;

impl<T> Argument<*mut T> for Null {
    fn into_c(self) -> *mut T {
        std::ptr::null_mut()
    }
}

impl<T> Argument<*const T> for Null {
    fn into_c(self) -> *const T {
        std::ptr::null()
    }
}

/// A place that the function reads or writes during the call.
pub struct Place<'a, T>(pub &'a mut T);

impl<T> Argument<*mut T> for Place<'_, T> {
    fn into_c(self) -> *mut T {
        self.0
    }
}

impl<T> Argument<*mut T> for Option<Place<'_, T>> {
    fn into_c(self) -> *mut T {
        self.map_or(std::ptr::null_mut(), Argument::into_c)
    }
}

impl<T> Argument<*const T> for Place<'_, T> {
    fn into_c(self) -> *const T {
        self.0
    }
}

impl<'p, T, V: View<'p>> Argument<*mut T> for V {
    fn into_c(self) -> *mut T {
        self.as_ptr().cast()
    }
}

impl<'p, T, V: View<'p>> Argument<*const T> for V {
    fn into_c(self) -> *const T {
        self.as_ptr().cast()
    }
}

impl<'p, T, V: View<'p>> Answer<*mut T> for V {
    unsafe fn of_c(value: *mut T) -> V {
        assert!(!value.is_null(), "a function returned null");
        // SAFETY: the pointer is not null, and the trait's contract says what it points to.
        unsafe { V::at(value.cast()) }
    }
}

impl<'p, T, V: View<'p>> Argument<*mut T> for Option<V> {
    fn into_c(self) -> *mut T {
        self.raw().cast()
    }
}

impl<'p, T, V: View<'p>> Answer<*mut T> for Option<V> {
    unsafe fn of_c(value: *mut T) -> Option<V> {
        // SAFETY: the pointer is null, or the trait's contract says what it points to.
        unsafe { Field::of(value.cast()) }
    }
}

impl Argument<pg_sys::Snapshot> for Snapshot<'_> {
    fn into_c(self) -> pg_sys::Snapshot {
        self.as_ptr()
    }
}

impl Argument<*const c_char> for &CStr {
    fn into_c(self) -> *const c_char {
        self.as_ptr()
    }
}

impl Argument<*mut c_char> for Option<&CStr> {
    fn into_c(self) -> *mut c_char {
        self.raw()
    }
}

impl Argument<*const c_char> for Option<&CStr> {
    fn into_c(self) -> *const c_char {
        self.raw()
    }
}

impl<'p> Answer<*mut c_char> for Option<&'p CStr> {
    unsafe fn of_c(value: *mut c_char) -> Option<&'p CStr> {
        // SAFETY: the pointer is null, or a string by the trait's contract.
        unsafe { Field::of(value) }
    }
}

/// A snapshot, or null.
impl<'p> Answer<pg_sys::Snapshot> for Option<Snapshot<'p>> {
    unsafe fn of_c(value: pg_sys::Snapshot) -> Option<Snapshot<'p>> {
        Snapshot::new(value)
    }
}

/// A copy of a string. Bytes that are not UTF-8 are replaced.
impl Answer<*mut c_char> for Option<String> {
    unsafe fn of_c(value: *mut c_char) -> Option<String> {
        // SAFETY: the pointer is null, or a string by the trait's contract.
        let text: Option<&CStr> = unsafe { Field::of(value) };
        text.map(|text| text.to_string_lossy().into_owned())
    }
}

/// As for `*mut c_char`.
impl Answer<*const c_char> for Option<String> {
    unsafe fn of_c(value: *const c_char) -> Option<String> {
        // SAFETY: the same contract.
        unsafe { Answer::of_c(value.cast_mut()) }
    }
}

/// As for `*mut c_char`.
impl<'p> Answer<*const c_char> for Option<&'p CStr> {
    unsafe fn of_c(value: *const c_char) -> Option<&'p CStr> {
        // SAFETY: the same contract.
        unsafe { Answer::of_c(value.cast_mut()) }
    }
}

/// Declares functions of PostgreSQL: `fn name(argument: Type) -> Type;`.
macro_rules! functions {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;
    )*) => {$(
        $(#[$meta])*
        #[inline]
        #[allow(clippy::too_many_arguments, clippy::extra_unused_lifetimes)]
        pub fn $name<'p>($($argument: $type),*) $(-> $result)? {
            $(let $argument = $crate::pg::functions::Argument::into_c($argument);)*
            // SAFETY: the table has the types of PostgreSQL's declaration, see the module's invariants.
            unsafe { $crate::pg::functions::Answer::of_c(pgrx::pg_sys::$name($($argument),*)) }
        }
    )*};
}
use functions;

/// Declares functions of PostgreSQL that the bindings lack: `fn name(argument: Type as TypeInC) -> Type as TypeInC;`.
macro_rules! unbound_functions {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($($argument:ident: $type:ty as $c_type:ty),* $(,)?)
            $(-> $result:ty as $c_result:ty)?;
    )*) => {$(
        $(#[$meta])*
        #[inline]
        pub fn $name($($argument: $type),*) $(-> $result)? {
            unsafe extern "C-unwind" {
                fn $name($($argument: $c_type),*) $(-> $c_result)?;
            }
            $(let $argument: $c_type = $crate::pg::functions::Argument::into_c($argument);)*
            // SAFETY: the table has the types of PostgreSQL's declaration. The boundary turns an ERROR into a panic.
            unsafe {
                $crate::pg::functions::Answer::of_c(pgrx::pg_sys::ffi::pg_guard_ffi_boundary(
                    || $name($($argument),*),
                ))
            }
        }
    )*};
}
pub(super) use unbound_functions;

/// Declares functions that read variables of PostgreSQL: `name: Type;`.
macro_rules! variables {
    ($(
        $(#[$meta:meta])*
        $name:ident: $type:ty;
    )*) => {$(
        $(#[$meta])*
        #[inline]
        pub fn $name() -> $type {
            // SAFETY: a read of a variable of this process, which has one thread.
            unsafe { pgrx::pg_sys::$name }
        }
    )*};
}
use variables;
