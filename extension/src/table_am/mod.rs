//! The table access method: implementations of the traits in [`crate::pg::access`], which PostgreSQL's callbacks call.
//!
//! | what PostgreSQL calls | where it goes |
//! |---|---|
//! | the handler function | [`routine`] |
//! | scans | [`scan`]: [`crate::table::scan`] |
//! | rows by number | [`rows`]: [`crate::table::one_row`] |
//! | INSERT, COPY | [`rows`]: [`crate::table::insert`], [`crate::table::pending_rows`] |
//! | DELETE, UPDATE, row locks | [`modify`]: tombstones, under one conflict check |
//! | index scans, bitmap scans | [`index`]: [`crate::table::index_fetch`]; [`bitmap`] |
//! | CREATE INDEX | [`index`]: [`crate::table::index_build`] |
//! | INSERT … ON CONFLICT | [`rows`]: [`crate::table::speculation`] |
//! | ANALYZE, TABLESAMPLE | [`sample`] |
//! | VACUUM | [`relation`]: [`crate::maintenance::vacuum`] |
//! | VACUUM FULL | [`rewrite`] |
//! | files and sizes | [`relation`] |
//! | what lanes tables do not do | [`refuse`], by name |

mod bitmap;
pub mod index;
mod modify;
mod refuse;
mod relation;
mod rewrite;
pub mod routine;
mod rows;
mod sample;
mod scan;
