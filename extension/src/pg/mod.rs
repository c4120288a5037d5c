//! The fence around PostgreSQL's C interface. Types that leave this folder are safe to use and own what they hold.
//!
//! | modules | contents |
//! |---|---|
//! | [`ports`], [`call_ports`], [`executor`] | C macros and inline functions under their C names; differences between versions |
//! | [`page`], [`fresh`] | pinned and locked pages and their WAL; pages past the end of a file |
//! | [`lock`], [`shmem`] | locks, and shared memory |
//! | [`datum`], [`typed_datum`], [`numeric`], [`slot`], [`kind`], [`text`], [`text_predicate`] | values |
//! | [`tree`], [`nodes`] | query trees, expressions, plans and the planner's structures |
//! | [`exec`], [`columns`], [`explain`] | nodes in execution, and EXPLAIN |
//! | [`catalog`], [`names`], [`system`], [`time_zone`] | system catalogs, names for messages, the server, time zones |
//! | [`call`], [`kept_value`] | calls of SQL functions, and values that aggregates keep |
//! | [`statement`] | this extension's own SQL statements |
//! | [`scratch_memory`], [`malloc`] | memory that is freed at once, and memory that is kept for the next batch |
//!
//! Errors. An ERROR in a `pg_sys` function arrives as a Rust panic, which `#[pg_guard]` turns back into the ERROR. So values
//! of this folder are dropped while an ERROR passes. By then PostgreSQL has reset its interrupt holdoff count, and releasing
//! a lightweight lock would make that count wrap around. While the thread panics, guards therefore leave pins and
//! lightweight locks to the transaction's abort (`LWLockReleaseAll`, resource owners); otherwise they release them.

pub mod call;
pub mod call_ports;
pub mod catalog;
pub mod columns;
pub mod datum;
pub mod exec;
pub mod executor;
pub mod explain;
pub mod fresh;
pub mod kept_value;
pub mod kind;
pub mod lane_buffer;
pub mod lock;
pub mod malloc;
pub mod names;
pub mod nodes;
pub mod numeric;
pub mod operands;
pub mod page;
pub mod ports;
#[cfg(feature = "pg15")]
mod room;
pub mod scratch_memory;
pub mod shmem;
pub mod slot;
pub mod statement;
pub mod system;
pub mod text;
pub mod text_predicate;
pub mod time_zone;
pub mod tree;
pub mod typed_datum;
