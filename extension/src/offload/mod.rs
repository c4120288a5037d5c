//! SQL functions that a gateway calls to move segments to object storage and back.
//!
//! - `due`: the parts that are due, the bytes of their segments, and the confirmation that these
//!   have arrived; the keys that parts still name.
//! - `recall_supply`: the segments that queries wait for, and their images.
//! - `local_rows`: the rows that the log of the gateway must still keep.
//!
//! ```text
//! out   offload_list ──► segment_image ──► the gateway makes it durable ──► offload_commit
//!       ──► maintenance::replace_part
//! back  remote::recall waits ──► recall_next ──► the gateway gets the image ──► recall_supply ──► remote::cold_cache
//! ```
//! [`crate::remote`] is the side of the queries; failure cases are described there.

pub mod due;
pub mod local_rows;
pub mod recall_supply;
