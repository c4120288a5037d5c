//! JSON bodies to batches: `application/json`, an array of objects, or one object per line.
//!
//! ```text
//! body ─ UTF-8 ─ an array, or an object per line ─ key ─► column ─ value ─► its buffer ─► batch
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`body`] | the forms of a body; the parser is driven row by row and never builds a tree of values |
//! | [`rows`] | objects to rows: the buffer of a column begins with its first key; missing values are NULL |
//! | [`value`] | values to columns, typed by the kind of the column |
//! | [`raw`] | JSON kept as text: its depth, and characters that PostgreSQL refuses |
//! | [`infer`] | columns for a missing table that accept every value of the body |
//!
//! | column | accepts |
//! |---|---|
//! | boolean | `true`, `false` |
//! | smallint, integer, bigint | integers in range, also as strings; never fractions |
//! | real, double precision | numbers, and the strings `NaN`, `Infinity`, `-Infinity` |
//! | numeric | numbers, digit by digit as written, and strings |
//! | timestamptz, timestamp | strings as described in [`super::format::time_text`], or integers: microseconds since the Unix epoch |
//! | date | strings `YYYY-MM-DD`, `infinity`, `-infinity` |
//! | uuid | strings |
//! | bytea | strings of `\x` and hexadecimal digits |
//! | text, varchar, char | strings only: a number is not text |
//! | json, jsonb | any value, as written |
//! | any other | strings, converted by the input function of the type |
//!
//! `null` is NULL everywhere. A column that no object contains is omitted from the batch and gets
//! its default. A column that some objects lack is NULL in their rows. A real is the double that
//! the text denotes, rounded; minus zero becomes zero.
//!
//! # Faults
//! The first fault ends the decoding and is reported with its row and column. Text never expands
//! (escapes shrink), but rows × columns can: for example in a body of empty objects and a single
//! wide one. This product is therefore checked before anything is stored.

mod body;
mod infer;
mod raw;
mod rows;
mod value;

#[cfg(test)]
mod tests;

pub use body::decode;
pub use infer::columns;
