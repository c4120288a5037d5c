//! The durable form of a table: ordinary pages in shared buffers. PostgreSQL's own resource managers
//! write and replay their WAL.
//!
//! ```text
//! block 0  metapage     identity, generation, first and last page of each chain, free extents
//! chain    directory    one 40-byte entry for each run, in row order; images of tiny runs lie inline
//! chain    tombstones   one 32-byte entry for each deleted, updated or locked row
//! chain    parts        one 64-byte entry for each sealed range of rows, in the order of adding
//! extents  data pages   images: the encoded columns of a run, or of the segments of a part
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`metapage`] | block 0 |
//! | [`chain`] | a chain of pages: finding, locking and adding its last page |
//! | [`directory`] | the chain of runs |
//! | [`tombstone`] | the chain of tombstones, and a backend's copy of it |
//! | [`part`] | the chain of parts, and a backend's copy of it |
//! | [`data_page`] | an image over consecutive pages |
//! | [`part_image`] | the images of a part and its index over consecutive pages |
//! | [`extent`] | free blocks: taking and returning them |
//! | [`reclaim`] | VACUUM's sweep, which finds blocks that nothing names |
//! | [`unlink`] | taking pages out of a chain that say nothing any more |
//!
//! Data flows from [`crate::table::append`] and [`crate::maintenance`] into these modules: first images
//! into data pages, then one entry that names them. [`crate::table::runs`] and
//! [`crate::table::decode`] read entries and images back.
//!
//! A *run* is the rows that one statement appended at once, at most 65,536. It has one entry, and may
//! cross segments. A *part* is the result of one sealing. One WAL record adds its entry, which from
//! then on takes the place of all runs and earlier parts within its range.
//!
//! Invariants:
//! 1. The rows of a run exist if and only if its directory entry exists. One WAL record writes the
//!    entry, after the pages that it names. The entry also assigns the row numbers, so a tuple id is
//!    known only after it. An ERROR or a crash before the entry leaves only blocks that nothing names;
//!    the next VACUUM's sweep returns them to the free extents.
//! 2. Entries of the directory ascend by first row and do not overlap. Rows that no entry names are
//!    holes. Whoever adds an entry holds the exclusive lock of the directory's last page, which is
//!    therefore the append lock of the table. It is held for one small record only.
//! 3. Entries and tombstones are only appended, and only VACUUM changes them: it sets flags, and links
//!    past pages that say nothing any more. Then it raises the metapage's generation, by which the
//!    arena and each backend's copies notice the change. Sealing adds a part and raises the generation
//!    too. The entries of the runs that the part covers stay until every scan that began before has
//!    ended; then VACUUM flags them dead.
//! 4. A relation without blocks, or with a metapage that was never written, is an empty table. That is
//!    the state of UNLOGGED tables after a crash.
//! 5. Only the holder of the exclusive lock of the metapage changes the free extents or extends the
//!    file. Only a session that holds the table's AccessExclusiveLock shortens it. Under any lock on
//!    the table, every block exists that a live entry, the metapage or a link of a chain names.

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
