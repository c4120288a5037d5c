//! The table access method. [`routine`] lists every callback; the other files hold what the callbacks do.
//!
//! | what PostgreSQL calls | where it goes |
//! |---|---|
//! | scans, rows by number | [`crate::table::scan`], [`crate::table::one_row`] |
//! | INSERT, COPY | [`crate::table::insert`], [`crate::table::pending_rows`] |
//! | DELETE, UPDATE, row locks | [`modify`]: tombstones, under one conflict check |
//! | ANALYZE, TABLESAMPLE | [`sample`] |
//! | VACUUM | [`crate::maintenance::vacuum`] |
//! | VACUUM FULL | [`rewrite`] |
//! | files and sizes | [`relation`] |
//! | what lanes tables do not do | [`refuse`], by name |

pub mod modify;
pub mod refuse;
pub mod relation;
pub mod rewrite;
pub mod routine;
pub mod sample;
