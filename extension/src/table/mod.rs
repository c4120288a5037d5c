//! A table under a snapshot: its runs, its visible rows and their values.
//!
//! | module | contents |
//! |---|---|
//! | | **Opening a table** |
//! | [`reader`] | its metapage, runs and tombstones as of one moment, and views of its rows |
//! | [`kept`] | readers that a statement keeps from row to row |
//! | [`shape`] | the columns as which rows are read |
//! | [`arena_budget`] | the bytes of the arena that a table may take |
//! | [`runs`] | the list of runs, with the segments of parts in their places |
//! | [`generation`] | raising the generation, so that all caches are read anew |
//! | | **Visibility** |
//! | [`visibility`] | whether the work of a transaction counts under a snapshot |
//! | [`fate`] | whether any snapshot may still find a row |
//! | [`serializable`] | locks and conflicts of serializable isolation |
//! | | **Reading rows** |
//! | [`scan`] | all visible rows, or those of a range |
//! | [`one_row`] | one row by its row number |
//! | [`index_fetch`] | one row by its entry number |
//! | [`resident`] | decodes rows into the arena |
//! | [`stream`] | decodes sealed rows past the arena, a vector at a time |
//! | [`decode`] | decodes rows for one backend, from pages or from object storage |
//! | | **Writing rows** |
//! | [`insert`] | the slots of one call become a run |
//! | [`pending_rows`] | rows of many calls are gathered into a run |
//! | [`row_columns`] | slots become columns |
//! | [`append`] | columns become a run, in pages and in the arena |
//! | [`speculation`] | rows of `INSERT … ON CONFLICT`, until it is known whether they stay |
//! | [`logged_rows`] | WAL records of rows, for logical decoding |
//! | | **Identity of rows** |
//! | [`tid`] | row numbers as tuple ids |
//! | [`row_numbers`] | keeping row numbers valid, although sealing changes them |
//! | [`entry_numbers`], [`number_set`] | the numbers by which index entries know rows, and a set of them |
//! | [`index_build`] | index entries for rows that exist already |
//!
//! ```text
//! write   insert ─┬───────────────────► row_columns ──► append ──► data pages ──► directory entry ──► arena
//!                 └► pending_rows ─────────┘
//! read    reader ──► scan, one_row ──► visible rows ─┬─► resident   in the arena
//!                                                    ├─► stream     from images, by vectors
//!                                                    └─► decode     from images, all at once
//! ```
//! [`crate::table_am`], [`crate::vectors`] and [`crate::maintenance`] use this room. It uses
//! [`crate::storage`] for pages and [`crate::remote`] for images in object storage.

pub mod append;
pub mod arena_budget;
pub mod decode;
pub mod entry_numbers;
pub mod fate;
pub mod generation;
pub mod index_build;
pub mod index_fetch;
pub mod insert;
pub mod kept;
pub mod logged_rows;
pub mod number_set;
pub mod one_row;
pub mod pending_rows;
pub mod reader;
pub mod resident;
pub mod row_columns;
pub mod row_numbers;
pub mod run_indexes;
pub mod runs;
pub mod scan;
pub mod serializable;
pub mod shape;
pub mod speculation;
pub mod stream;
pub mod tid;
pub mod visibility;
