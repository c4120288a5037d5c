//! The fence around PostgreSQL's C interface: what leaves this folder is typed and owns what it holds.
//!
//! | room | what it offers |
//! |---|---|
//! | [`ports`] | C macros, declarations that the bindings lack, differences between versions |
//! | [`table`], [`table_work`], [`descriptor`] | open tables as values, what statements do to them, their row types |
//! | [`page`], [`fresh`] | locked pages and WAL-logged changes of them; pages past the file's end |
//! | [`lock`], [`shmem`], [`condition_variable`] | heavyweight locks as values; shared memory and its locks; waking others |
//! | [`snapshot`], [`transaction`] | what a statement sees; what became of transactions |
//! | [`datum`], [`slot`], [`kind`] | values in and out, rows, comparisons |
//! | [`catalog`], [`table_catalog`], [`definitions`], [`type_io`], [`copy`] | look-ups, parameters of statements, values as text, COPY |
//! | [`tree`], [`nodes`], [`executor`], [`statement`] | query trees, plan nodes, the executor, SQL of our own |
//! | [`call`], [`call_ports`] | SQL functions |
//! | [`text`], [`text_predicate`], [`names`] | encodings, comparisons of texts, names in messages |
//! | [`server`], [`malloc`] | the server and this process; memory that is kept for the next batch |
//!
//! Errors. Every `pg_sys` call that raises an ERROR arrives here as a Rust panic that `#[pg_guard]` turns back into the
//! ERROR. So guards of this folder run `Drop` while an ERROR passes. By then PostgreSQL has reset its interrupt-holdoff
//! count, and releasing a lightweight lock would make that count wrap around. Guards therefore leave pins, locks and open
//! tables to the transaction's abort (`LWLockReleaseAll`, resource owners) while the thread is panicking, and release them
//! themselves otherwise.

pub mod call;
pub mod call_ports;
pub mod catalog;
pub mod columns;
pub mod condition_variable;
pub mod copy;
pub mod datum;
pub mod definitions;
pub mod descriptor;
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
pub mod server;
pub mod shmem;
pub mod slot;
pub mod snapshot;
pub mod statement;
pub mod system;
pub mod table;
pub mod table_catalog;
pub mod table_work;
pub mod text;
pub mod text_predicate;
pub mod time_zone;
pub mod transaction;
pub mod tree;
pub mod type_io;
pub mod typed_datum;
