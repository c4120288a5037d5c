//! The markers `lanes.asof` and `lanes.asof_nearest`: their bodies, and how their calls are recognised.
//!
//! Both are declared VOLATILE and written in C, so nothing folds, inlines or moves a call before
//! the rewrite has replaced it. Their optional arguments are of type `"any"`, because the type of
//! the times decides what a literal such as `'5 s'` means. The rewrite sees a call as the parser
//! left it, so it can distinguish an omitted argument from NULL.

use std::cell::Cell;

use pgrx::PgSqlErrorCode;
use pgrx::pg_sys;

use crate::error;
use crate::pg::catalog;
use crate::pg::hooks::on_change;
use crate::pg::tree::Expr;

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
    pub fn marker(&self, node: Expr<'_>) -> Option<Marker> {
        match node.as_func()?.funcid() {
            oid if oid == self.asof => Some(Marker::Asof),
            oid if oid == self.nearest => Some(Marker::Nearest),
            _ => None,
        }
    }
}

thread_local! {
    /// The functions that this backend has looked up; `None` before the first look-up and after an invalidation.
    static KNOWN: Cell<Option<Functions>> = const { Cell::new(None) };
    static WATCHES: Cell<bool> = const { Cell::new(false) };
}

/// The markers of this database; `None` in a database without the extension. The result is cached until a function or a
/// schema of the database changes. Runs inside a transaction, as planning does.
pub fn functions() -> Option<Functions> {
    let functions = KNOWN.get().unwrap_or_else(|| {
        watch();
        let functions = look_up();
        KNOWN.set(Some(functions));
        functions
    });
    (functions.asof != pg_sys::InvalidOid).then_some(functions)
}

/// Clears the cache whenever a function or a schema changes.
fn watch() {
    if WATCHES.replace(true) {
        return;
    }
    on_change(pg_sys::SysCacheIdentifier::PROCOID, forget);
    on_change(pg_sys::SysCacheIdentifier::NAMESPACEOID, forget);
}

fn forget() {
    KNOWN.set(None);
}

fn look_up() -> Functions {
    if catalog::lanes_schema().is_none() {
        return Functions::NONE;
    }
    let (any, boolean) = (pg_sys::ANYOID, pg_sys::BOOLOID);
    Functions {
        asof: catalog::lanes_function(c"asof", &[boolean, any, any]),
        nearest: catalog::lanes_function(c"asof_nearest", &[any, any, any, any]),
    }
}

/// The hint that shows where a marker belongs.
pub const PLACE: &str = "Write it as one of the ANDed conditions in the ON of an INNER or LEFT JOIN, as in: FROM trades t LEFT JOIN quotes q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts).";

crate::sql_callables! {
    lanes_asof_marker, pg_finfo_lanes_asof_marker => |_| called();
}

/// The body of both markers. A rewritten query never calls it.
fn called() -> ! {
    error::raise(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        "an ASOF marker was called as a function",
        PLACE,
    )
}
