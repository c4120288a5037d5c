//! The routine table of the access method, and its handler function.

use crate::pg::access::{self, Routine};

/// The access method of lanes tables.
pub struct LanesTable;

static ROUTINE: Routine = Routine::of::<LanesTable>();

// PostgreSQL calls handlers without the argument that their signature demands, so this one reads none.
crate::sql_callables! {
    lanes_handler, pg_finfo_lanes_handler => |_| Some(access::handler(&ROUTINE));
}

/// Makes lanes tables recognisable by their routine table. Called from `_PG_init`.
pub fn register() {
    access::register(&ROUTINE);
}
