//! The table access method, as traits. The callbacks call them for PostgreSQL.
//!
//! | module | contents |
//! |---|---|
//! | [`scan`] | [`ScanAccess`]: a scan under way: its rows, bitmaps of them, ANALYZE, TABLESAMPLE |
//! | [`rows`] | [`RowAccess`]: INSERT, UPDATE, DELETE, row locks, rows by their ids |
//! | [`relation`] | [`RelationAccess`]: files, sizes, VACUUM, CLUSTER |
//! | [`index`] | [`IndexAccess`]: the rows of index entries, and the entries of rows |
//! | [`routine`] | [`Routine`]: the table of callbacks of an access method |
//! | `scan_callbacks` | the callbacks of scans and of index fetches, and their descriptors |
//! | `table_callbacks` | the callbacks of tables: rows, relations, the building of indexes |
//!
//! A callback recovers its arguments and delegates. Signatures that differ between versions of PostgreSQL are known to
//! the callbacks only.
//!
//! Tables and snapshots of a scan or of an index fetch are `'static` for the methods: the callbacks keep the table open
//! until the scan ends, and PostgreSQL the snapshot. Nothing that a method gets outlives the scan.

pub mod index;
pub mod relation;
pub mod routine;
pub mod rows;
pub mod scan;
mod scan_callbacks;
mod table_callbacks;

pub use index::{Found, IndexAccess, IndexBuild, IndexedRows};
pub use relation::{CopyCounts, Estimate, OldestIds, RelationAccess};
pub use routine::{Routine, handler, register};
pub use rows::{Conflicts, RowAccess, RowLock, Updated};
pub use scan::{ScanAccess, ScanStart};
