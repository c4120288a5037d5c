//! `LanesGapfill`: adds a row for each bucket that a group of a query with `lanes.time_bucket_gapfill` lacks.
//!
//! ```text
//! groups in the order of (other keys, bucket) ──► run ──► the same rows, and between them those of missing buckets
//!                                                  └── steps (buckets), between (interpolated numbers)
//! ```
//! | module | content |
//! |---|---|
//! | [`offer`] | puts the node above the sub-select that [`crate::gapfill_rewrite`] makes |
//! | [`plan`] | what the plan stores |
//! | [`state`] | the node under execution |
//! | [`run`] | the rows: which one comes next, and what it contains |
//! | [`steps`] | the bucket of a time, and the one after a bucket |
//! | [`between`] | numbers between two others |
//!
//! *Memory.* The node keeps two rows: the last one that it returned and the next one of its input. Their values are
//! copied. Rows are added one at a time.
//!
//! *Rows out of range.* Rows of the input are never dropped. Those whose bucket is before the first one or after
//! the last one are returned in their places, and so are those whose bucket is infinite or NULL, which are followed
//! by no gap.
//!
//! *No input.* Without other keys there is one group, which has all buckets; with other keys there is none.

pub mod between;
pub mod offer;
pub mod plan;
pub mod run;
pub mod state;
pub mod steps;
