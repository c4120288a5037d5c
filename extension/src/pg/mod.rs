//! The fence around Postgres's C interface: what leaves this folder is typed and owns what it holds.
//!
//! Order of use: [`ports`] (macros and version differences) → [`page`] (pinned and locked pages, WAL), [`fresh`] (pages past
//! the file's end) → [`lock`], [`shmem`] (shared memory and its locks) → [`snapshot`] (whether a transaction counts) →
//! [`datum`], [`slot`], [`kind`] (values in and out, and compared) → [`tree`], [`nodes`] (query trees; expressions and plan nodes) → [`names`] (what all of them are called in messages).
//!
//! Errors. Every `pg_sys` call that raises an ERROR arrives here as a Rust panic that `#[pg_guard]` turns back
//! into the ERROR. Guards in this folder therefore run `Drop` while an ERROR passes. By then Postgres has reset
//! its interrupt-holdoff count, so releasing a lightweight lock would make that count wrap around: guards leave
//! pins and lightweight locks to the transaction's abort (`LWLockReleaseAll`, resource owners) when the thread is
//! panicking, and release them themselves otherwise.
//!
//! [`text`] converts encodings, [`text_test`] compares texts. [`statement`] executes SQL of ours.
//! [`heap`] keeps freed memory for the next batch. SQL functions come in by [`call`], over [`call_ports`].

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
