//! The columnar engine of pg_lanes, over memory that the caller provides.
//!
//! It does not depend on PostgreSQL, so it can be fuzzed, run under Miri and benchmarked alone.
//!
//! The cast, in the direction of the data:
//! - [`limits`]: row numbers, segments, sizes.
//! - [`kind`]: the layout of one column's values in memory. [`bytes16`]: ordered values of 16
//!   bytes.
//! - [`mod@column`]: a column of one run in private memory, built from rows or from a batch.
//!   `bits`, `buffer`, `items`, `dictionary` and `body` are its parts.
//! - [`image`]: the durable bytes of one run, written from columns and read back into columns.
//! - [`digest`]: the digest of an image, which proves that it returns unchanged from elsewhere.
//! - [`encoding`]: the bytes of one column of a sealed segment, of which any vector can be decoded
//!   alone.
//! - [`streamed`]: sealed rows decoded a vector at a time, when they are read. [`repeats`]:
//!   run-length encoded values that are read without decoding.
//! - [`lane`]: the values of a column as a scan reads them, from a column or from a segment.
//!   [`decimal_lane`]: numerics of a segment as integers.
//! - [`zone_map`]: summaries of the values of some rows, by which a scan skips them.
//! - [`sort`]: the order of the rows of a sealed part. [`part`]: the index of a part's segments.
//!   [`place_map`]: where the rows of a part lie whose numbers index entries know.
//! - [`arena`]: the cache of tables in shared memory, extended from columns and read as lanes.
//! - [`vector`]: expressions over the vectors of a scan; [`aggregate`]: groups and aggregates;
//!   [`order`]: the first rows of an order; [`mod@window`]: window functions of earlier rows;
//!   [`over`]: window functions of partitions;
//!   [`join`]: joins.
//! - [`error`]: the errors of all of them.
#![warn(missing_docs)]

pub mod aggregate;
pub mod arena;
mod bits;
mod body;
mod buffer;
pub mod bytes16;
pub mod column;
pub mod decimal_lane;
mod dictionary;
pub mod digest;
pub mod encoding;
pub mod error;
pub mod image;
pub mod interrupt;
mod items;
pub mod join;
pub mod kind;
pub mod lane;
pub mod limits;
pub mod order;
pub mod over;
pub mod part;
pub mod place_map;
pub mod repeats;
pub mod rows_aside;
pub mod sort;
pub mod streamed;
#[cfg(test)]
mod test_support;
pub mod vector;
pub mod window;
pub mod zone_map;

pub use arena::{
    Arena, ArenaStats, Images, Locks, Position, Relation, RelationKey, RunEntry, Segment,
};
pub use column::Column;
pub use error::{Error, Result};
pub use image::{Image, encode};
pub use kind::{LaneKind, Number, item_align};
pub use lane::{DictionaryView, Lane, LaneData};
pub use zone_map::{Bound, Zone};
