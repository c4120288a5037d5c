//! The visible rows of a table as vectors.

pub mod kept_rows;
pub mod prune;
pub mod vector_source;
