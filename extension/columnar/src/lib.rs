//! The columnar engine of pg_lanes over memory that the caller gives.
//!
//! It knows nothing of PostgreSQL: it can be fuzzed, run under Miri and benchmarked alone.
//!
//! The cast, in the order in which data flows:
//! - [`limits`]: row numbers, segments, sizes.
//! - [`kind`]: how the values of one column lie in memory. [`bytes16`]: values of 16 bytes that are in order.
//! - [`mod@column`]: a column of one run in private memory, built from rows or from a batch.
//!   `bits`, `buffer`, `items`, `dictionary` and `body` are its parts.
//! - [`image`]: the durable bytes of one run, written from columns and read back into columns.
//! - [`digest`]: what an image that comes back from elsewhere is compared by.
//! - [`encoding`]: the bytes of one column of a sealed segment, of which any vector can be decoded alone.
//! - [`streamed`]: sealed rows decoded a vector at a time, when they are looked at. [`repeats`]: those that need not be.
//! - [`lane`]: what a scan reads, whether of a column or of a segment.
//! - [`zone_map`]: what a few words tell of the values of some rows, so that a scan may skip them.
//! - [`sort`]: the order of the rows of a sealed part. [`part`]: what a part's segments are and where they lie.
//! - [`arena`]: the cache of tables in shared memory, extended from columns and read as lanes.
//! - [`vector`]: what a scan computes; [`aggregate`], [`order`]: what it keeps of that, groups or the first rows;
//!   [`window`]: what a row is told of those before it.
//! - [`error`]: what can go wrong on the way.
#![warn(missing_docs)]

pub mod aggregate;
pub mod arena;
mod bits;
mod body;
mod buffer;
pub mod bytes16;
pub mod column;
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
pub mod part;
pub mod repeats;
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
