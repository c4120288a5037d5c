//! The vector kernels of pg_lanes: the operations on lanes, a vector at a time.
//!
//! The kernels are C++ on Google's Highway, compiled for each instruction set (SSE2, SSE4, AVX2,
//! AVX-512; NEON on ARM) and chosen for the CPU at run time. They take pointers and row counts, and
//! do not depend on PostgreSQL or the arena. They are total: any bits in the values are valid, and
//! they never throw, assert or allocate.
//!
//! The cast, in the order in which a query's data flows:
//! - [`decode`]: numbers from packed bits, differences and decimals.
//! - [`search`]: places in a sorted lane; the interleaving of two sorted lanes.
//! - [`select`]: comparisons of a lane to a selection bitmap.
//! - [`combine`]: the algebra of bitmaps, and counting.
//! - [`aggregate`]: one result over the selected rows.
//! - [`group`]: a result for each group.
//! - [`stretches`]: consecutive rows that belong together, and a result for each stretch.
//! - [`copy`]: copies of selected rows to their places.
//! - [`frames`]: sums of as many consecutive rows each.
//! - [`distance`]: distances between vectors of floats.
//! - [`number`]: the element types. [`target`]: the instruction sets. `bridge`: the bridge to C++.
//! - [`naive`]: the definition of each kernel in a few plain lines; the kernels are tested against
//!   them.
//!
//! # Conventions of every function
//! *Bitmaps* are `u64` words; bit `i % 64` of word `i / 64` belongs to row `i`. A function that
//! writes a bitmap writes `rows.div_ceil(64)` whole words, with zero bits past the last row. A
//! function that reads a bitmap reads whole words and ignores the bits past the last row. A
//! *selection* is a bitmap of the rows that count; a null pointer selects all rows.
//!
//! *Order.* Floats compare as in PostgreSQL: NaN equals NaN and is greater than all other numbers,
//! -0 equals +0.
//!
//! *Sums of floats* are added in an order that depends on the rows alone and not on the CPU, see
//! [`aggregate`].
//!
//! # Safety
//! Lanes are in shared memory that grows while it is read, so there are no slices. The caller
//! guarantees for every pointer that it is aligned to its element and, for the whole call, valid
//! for `rows` elements (bitmaps: `rows.div_ceil(64)` words; arrays indexed by a code or a group:
//! one element for every code or group in the rows, selected or not). Memory that is read is not
//! written meanwhile, except the bits of bitmaps past the last row; memory that is written has no
//! other users. Outputs do not overlap inputs unless the function allows it. `rows` is less than
//! 2^32. With `rows` = 0 no pointer is followed, but all must be aligned.
#![warn(missing_docs)]

pub mod aggregate;
mod bridge;
pub mod combine;
pub mod copy;
pub mod decode;
pub mod distance;
pub mod frames;
pub mod group;
pub mod naive;
pub mod number;
pub mod search;
pub mod select;
pub mod stretches;
pub mod target;

pub use number::{Float, Number};
pub use select::Comparison;
