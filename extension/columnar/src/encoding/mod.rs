//! Lanes of sealed segments: a column as few bytes as its values allow, any vector of which can be
//! decoded alone.
//!
//! ```text
//! Column ──► encode_lane(&column, &starts) ──► bytes ──► EncodedLane::open(&bytes, kind) ──► decode_vector(v, &mut DecodedVector)
//!                       ▲                                  once, verifies everything    ├──► decode(rows, &mut Column)
//! key_starts(&[&key]) ──┘                                  reopen(): afterwards, O(1)   ├──► constant(v), repeats(v): no decoding
//!                                                                                       └──► dictionary(): the items of codes
//! ```
//!
//! | call | does |
//! |---|---|
//! | [`key_starts`] | where the series begin in rows that are sorted by series and time |
//! | [`encode_lane`] | one column to bytes; `starts` cut it so that each series gets its own encoding |
//! | [`EncodedLane::open`] | verifies bytes of any origin |
//! | [`EncodedLane::reopen`] | the same for bytes verified before: constant time |
//! | [`EncodedLane::decode_vector`] | one vector into memory that is used again; [`DecodedVector::lane`] is what scans read |
//! | [`EncodedLane::try_decode_part_to`] | the blocks of a vector that have wanted rows, without the other blocks |
//! | [`EncodedLane::constant`], [`EncodedLane::repeats`], [`EncodedLane::zone`] | what a vector holds as far as that takes no decoding |
//! | [`EncodedLane::dictionary`] | the items; predicates on text are answered for them once and then for [codes](DecodedVector::codes) |
//! | [`EncodedLane::point`] | one row: what its bits and those that lead to them take |
//! | [`EncodedLane::fetch`] | fetches the bytes that decoding some rows needs, from where the lane is stored |
//! | [`EncodedLane::decode`] | any range of rows, appended to a column |
//! | [`pack_items`], [`unpack_items`] | a few items as one value, outside of any lane |
//!
//! The cast, in the order in which data flows:
//! - `words`: a column's values as numbers of 64 bits. `decimal`: floats as integers over a power
//!   of ten.
//! - `starts`: where keys start. `pattern`: which sequences of numbers come again.
//! - `encode`: a column to a lane. `block_write`: a vector to blocks. `integers`, `few`: numbers to
//!   the smallest block. `residuals`: their residuals to bits. `sample` and `divisor` are what they
//!   measure with.
//! - `format`: the byte form. `bytes`: numbers and bitmaps in it.
//! - `lane`: a lane opened and decoded. `verify`: what is checked before. `repeats`, `bounds`: what
//!   is known without decoding. `main_encoding`: a name for what most of it is.
//! - `fetch`: which bytes of a stored lane some rows need.
//! - `point`: one row without the others of its vector.
//! - `blocks`: the blocks of a vector. `block`: one block to values. `packed`: its residuals to
//!   numbers. `kernel`: the inner loops of that.
//! - `item_bytes`: items and their lengths in bytes. `items`: a lane's dictionary. `item_list`:
//!   items without a lane. `vector`: what a vector is decoded into.
//!
//! # Invariants
//! Decoding gives the bits that were encoded: NaNs with their payload, zeros with their sign. Only
//! what lies under a NULL may differ. The bytes depend on the column's values and `starts` alone.
//! Reading checks every length and place before it is followed, also in bytes that nobody verified;
//! what [`EncodedLane::open`] adds is that nothing of it can fail later.

mod block;
mod block_write;
mod blocks;
mod bounds;
mod bytes;
mod decimal;
mod divisor;
mod encode;
mod fetch;
mod few;
mod format;
mod integers;
mod item_bytes;
mod item_list;
mod items;
mod kernel;
mod lane;
mod main_encoding;
mod packed;
mod pattern;
mod point;
mod repeats;
mod residuals;
mod sample;
mod starts;
#[cfg(test)]
mod tests;
mod vector;
mod verify;
mod words;

pub use encode::encode_lane;
pub use fetch::Fetch;
pub use item_list::{pack_items, unpack_items};
pub use items::ItemList;
pub use lane::EncodedLane;
pub use main_encoding::MainEncoding;
pub use repeats::{Constant, Repeats};
pub use starts::key_starts;
pub use vector::{DecodedVector, Values};

/// Rows that one encoded lane may hold.
pub const LANE_ROWS_MAX: usize = 1 << 22;
