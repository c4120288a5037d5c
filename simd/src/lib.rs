//! The vector kernels of pg_lanes: what is done to a lane a vector at a time.
//!
//! The kernels are C++ on Google's Highway, compiled for each instruction set (SSE2, SSE4, AVX2, AVX-512; NEON on ARM) and
//! picked for the CPU at run time. They know pointers and row counts, nothing of PostgreSQL or of the arena. They are total:
//! any bits in the values are fine, and they never throw, assert or allocate.
//!
//! The cast, in the order in which a query's data flows:
//! - [`decode`]: numbers out of packed bits, differences and decimals.
//! - [`search`]: where in a sorted lane; how two sorted lanes interleave.
//! - [`select`]: comparisons of a lane to a selection bitmap.
//! - [`combine`]: the algebra of bitmaps, and counting.
//! - [`aggregate`]: one answer over the selected rows.
//! - [`group`]: an answer for each group.
//! - [`stretches`]: rows in a row that have something in common, and an answer for each run of them.
//! - [`distance`]: of vectors of floats.
//! - [`number`]: the element types. [`target`]: the instruction sets. `bridge`: the way to C++.
//! - [`naive`]: each kernel's meaning in a few plain lines; the kernels are tested against them.
//!
//! # What every function here has in common
//! *Bitmaps* are `u64` words; bit `i % 64` of word `i / 64` belongs to row `i`. A function that writes one writes
//! `rows.div_ceil(64)` whole words, with zero bits past the last row. A function that reads one reads whole words and ignores
//! the bits past the last row. A *selection* is a bitmap of the rows that count; a null pointer selects all.
//!
//! *Order.* Floats compare as PostgreSQL compares them: NaN equals NaN and is greater than all else, -0 equals +0.
//!
//! *Sums of floats* are added in an order that depends on the rows alone and not on the CPU, see [`aggregate`].
//!
//! # Safety
//! Lanes lie in shared memory that grows while it is read, so there are no slices. Of every pointer the caller vouches that
//! it is aligned to its element and, for the whole call, valid for `rows` elements (bitmaps: `rows.div_ceil(64)` words; what
//! is indexed by a code or a group: one element for every code or group in the rows, selected or not). Nobody writes what is
//! read, except the bits of bitmaps past the last row, nor touches what is written. Outputs do not overlap inputs unless the
//! function says so. `rows` is less than 2^32. With `rows` = 0 no pointer is followed, but none may dangle unaligned.
#![warn(missing_docs)]

pub mod aggregate;
mod bridge;
pub mod combine;
pub mod decode;
pub mod distance;
pub mod group;
pub mod naive;
pub mod number;
pub mod search;
pub mod select;
pub mod stretches;
pub mod target;

pub use number::{Float, Number};
pub use select::Comparison;
