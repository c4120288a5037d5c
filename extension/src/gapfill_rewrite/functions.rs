//! `lanes.time_bucket_gapfill`, `lanes.locf` and `lanes.interpolate`: how their calls are recognised, and their bodies.
//!
//! All are declared VOLATILE and written in C, so nothing folds or inlines a call before the rewrite has replaced it.

use std::cell::RefCell;
use std::rc::Rc;

use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::{self, Oid};

use crate::error;
use crate::pg::catalog;
use crate::pg::hooks::on_change;
use crate::pg::tree::Expr;

/// A function that only a query with filled gaps may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `lanes.time_bucket_gapfill`, and whether its third argument is a time zone.
    Bucket { has_zone: bool },
    /// `lanes.locf`
    Locf,
    /// `lanes.interpolate`
    Interpolate,
}

impl Function {
    /// The function's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Function::Bucket { .. } => "lanes.time_bucket_gapfill",
            Function::Locf => "lanes.locf",
            Function::Interpolate => "lanes.interpolate",
        }
    }
}

/// The functions of this database, by OID.
#[derive(Default)]
pub struct Functions(Vec<(Oid, Function)>);

impl Functions {
    /// The function that a node calls; `None` for any other node.
    pub fn of(&self, node: Expr<'_>) -> Option<Function> {
        let called = node.as_func()?.funcid();
        let known = self.0.iter().find(|(oid, _)| *oid == called);
        known.map(|(_, function)| *function)
    }
}

/// The types of times that have buckets, and of the widths of these.
pub const TIMES: [(Oid, Oid); 5] = [
    (pg_sys::TIMESTAMPTZOID, pg_sys::INTERVALOID),
    (pg_sys::TIMESTAMPOID, pg_sys::INTERVALOID),
    (pg_sys::DATEOID, pg_sys::INTERVALOID),
    (pg_sys::INT8OID, pg_sys::INT8OID),
    (pg_sys::INT4OID, pg_sys::INT4OID),
];

/// The types of numbers between which others lie.
const NUMBERS: [Oid; 6] = [
    pg_sys::INT2OID,
    pg_sys::INT4OID,
    pg_sys::INT8OID,
    pg_sys::FLOAT4OID,
    pg_sys::FLOAT8OID,
    pg_sys::NUMERICOID,
];

thread_local! {
    /// The functions that this backend has looked up; `None` before the first look-up and after an invalidation.
    static KNOWN: RefCell<Option<Rc<Functions>>> = const { RefCell::new(None) };
    static WATCHES: RefCell<bool> = const { RefCell::new(false) };
}

/// The functions of this database; `None` in a database without the extension. The result is cached until a function or
/// a schema of the database changes. Runs inside a transaction, as planning does.
pub fn functions() -> Option<Rc<Functions>> {
    let known = KNOWN.with_borrow(Clone::clone);
    let functions = known.unwrap_or_else(|| {
        if !WATCHES.replace(true) {
            on_change(pg_sys::SysCacheIdentifier::PROCOID, forget);
            on_change(pg_sys::SysCacheIdentifier::NAMESPACEOID, forget);
        }
        let functions = Rc::new(look_up());
        KNOWN.set(Some(functions.clone()));
        functions
    });
    (!functions.0.is_empty()).then_some(functions)
}

fn forget() {
    KNOWN.set(None);
}

fn look_up() -> Functions {
    let mut found = Vec::new();
    if catalog::lanes_schema().is_none() {
        return Functions(found);
    }
    for (time, width) in TIMES {
        let plain = catalog::lanes_function(c"time_bucket_gapfill", &[width, time, time, time]);
        found.push((plain, Function::Bucket { has_zone: false }));
    }
    let (time, width) = TIMES[0];
    let zoned = [width, time, pg_sys::TEXTOID, time, time];
    let zoned = catalog::lanes_function(c"time_bucket_gapfill", &zoned);
    found.push((zoned, Function::Bucket { has_zone: true }));
    for arguments in [
        &[pg_sys::ANYELEMENTOID][..],
        &[pg_sys::ANYELEMENTOID, pg_sys::BOOLOID],
    ] {
        found.push((catalog::lanes_function(c"locf", arguments), Function::Locf));
    }
    for number in NUMBERS {
        let function = catalog::lanes_function(c"interpolate", &[number]);
        found.push((function, Function::Interpolate));
    }
    found.retain(|(oid, _)| *oid != pg_sys::InvalidOid);
    Functions(found)
}

/// The hint that shows how the functions are used.
pub const USE: &str = "Write: SELECT lanes.time_bucket_gapfill('1 hour', ts) AS hour, lanes.locf(avg(x)) FROM t \
    WHERE ts >= … AND ts < … GROUP BY hour.";

crate::sql_callables! {
    lanes_gapfill_marker, pg_finfo_lanes_gapfill_marker => |_| called();
}

/// The body of all functions. A rewritten query never calls it.
fn called() -> ! {
    error::raise(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        "lanes.time_bucket_gapfill, lanes.locf and lanes.interpolate cannot be called by themselves",
        format!("{USE} In a SQL function, declare it VOLATILE."),
    )
}
