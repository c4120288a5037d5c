//! Arrow IPC streams to batches: `application/vnd.apache.arrow.stream`, what pyarrow, Polars and their like write.
//!
//! ```text
//! body ─ messages ─ bounds checked ─ arrow-ipc ─ arrays ─ appended ─► columns ─► batch
//! ```
//!
//! | step | module | noun |
//! |---|---|---|
//! | is it safe to read | [`messages`] | lengths and counts, before anything is allocated by them |
//! | read | [`stream`] | record batches, their schema held against the table's columns |
//! | to one batch | [`column`], [`append`] | arrays of all record batches, one column each |
//!
//! | Arrow | batch |
//! |---|---|
//! | Boolean | `Bool` |
//! | Int8, UInt8, Int16 | `Int16` |
//! | UInt16, Int32 | `Int32` |
//! | UInt32, Int64, UInt64 (if it fits) | `Int64` |
//! | Float16, Float32 | `Float32` |
//! | Float64 | `Float64` |
//! | Timestamp, any unit and zone | `Timestamp`: UTC if it has no zone; nanoseconds are floored |
//! | Date32, Date64 | `Date` |
//! | Utf8, LargeUtf8, Utf8View | `Text` |
//! | Dictionary of those | `Text`, still with a dictionary, of the items that rows use |
//! | Binary, LargeBinary, BinaryView, FixedSizeBinary | `Bytes`; FixedSizeBinary(16) into a uuid column: `Uuid` |
//! | Decimal32 to Decimal256 | `Text` |
//! | Null | `Text`, every row NULL |
//! | any other | refused |
//!
//! # Failure
//! A hostile stream gives an error: what it declares is compared with what it brings before the library sees it, types that nest are
//! refused by the schema, compressed buffers by their message (their size is not known before they are unpacked), and a panic of the
//! library is caught. Views and decimals, which say more than they take, are charged to the bound before they are copied.

mod append;
mod column;
mod messages;
mod stream;

#[cfg(test)]
mod tests;

pub use stream::{columns, decode};
