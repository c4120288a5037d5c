//! The fence around PostgreSQL's C interface. Types that leave this folder are safe to use. Each is a view of a
//! structure of PostgreSQL that outlives it, or owns what it holds.
//!
//! - [`functions`]: tables of PostgreSQL's plain functions and variables, with safe types.
//! - [`ports`]: C macros and inline functions under their C names; differences between versions of
//!   more than a line.
//! - [`executor`]: inline functions of the executor that run once a row.
//! - [`call_ports`]: what calls of aggregates and window functions need from C.
//! - [`access`]: the table access method: its callbacks, and the traits that they call.
//! - [`table`], [`table_work`], [`descriptor`]: open tables, the work of statements on them, their
//!   row types.
//! - [`page`], [`byte_change`], [`fresh`]: pinned and locked pages and their WAL; pages
//!   past the end of a file, and disk space for them.
//! - [`lock`], `resource_owner`, [`shmem`]: locks, shared memory, and waking other processes.
//! - [`snapshot`], [`transaction`]: snapshots, and the outcome of transactions.
//! - [`datum`], [`typed_datum`], [`numeric`], [`numeric_digits`], [`slot`], [`kind`], [`text`], [`text_predicate`],
//!   [`collation`], [`type_io`]: values and rows; the order of texts.
//! - [`tree`], [`nodes`], [`outer_joins`], [`permission`]: query trees, expressions,
//!   plans and the planner's structures.
//! - [`index`], [`index_columns`], [`entry_sort`], [`open_indexes`], `key_order`, [`insert_indexes`],
//!   [`checked_index`]: indexes of tables: their entries, sorting, checking and cleaning them up.
//! - [`cluster_sort`]: rows sorted by a btree index, for CLUSTER.
//! - [`exec`], [`columns`], [`windows`], [`explain`]: nodes in execution, window
//!   functions, and EXPLAIN.
//! - [`catalog`], [`table_catalog`], [`aggregate_catalog`], `catalog_rows`, [`definitions`], [`copy`], [`names`]:
//!   system catalogs, parameters of statements, COPY, names for messages.
//! - [`call`], [`kept_value`], [`kept_rows`]: calls of SQL functions; values and rows that
//!   aggregates keep.
//! - [`hooks`], [`support_request`]: PostgreSQL's hooks, with typed callbacks; what the planner asks about a function.
//! - [`row_log`]: WAL records of rows, and how logical decoding reads them.
//! - [`statement`]: this extension's own SQL statements.
//! - [`server`], [`signals`], [`background`], [`time_zone`]: the server, this process, its signals,
//!   background workers, time zones.
//! - [`malloc`]: memory that is kept for the next batch.
//! - [`temporary_file`]: temporary files of a query.
//! - [`progress`]: the views of long commands' progress.
//! - [`whole_error`]: errors that keep all their fields on their way through Rust.
//!
//! Two functions trust their caller, although other rooms may call them: [`tree::plan_node`] and [`tree::plan_field`]
//! make a view of a pointer that a plan holds, and the caller names the structure.
//!
//! Data flows in both directions: a callback's raw pointer becomes a typed view once, and what other rooms return goes
//! back to PostgreSQL through the same types. This room uses no other room but `error`.
//!
//! Errors. An ERROR in a `pg_sys` function arrives as a Rust panic, which `#[pg_guard]` turns back into the ERROR. So
//! values of this folder are dropped while an ERROR passes. By then PostgreSQL has reset its interrupt holdoff count,
//! and releasing a lightweight lock would make that count wrap around. While the thread panics, guards therefore
//! leave pins, locks and open tables to the transaction's abort (`LWLockReleaseAll`, resource owners); otherwise they
//! release them. A callback within which users' functions run keeps their errors whole: [`whole_error`].

pub mod access;
pub mod aggregate_catalog;
pub mod background;
pub mod byte_change;
pub mod call;
mod call_ports;
pub mod catalog;
mod catalog_rows;
pub mod checked_index;
pub mod cluster_sort;
pub mod collation;
pub mod columns;
pub mod copy;
pub mod datum;
pub mod definitions;
pub mod descriptor;
pub mod entry_sort;
pub mod exec;
mod executor;
pub mod explain;
pub mod fresh;
mod functions;
pub mod hooks;
pub mod index;
pub mod index_columns;
pub mod insert_indexes;
pub mod kept_rows;
pub mod kept_value;
mod key_order;
pub mod kind;
pub mod lock;
pub mod malloc;
pub mod names;
pub mod nodes;
pub mod numeric;
pub mod numeric_digits;
pub mod open_indexes;
pub mod outer_joins;
pub mod page;
pub mod permission;
pub mod ports;
pub mod progress;
mod resource_owner;
pub mod row_log;
pub mod server;
pub mod shmem;
pub mod signals;
pub mod slot;
pub mod snapshot;
pub mod statement;
pub mod support_request;
pub mod table;
pub mod table_catalog;
pub mod table_work;
pub mod temporary_file;
pub mod text;
pub mod text_predicate;
pub mod time_zone;
pub mod transaction;
pub mod tree;
pub mod type_io;
pub mod typed_datum;
pub mod whole_error;
pub mod windows;
