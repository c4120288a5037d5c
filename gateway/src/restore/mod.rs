//! `lanes-gateway restore`: restores a database from object storage alone.
//!
//! ```text
//! store ─► reader ─► records ─► plan ─► run ─► one transaction in an empty database
//!                                        │
//!                     images, entries ◄──┘   fetched one after the other, and inserted
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`command`] | the flags, and the report |
//! | [`crate::objects::store::reader`] | the store, opened without taking it from a gateway that may still run |
//! | [`plan`] | the parts, and the rows of entries, to restore: decided by row numbers, before anything is done |
//! | [`run`] | execution: schema, series, rows, then whatever would slow down the rows |
//! | `added` | values of older rows in columns that were added after them |
//! | `entry_rows` | rows of the log, even if their columns have changed |
//! | `failure` | failed statements, and whether the server is the cause |
//! | `retyped` | segments from before the type of a column was changed |
//! | `statement` | the statements that a definition may contain |
//!
//! # What is restored
//! - Tables of the access method lanes with rows in the store: their columns, storage parameters
//!   and row-level security; their constraints, indexes and defaults if everything that these need
//!   exists; their owner and grants if the roles exist. The rows get new numbers and are in open
//!   segments, to be sealed and offloaded as if they had just been appended.
//! - Series with their ids, and the views of their metrics.
//! - The privileges of a gateway and a reader, for the roles named on the command line.
//! - The rows of offloaded segments, and everything that was acknowledged at level `object`. Each
//!   row is restored once, whatever the gateway and the database were doing when they crashed: see
//!   [`crate::objects::log`].
//!
//! Not restored are: other tables, roles, digests of requests (a request that is repeated after a
//! restore is applied again), rows that were neither offloaded nor acknowledged at level `object`,
//! and deletions.
//!
//! # Trust
//! A store is external data. Its definitions are executed as SQL with the privileges of the role
//! that restores. Values of rows are restored unchanged, because nothing is left to verify them:
//! the database with the digests of its segments is lost. Restore therefore does nothing unless the
//! store is declared as trusted, and can print the definitions for inspection before. Whatever is
//! easily found to be wrong is refused in any case: statements of other kinds (`statement`), and
//! images that would mislead a reader (`lanes.restore_segment`).
//!
//! # Failure cases
//! Everything happens in one transaction. After a failure the database is as empty as before, and
//! restore can be run again. The store is not changed. An unreadable record, or a missing or
//! damaged image or entry, ends the restore with a message that names it; nothing is silently
//! skipped.
//! - Columns may have been renamed or dropped since an entry was put. Segments and entries identify
//!   columns by position. The batch of an entry gets the current names, without dropped columns,
//!   and is cast if types have changed.
//! - A statement after the rows that fails (a default or a check that calls a function of the lost
//!   database) is undone alone, with a message. A policy that cannot be created ends the restore,
//!   because the table would otherwise be readable by those whom the policy excluded.
//!
//! A restored database has another system identifier, so its gateway stores offloaded segments
//! beside the old ones. The operator may delete the old objects after the new database has
//! offloaded what was restored.

pub mod command;

pub mod plan;

pub mod run;

mod added;
mod entry_rows;
mod failure;
mod retyped;
mod statement;
