//! The markers `lanes.asof` and `lanes.asof_nearest`: their bodies, and how their calls are recognised.
//!
//! Both are declared VOLATILE and written in C, so nothing folds, inlines or moves a call before the rewrite has replaced
//! it. Their optional arguments are of type `"any"`, because the type of the times decides what a literal such as `'5 s'`
//! means. The rewrite sees a call as the parser left it, so it can distinguish an omitted argument from NULL.

use pgrx::PgSqlErrorCode;
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::error;

/// A marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// `lanes.asof(condition, tolerance, tie)`
    Asof,
    /// `lanes.asof_nearest(a, b, tolerance, tie)`
    Nearest,
}

impl Marker {
    /// The marker's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Marker::Asof => "lanes.asof",
            Marker::Nearest => "lanes.asof_nearest",
        }
    }

    /// The number of required arguments. `tolerance` and `tie` follow them.
    pub fn required(self) -> usize {
        match self {
            Marker::Asof => 1,
            Marker::Nearest => 2,
        }
    }
}

/// The markers' functions in this database. Their OIDs are invalid in a database without the extension.
#[derive(Clone, Copy)]
pub struct Functions {
    asof: pg_sys::Oid,
    nearest: pg_sys::Oid,
}

impl Functions {
    const NONE: Functions = Functions {
        asof: pg_sys::InvalidOid,
        nearest: pg_sys::InvalidOid,
    };

    /// The marker that a node calls; `None` for any other node.
    ///
    /// # Safety
    /// A live node or null.
    pub unsafe fn marker(&self, node: *const pg_sys::Node) -> Option<Marker> {
        // SAFETY: the caller's promise; the cast follows the tag.
        unsafe {
            if node.is_null() || (*node).type_ != pg_sys::NodeTag::T_FuncExpr {
                return None;
            }
            match (*node.cast::<pg_sys::FuncExpr>()).funcid {
                oid if oid == self.asof => Some(Marker::Asof),
                oid if oid == self.nearest => Some(Marker::Nearest),
                _ => None,
            }
        }
    }
}

/// The functions that this backend has looked up; `None` before the first look-up and after an invalidation.
static mut KNOWN: Option<Functions> = None;
static mut WATCHES: bool = false;

/// The markers of this database; `None` in a database without the extension. The result is cached until a function or a
/// schema of the database changes.
pub fn functions() -> Option<Functions> {
    // SAFETY: single-threaded; runs inside a transaction, as planning does.
    let functions = unsafe {
        match KNOWN {
            Some(functions) => functions,
            None => {
                watch();
                let functions = look_up();
                KNOWN = Some(functions);
                functions
            }
        }
    };
    (functions.asof != pg_sys::InvalidOid).then_some(functions)
}

unsafe fn watch() {
    // SAFETY: single-threaded; once a process, since the callbacks stay for its life.
    unsafe {
        if WATCHES {
            return;
        }
        WATCHES = true;
        for cache in [
            pg_sys::SysCacheIdentifier::PROCOID,
            pg_sys::SysCacheIdentifier::NAMESPACEOID,
        ] {
            pg_sys::CacheRegisterSyscacheCallback(
                cache as i32,
                Some(forget),
                pg_sys::Datum::from(0),
            );
        }
    }
}

/// Clears the cache. An invalidation may arrive at any time, so this raises no error.
unsafe extern "C-unwind" fn forget(_: pg_sys::Datum, _: i32, _: u32) {
    // SAFETY: single-threaded.
    unsafe { KNOWN = None };
}

unsafe fn look_up() -> Functions {
    // SAFETY: catalogue look-ups by exact argument types; nothing found is no error.
    unsafe {
        if pg_sys::get_namespace_oid(c"lanes".as_ptr(), true) == pg_sys::InvalidOid {
            return Functions::NONE;
        }
        let (any, boolean) = (pg_sys::ANYOID, pg_sys::BOOLOID);
        Functions {
            asof: function(c"asof", &[boolean, any, any]),
            nearest: function(c"asof_nearest", &[any, any, any, any]),
        }
    }
}

/// A function of schema `lanes`, or invalid.
///
/// # Safety
/// Runs inside a transaction.
pub unsafe fn function(name: &std::ffi::CStr, arguments: &[pg_sys::Oid]) -> pg_sys::Oid {
    // SAFETY: the strings are copied; nothing found is no error.
    unsafe {
        let name = crate::pg::tree::list(&[
            pg_sys::makeString(pg_sys::pstrdup(c"lanes".as_ptr())),
            pg_sys::makeString(pg_sys::pstrdup(name.as_ptr())),
        ]);
        pg_sys::LookupFuncName(name, arguments.len() as i32, arguments.as_ptr(), true)
    }
}

/// The hint that shows where a marker belongs.
pub const PLACE: &str = "Write it as one of the ANDed conditions in the ON of an INNER or LEFT JOIN, as in: FROM trades t LEFT JOIN quotes q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts).";

/// The body of both markers. A rewritten query never calls it.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn lanes_asof_marker(
    _call: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    error::raise(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        "an ASOF marker was called as a function",
        PLACE,
    )
}

super::version_1!(pg_finfo_lanes_asof_marker);
