//! A table under a snapshot: its runs, its visible rows and their values.

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
pub mod runs;
pub mod scan;
pub mod serializable;
pub mod shape;
pub mod speculation;
pub mod stream;
pub mod tid;
pub mod visibility;
