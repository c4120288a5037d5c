//! The markers `lanes.asof` and `lanes.asof_nearest`: their bodies, and how they are recognised.
//!
//! Both are declared VOLATILE and in C, so that nothing folds, inlines or moves a call before the rewrite has replaced
//! it. Their optional arguments are `"any"`: what a literal means (`'5 s'`) is decided by the type of the times, and a
//! call's arguments are found as the parser left them, so that an argument that was not given and NULL differ.

use pgrx::PgSqlErrorCode;
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::error;

/// Which marker a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// `lanes.asof(condition, tolerance, tie)`
    Asof,
    /// `lanes.asof_nearest(a, b, tolerance, tie)`
    Nearest,
}

impl Marker {
    /// The name that messages use.
    pub fn name(self) -> &'static str {
        match self {
            Marker::Asof => "lanes.asof",
            Marker::Nearest => "lanes.asof_nearest",
        }
    }

    /// The arguments that must be given; `tolerance` and `tie` follow them.
    pub fn required(self) -> usize {
        match self {
            Marker::Asof => 1,
            Marker::Nearest => 2,
        }
    }
}

/// The functions of this database. Invalid oids: the extension is not here.
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

    /// Whether this node is a call of a marker.
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

/// What this backend knows; `None`: to be looked up (again).
static mut KNOWN: Option<Functions> = None;
static mut WATCHES: bool = false;

/// The markers of this database, or `None` where the extension is not created. Costs a load once it is known; a change
/// of any function or schema of the database makes it look again.
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

/// Raises nothing: invalidation may come at any time.
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

/// Where a marker may stand.
pub const PLACE: &str = "Write it as one of the ANDed conditions in the ON of an INNER or LEFT JOIN, as in: FROM trades t LEFT JOIN quotes q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts).";

/// The body of both markers, which a rewritten query never calls.
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
