//! Tables that Citus has distributed. Their rows are in shards, and the table itself is an empty
//! shell that queries never read. An append bypasses Citus's hooks, so the rows would go into the
//! shell.

use pgrx::pg_sys;

use crate::pg::catalog;
use crate::pg::statement::Statement;

/// Returns a row if Citus has distributed the table.
static DISTRIBUTED: Statement = Statement::reading(
    c"SELECT FROM pg_catalog.pg_dist_partition WHERE logicalrelid OPERATOR(pg_catalog.=) $1",
    &[pg_sys::BuiltinOid::OIDOID],
);

/// Whether Citus has distributed a table. Without Citus this is one look-up in the system cache,
/// which remembers that Citus's catalog does not exist.
pub fn is_distributed(table: pg_sys::Oid) -> bool {
    if !catalog::has_system_table(c"pg_dist_partition") {
        return false;
    }
    let mut found = false;
    DISTRIBUTED.each_row(&[pg_sys::Datum::from(table)], |_| found = true);
    found
}
