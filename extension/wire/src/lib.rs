//! The batch format: one columnar FlatBuffer that HTTP clients send, the gateway forwards and
//! `lanes.append` copies into lanes. It is checked once, on arrival, and its vectors are copied,
//! never parsed.
//!
//! Bytes flow through the modules in this order:
//!
//! | step | module | noun |
//! |---|---|---|
//! | rows in | `column_build`, `item_build`, `batch_build` | [`BatchBuilder`]: typed column buffers, reused from batch to batch |
//! | batches in | `batch_append` | `BatchBuilder::append`: verified batches joined to one |
//! | slices in | `batch_encode` | `encode`: borrowed slices to the FlatBuffer, one copy |
//! | bytes out | `table` | bounds-checked FlatBuffers tables |
//! | | `vector` | [`Bitmap`], [`Items`], [`Codes`]: views of checked vectors |
//! | | `column_check` | the rules that one column keeps |
//! | | `batch_view` | [`BatchView`]: a whole verified batch |
//! | kept for later | `verified_batch` | [`VerifiedBatch`]: a batch with its bytes, checked once |
//! | proof | `exercise` | reads all that a view offers; for fuzzing and property tests |
//!
//! `limits` holds the bounds, `column_type` the types, `error` the two error types, and
//! `schema/batch.fbs` the schema.
//!
//! # Invariants of a [`BatchView`]
//! - Every vector has the length that its type and the row count ask for: later code indexes by row
//!   without checks of its own.
//! - Every code is below its dictionary's item count, NULL rows included; end offsets ascend and
//!   end at their byte vector's end.
//! - Text is UTF-8 without NUL and every item begins and ends between characters.
//! - Timestamps and dates that are not NULL are ones that PostgreSQL can hold.
//! - Column names are distinct, 1 to 63 bytes. A batch with rows has a column, and its vectors
//!   together are no longer than the buffer, so the work that a body causes is bounded by the body.
//! - No pointer is assumed to be aligned: the payload of a `bytea` starts at 4 mod 8. Views hand
//!   out byte arrays (`&[[u8; 8]]`, alignment 1), so an unaligned buffer costs nothing and needs no
//!   copy.
//!
//! # Failure
//! A buffer that breaks a rule gives a [`BatchError`] that names the column and the rule; nothing
//! panics and nothing is allocated in proportion to a *declared* length. All errors are the
//! sender's to mend, none is worth a retry.
//!
//! # Why neither generated code nor the `flatbuffers` crate
//! The schema has three tables. Reading them is a hundred lines of safe, bounds-checked code, and
//! does structure and content in the same pass; the official crate's accessors are `unsafe` behind
//! a separate verifier pass that knows nothing of row counts, codes or UTF-8 boundaries, and both
//! it and planus want a code generator at build or commit time. Writing back to front, as a general
//! builder does, would cost a second copy of each vector. The official crate is the oracle of the
//! tests instead: it reads what this crate writes, and this crate reads what it writes.

#![forbid(unsafe_code)]

#[cfg(target_endian = "big")]
compile_error!("vectors are copied as they lie, so lanes-wire needs a little-endian target");

pub mod limits;

mod column_type;
mod error;

mod batch_append;
mod batch_build;
mod column_build;
mod item_build;

mod batch_encode;
mod layout;

mod batch_view;
mod column_check;
mod table;
mod vector;

mod verified_batch;

mod exercise;

pub use batch_build::BatchBuilder;
pub use batch_encode::{ColumnSource, ItemsSource, ValuesSource, encode};
pub use batch_view::{BatchView, ColumnView, Values};
pub use column_build::ColumnBuffer;
pub use column_type::ColumnType;
pub use error::{BatchError, BuildError, ColumnError};
pub use exercise::exercise;
pub use vector::{Bitmap, Codes, Items};
pub use verified_batch::VerifiedBatch;
