//! The table access method. [`routine`] lists every callback; the other modules implement them.
//!
//! | what PostgreSQL calls | where it goes |
//! |---|---|
//! | scans, rows by number | [`crate::table::scan`], [`crate::table::one_row`] |
//! | INSERT, COPY | [`crate::table::insert`], [`crate::table::pending_rows`] |
//! | DELETE, UPDATE, row locks | [`modify`]: tombstones, under one conflict check |
//! | index scans, bitmap scans | [`crate::table::index_fetch`], [`bitmap`] |
//! | CREATE INDEX | [`crate::table::index_build`] |
//! | INSERT … ON CONFLICT | [`crate::table::speculation`] |
//! | ANALYZE, TABLESAMPLE | [`sample`] |
//! | VACUUM | [`crate::maintenance::vacuum`] |
//! | VACUUM FULL | [`rewrite`] |
//! | files and sizes | [`relation`] |
//! | what lanes tables do not do | [`refuse`], by name |

pub mod bitmap;
pub mod index;
pub mod modify;
pub mod refuse;
pub mod relation;
pub mod rewrite;
pub mod routine;
pub mod sample;
