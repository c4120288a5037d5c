//! JSON bodies to batches: `application/json`, one array of objects, or objects a line.
//!
//! ```text
//! body ─ UTF-8 ─ one array, or a line an object ─ key ─► column ─ value ─► its buffer ─► batch
//! ```
//!
//! | step | module | noun |
//! |---|---|---|
//! | which of the forms | [`body`] | the parser is driven row by row; no tree of values is ever made |
//! | objects to rows | [`rows`] | a column's buffer begins with its first key; what is absent is NULL |
//! | values to columns | [`value`] | typed by the column's kind |
//! | JSON kept as text | [`raw`] | depth and characters that PostgreSQL refuses |
//! | for a table that is not there | [`infer`] | columns of kinds that take every value of the body |
//!
//! | column | takes |
//! |---|---|
//! | boolean | `true`, `false` |
//! | smallint, integer, bigint | integers in range, also as strings; never a fraction |
//! | real, double precision | numbers, and the strings `NaN`, `Infinity`, `-Infinity` |
//! | numeric | numbers, digit for digit as written, and strings |
//! | timestamptz, timestamp | strings as [`super::time_text`] reads them, or integers: microseconds since the Unix epoch |
//! | date | strings `YYYY-MM-DD`, `infinity`, `-infinity` |
//! | uuid | strings |
//! | bytea | strings `\x` and hexadecimal digits |
//! | text, varchar, char | strings, and nothing else: a number is not text |
//! | json, jsonb | any value, as it is written |
//! | any other | strings, read by the type's input function |
//!
//! `null` is NULL everywhere. A column that no object has is left out of the batch and takes its default; one that some objects lack is
//! NULL there. A real is the double that the text says, rounded, and minus zero is zero.
//!
//! # Failure
//! The first fault ends the decoding and is named with its row and column. Text never expands (escapes shrink), rows × columns can: a
//! body of empty objects with one wide one among them; so that product is bounded before it is stored.

mod body;
mod infer;
mod raw;
mod rows;
mod value;

#[cfg(test)]
mod tests;

pub use body::decode;
pub use infer::columns;
