//! A lanes relation's durable form: ordinary pages in shared buffers, WAL-logged by core's resource managers only.
//!
//! ```text
//! block 0  metapage      identity, heads and tails of the two chains, free extents      metapage.rs, extent.rs
//! chain    directory     one 40-byte entry a run, in row order; tiny runs lie inline      directory.rs
//! chain    tombstones    one 32-byte entry a deleted, updated or locked row                tombstone.rs
//! chain    parts         one 64-byte entry a sealed range of rows, in the order of adding  part.rs, seal.rs, offload.rs
//! ranges   data pages    the encoded columns of one run, over consecutive pages            data_page.rs, part_image.rs
//! ```
//!
//! A *run* is the rows one statement's call appended to one segment. [`append`] writes: encode → data pages
//! (logged as full images; those past the file's end go past the shared buffers too, see [`crate::pg::fresh`]) → directory entry (which also hands out the row numbers) → arena. [`load`] reads: entry →
//! image → columns.
//!
//! *Sealing* ([`seal`]) sorts the rows of a range and writes them anew as one *part*: segments of at most 65,536 rows, and an
//! index of them. A part's entry takes the place of all runs and parts within its range at once, by one WAL record.
//! [`offload`] does the same for a part whose images have gone to object storage, and leaves row numbers as they are.
//!
//! *Freeing*: VACUUM finds what nothing names any more ([`reclaim`]), moves the parts at the file's end to free blocks before them
//! ([`relocate`]), and cuts off a free end ([`shorten`]).
//!
//! [`arena_budget`] bounds what a table takes of the arena. [`stream`] reads sealed rows past it, a vector at a time.
//!
//! Invariants.
//! 1. A run's rows exist if and only if its directory entry does; the entry is written by one atomic WAL record, after
//!    the pages that it names. So row numbers need no record of their own: they are the entry's, and a TID is exposed
//!    only after it. An ERROR or crash before the entry leaves nothing but blocks that nobody names, which the next
//!    VACUUM's sweep returns to the free extents.
//! 2. Entries ascend by first row without overlap, along the chain; rows that no entry holds any more are holes. Every exclusive lock on the chain's tail page is
//!    therefore the relation's append lock, and it is held for one small record only.
//! 3. Entries and tombstones are append-only. VACUUM alone changes what is written: flags, and the links past pages that
//!    say nothing any more ([`unlink`]). Then it raises the metapage's generation, by which every cache of them (the arena,
//!    each backend's tombstones) notices.
//!    Sealing adds a part, and raises it too: what covered runs say is then read from the part. Their entries stay as they
//!    are until no scan that began before can be left; VACUUM flags them dead then.
//! 4. A relation of no blocks, or whose metapage was never written, is an empty table: what UNLOGGED tables are after
//!    a crash.
//! 5. Only the holder of the exclusive metapage lock changes free extents or lengthens the relation. Only who has the relation
//!    for itself shortens it; whoever has any lock on the relation finds every block that a live entry, a head, a tail or a link names.

pub mod chain;
pub mod data_page;
pub mod directory;
pub mod extent;
pub mod metapage;
pub mod part;
pub mod part_image;
pub mod reclaim;
pub mod tombstone;
pub mod unlink;
