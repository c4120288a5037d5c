//! lanes
use pgrx::prelude::*;
pgrx::pg_module_magic!();
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {}
