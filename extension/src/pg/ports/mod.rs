//! C macros and inline functions under their C names, declarations that the bindings lack, and
//! what differs between versions of PostgreSQL in more than a line. A difference of one line has a
//! `#[cfg]` where it is used, and a module of [`crate::pg`] with the subject keeps its own, as
//! `fresh` and `outer_joins` do. Other folders mention a version only where it gives a callback
//! another signature.
//!
//! Three modules beside this one declare C too:
//! - [`functions`](super::functions): plain functions and variables, one line each in a table.
//! - [`executor`](super::executor): inline functions of the executor that run once a row.
//! - [`call_ports`](super::call_ports): what calls of aggregates and window functions need.
//!
//! | module | contents |
//! |---|---|
//! | `relation` | relations: their files, names and persistence, and WAL records about them |
//! | `tuple` | tuples: descriptors, slots, locks |
//! | `operator` | operators and functions: families, and who may execute them |
//! | `statistics` | statistics of ANALYZE and of the planner; counters |
//! | `serializable` | predicate locks and conflicts |
//!
//! All are re-exported here, so callers write `ports::NAME`. Typed modules of [`crate::pg`] call
//! these functions; other rooms use the typed modules.

#![allow(non_snake_case, non_upper_case_globals)]

mod operator;
mod relation;
mod serializable;
mod statistics;
mod tuple;

use pgrx::pg_sys;

pub use operator::*;
pub use relation::*;
pub use serializable::*;
pub use statistics::*;
pub use tuple::*;

use super::functions::process;

pub use super::executor::table_endscan;
pub use super::functions::process::ConditionalXactLockTableWait;

/// Bytes of a page.
pub const BLCKSZ: usize = pg_sys::BLCKSZ as usize;
/// Bytes of the standard page header, before anything of ours.
pub const PAGE_HEADER_BYTES: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_linp);
/// Asks `ReadBufferExtended` for a new block at the end of the relation.
pub const P_NEW: pg_sys::BlockNumber = pg_sys::InvalidBlockNumber;
/// The largest block number; one more means "none".
pub const MAX_BLOCK: u32 = 0xFFFF_FFFE;

/// The offsets of a block that PostgreSQL's bitmaps of tuple ids take at most: a page without its header, divided by
/// the least that a tuple and its line pointer take.
pub const MaxHeapTuplesPerPage: usize = (BLCKSZ - 24) / (24 + size_of::<pg_sys::ItemIdData>());

/// Lets a long loop be cancelled. A request to end the whole process is turned into an ERROR here: Postgres would leave
/// through `exit` without unwinding, and pins in the arena that are held on the stack would never be released. The
/// process ends all the same, at the next check outside.
pub fn CHECK_FOR_INTERRUPTS() {
    if process::ProcDiePending() != 0 && process::InterruptHoldoffCount() == 0 {
        crate::error::raise(
            pgrx::PgSqlErrorCode::ERRCODE_ADMIN_SHUTDOWN,
            "terminating connection due to administrator command",
            "",
        );
    }
    pgrx::check_for_interrupts!();
}

/// How `tuple_update` tells the executor which indexes need an entry for the new version of a row. PostgreSQL 15 takes
/// a bool, and later versions a value of an enum.
#[cfg(feature = "pg15")]
pub type UpdateIndexes = bool;

#[cfg(not(feature = "pg15"))]
pub type UpdateIndexes = pg_sys::TU_UpdateIndexes::Type;

/// No index needs a new entry: the table has no index.
#[cfg(feature = "pg15")]
pub const UPDATE_NO_INDEXES: UpdateIndexes = false;

#[cfg(not(feature = "pg15"))]
pub const UPDATE_NO_INDEXES: UpdateIndexes = pg_sys::TU_UpdateIndexes::TU_None;

/// Each index needs an entry for the new version.
#[cfg(feature = "pg15")]
pub const UPDATE_ALL_INDEXES: UpdateIndexes = true;

#[cfg(not(feature = "pg15"))]
pub const UPDATE_ALL_INDEXES: UpdateIndexes = pg_sys::TU_UpdateIndexes::TU_All;
