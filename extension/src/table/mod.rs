//! A table under a snapshot: its runs, its visible rows and their values.

pub mod append;
pub mod arena_budget;
pub mod generation;
pub mod one_row;
pub mod reader;
pub mod row_numbers;
pub mod runs;
pub mod scan;
pub mod stream;
pub mod tid;
pub mod visibility;
