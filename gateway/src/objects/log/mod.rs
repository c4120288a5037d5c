//! The log: what is acknowledged at level `object` and not yet in sealed segments of the store.
//!
//! ```text
//! sink ─► append_logged, committed ─► entry ─► jobs ─► writer ─► store, durable ─► 204
//!                                                        │
//!                              local_rows ─► release ────┴─► deletion of entries that are not needed
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`entry`] | a batch and the position of its rows, as bytes with a checksum |
//! | [`handle`] | the log as sinks see it: putting entries, and what the store contains already |
//! | [`writer`] | the writer of the gateway that has the store open: waiting entries go into one write |
//! | [`release`] | deletion of entries after each round of offloading |
//!
//! # Why rows are restored exactly once
//! Rows keep the row numbers that they are appended with until they are sealed, and a sealed part
//! covers the numbers of its rows. An entry names its rows by storage id and number
//! ([`crate::objects::model::record::Head`]), and a part in the store names the range that it
//! covers ([`crate::objects::model::record::PartRecord`]). A restore takes from the log what no
//! part covers, each number once. Clocks, transaction ids and the order of arrival do not matter.
//!
//! The append commits first, flushed to disk, and only then is its entry put. Before the commit the
//! numbers are unknown, and the entry of a failed append would restore what was never stored. The
//! price is that the two waits add up: the store's wait of a hundred milliseconds, and the
//! commit's, which is a hundredth of that.
//!
//! | crash after | consequence |
//! |---|---|
//! | the append, before its entry is durable | the request is not acknowledged. When the sender repeats it, its digest is found, and with it the numbers of its rows, and the entry is put. Without a digest the sender is informed that the outcome is unknown |
//! | the entry, before the answer | likewise, the entry is put again, under the numbers of that request's rows alone. A restore takes each number once |
//! | a part is put, before it is committed | the part covers its rows already; the log keeps them longer than necessary |
//! | rows are found to be offloaded, before the entries are deleted | the log keeps them longer than necessary |
//!
//! Everything needed to read an entry is put with it in one write: the table's definition if it has
//! changed, and series that the store lacks.
//!
//! # Limits
//! At most as many entries wait as batches are in flight, so they need no further memory. In the
//! store, the log contains what is not offloaded yet; for tables without `hot` that is everything.
//! Each entry takes some hundred bytes of memory.
//!
//! # What the log does not do
//! - Changes by SQL (INSERT, UPDATE, DELETE) are not logged. Inserted rows are restored from
//!   offloaded segments. Deleted rows that are still in the log or in segments are restored.
//! - Level `object` is refused, with a message, for tables whose rows are not appended directly
//!   (triggers, foreign keys, CHECK, generated columns, domains, type modifiers, partitions) and for unlogged tables.
//! - A failover to a standby that lacks the last commits loses these, as at level `wal`. They are
//!   still in the log, but their numbers are then assigned to other rows. Level `object` protects
//!   against the loss of the whole cluster, `replica` against that of one server.
//! - VACUUM FULL, and ALTER TABLE if it rewrites the table, assign new numbers to rows in a new
//!   file. Entries of the old file are kept until the initial rows of the new one are in segments.
//!   A restore in between may restore rows of that table twice, and prints a warning. None is lost
//!   while the segments of the old file exist
//!   ([`crate::objects::run::ObjectSettings::orphan_age`]).

pub mod entry;

pub mod handle;

pub mod writer;

pub mod release;

pub use entry::Entry;
pub use handle::{LogError, ObjectLog, Put};
pub use writer::LogWriter;
