//! The log: what is acknowledged at level `object` and not yet in sealed segments of the store.
//!
//! ```text
//! sink ─► append_logged, committed ─► entry ─► jobs ─► writer ─► store, durable ─► 204
//!                                                        │
//!                              local_rows ─► release ────┴─► entries whose rows are all in segments, or gone: deleted
//! ```
//!
//! | what | module | noun |
//! |---|---|---|
//! | what is kept | [`entry`] | a batch and where its rows lie; bytes with a checksum |
//! | who asks | [`handle`] | sinks: put, and what the store already knows |
//! | who writes | [`writer`] | the term that has the store open: what waits goes in one write |
//! | until when | [`release`] | a round after each round of offloading |
//! | what a failover lost | [`timeline`] | entries that the database's history does not hold: kept, told, counted |
//!
//! # Why nothing comes back twice, or not at all
//! Rows keep the numbers that they are appended under until they are sealed, and a sealed part covers the numbers of the rows in it. So an
//! entry names its rows by storage id and number ([`super::record::Head`]), a part of the store names the range that it covers
//! ([`super::record::PartRecord`]), and a restore takes from the log what no part covers, each number once. No clock, no transaction
//! id and no order of arrival decides anything.
//!
//! The append commits first, flushed to disk, and only then is its entry put: before, nobody knows the numbers, and an entry of an append
//! that fails would bring back what was never stored. The price is that the two waits add up; the store's, a hundred milliseconds, is
//! a hundred times the other.
//!
//! | dies after | then |
//! |---|---|
//! | the append, before its entry is durable | not acknowledged; the sender repeats the request, its digest is found, and with it the numbers of its rows: the entry is put then. Without a digest the sender is told that the outcome is unknown |
//! | the entry, before the answer | as above: the entry is put again, under the numbers of that request's rows alone. A restore takes each number once |
//! | a part is put, before it is committed | the part covers its rows already; the log keeps them longer than it must |
//! | the rows are released here, before the entries are deleted | the same |
//!
//! What an entry needs is put with it, in one write: the table's definition if it has changed, and series that are not there yet.
//!
//! # Bounds
//! As many entries wait as there are batches on their way, so memory is theirs. In the store the log holds what is not offloaded yet; of tables
//! without `hot` that is everything. For each entry some hundred bytes are kept in memory.
//!
//! # What it does not do
//! - Changes by SQL (INSERT, UPDATE, DELETE) are not logged. What they insert comes back from segments that were offloaded; what they delete
//!   of rows that are still in the log, or in segments, comes back.
//! - Tables whose rows do not go straight into lanes (triggers, indexes, CHECK, type modifiers, partitions), and those that are not
//!   logged by PostgreSQL, are refused by name.
//! - A failover to a standby that lacks the last commits loses these as it does at level `wal`; they are still in the log, but their numbers
//!   are given to other rows then. Level `object` guards against the loss of the whole cluster, `replica` against that of one server.
//! - VACUUM FULL, and ALTER TABLE where it rewrites, give rows new numbers in a new file. Entries of the old one are kept until what the new one began
//!   with is in segments. A restore in between may bring rows of that table twice, and says so; none is lost while the old file's segments
//!   are there ([`super::run::ObjectSettings::orphan_age`]).

pub mod entry;

pub mod handle;

pub mod writer;

pub mod release;

pub use entry::Entry;
pub use handle::{LogError, ObjectLog, Put};
pub use writer::LogWriter;
