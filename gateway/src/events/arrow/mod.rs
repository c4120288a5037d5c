//! Arrow IPC streams to batches: `application/vnd.apache.arrow.stream`, as written by pyarrow,
//! Polars and others.
//!
//! ```text
//! body ─ messages ─ limits checked ─ arrow-ipc ─ arrays ─ appended ─► columns ─► batch
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`messages`] | lengths and counts, checked before anything is allocated for them |
//! | [`stream`] | record batches, whose schema is checked against the table's columns |
//! | [`mod@column`], [`append`] | the arrays of all record batches, joined into one column each |
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
//! | Dictionary of text | `Text`, still with a dictionary, of the items that rows use |
//! | Binary, LargeBinary, BinaryView, FixedSizeBinary | `Bytes`; FixedSizeBinary(16) into a uuid column: `Uuid` |
//! | Decimal32 to Decimal256 | `Text` |
//! | Null | `Text`, every row NULL |
//! | any other | refused |
//!
//! # Faults
//! A hostile stream is refused. The sizes that it declares are compared with its actual length
//! before the library reads it. Nested types are refused by the schema, and compressed buffers by
//! their message, because their size is not known before they are decompressed. A panic of the
//! library is caught. Views and decimals, whose decoded form is larger than the body, are accounted
//! for before they are copied.

mod append;
mod column;
mod messages;
mod stream;

#[cfg(test)]
mod tests;

pub use stream::{columns, decode};
