//! SQL functions that a gateway calls to move segments to object storage and back.

pub mod due;
pub mod local_rows;
pub mod recall_supply;
