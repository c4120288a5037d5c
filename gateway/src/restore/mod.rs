//! `lanes-gateway restore`: a database again, from object storage alone.
//!
//! ```text
//! store ─► reader ─► records ─► plan ─► run ─► one transaction in an empty database
//!                                        │
//!                     images, entries ◄──┘   fetched one after the other, as they are inserted
//! ```
//!
//! | what | module | noun |
//! |---|---|---|
//! | what is asked | [`command`] | flags, and a report |
//! | from what | [`crate::objects::reader`] | the store, opened without taking it from a gateway that may still run |
//! | what to do | [`plan`] | which parts, which rows of which entries: decided by row numbers alone, before anything is done |
//! | done | [`run`] | schema, series, rows, then what only hinders while rows come |
//! | | `added` | what older rows have in a column that was added after them |
//! | | `entry_rows` | rows of the log, whatever became of their columns |
//! | | `failure` | what went wrong, and whether the server is to blame |
//! | | `retyped` | segments from before a column got another type |
//! | | `statement` | which statements a definition may consist of |
//!
//! # What comes back
//! - Tables of the lanes access method with rows in the store: columns, storage parameters, row-level security; constraints, indexes, defaults
//!   where what they need is there; owner and grants where the roles exist. Their rows get new numbers and are open again, to be sealed and
//!   offloaded as if they had just come.
//! - Series with their ids, and the views of their metrics.
//! - What a gateway and a reader may do, for the roles that the command line names.
//! - Rows of segments that were offloaded, and of everything that was acknowledged at level `object`; each once, whatever the gateway and the
//!   database were doing when they died: see [`crate::objects::log`].
//!
//! Not: other tables, roles, digests of requests (a request that is repeated after a restore is applied again), rows
//! that were neither offloaded nor acknowledged at level `object`, and deletions.
//!
//! # Trust
//! A store is data from outside. Definitions in it are executed as SQL with the rights of the role that restores, and
//! values of rows become values of their types as they are, for nothing is left that could vouch for them: the database
//! that kept digests of its segments is lost. So restore does nothing until it is told that the store is trusted, and
//! shows definitions before that to whoever wants to read them. What is easily found wrong is refused all the same:
//! statements of other kinds (`statement`), and images that would lead a reader astray (`lanes.restore_segment`).
//!
//! # Failure cases
//! All is one transaction: whatever goes wrong, the database is as empty as before, and restore may be run again. The
//! store is not changed. A record that cannot be read, a missing or damaged image or entry end it by name; nothing is
//! left out silently.
//! - Columns may have been renamed or dropped since an entry was put. Segments know columns by their places, and so do entries: an entry's
//!   batch is given the names of now, without the columns that are gone, and is cast where types are others.
//! - A statement after the rows that fails (a default or a check that calls a function of the lost database) is undone alone, and told. A policy
//!   that cannot be made ends it: the table would be open to those whom it kept out.
//!
//! A database that was restored has another system identifier, so a gateway keeps what it offloads beside what was
//! there; the old objects are the operator's to delete, once the new database has offloaded what was restored.

pub mod command;

pub mod plan;

pub mod run;

mod added;
mod entry_rows;
mod failure;
mod retyped;
mod statement;
