//! PromQL: the parser of its queries, and an engine that evaluates them column by column, exactly
//! as Prometheus 3 does.
//!
//! ```text
//! text ──► parser ──► syntax tree ──► plan ──► eval ──► engine: an answer with annotations
//!                                      │         ▲
//!                              reads ──┴─► source ┘ labels, columns of times and values
//! ```
//! | module | one thing |
//! |---|---|
//! | [`parser`], [`token`], [`ast`] | a query's text to its syntax tree; errors have positions |
//! | [`function`] | the functions of PromQL: names, arguments, results |
//! | `plan` | durations, times of `@`, what is evaluated once, what is read once |
//! | `eval` | rows of values, a value of each step; windows, aggregations, operators |
//! | [`engine`] | queries at one time or at steps of a range to answers; options and limits |
//! | `profile`, `explain` | where the time of an evaluation went, as text |
//! | [`json`] | answers as bodies of the HTTP API |
//! | [`prepared`] | queries that are parsed and planned |
//! | [`source`] | where series come from: a trait |
//! | [`batches`] | sources that read series in batches |
//! | [`pipeline`] | reading on one thread, evaluation on another |
//! | [`memory`] | series in memory, for tests and measurements |
//! | [`labels`], [`matcher`] | label sets, and conditions on them |
//! | `expression`, `alternation` | regular expressions of RE2, and those that are lists of texts |
//! | [`error`] | why a query has no answer |
//!
//! The crate knows nothing of PostgreSQL. All text is UTF-8; a label that a series does not have
//! is the empty text, as in Prometheus. Times are milliseconds since 1970, values are `f64` whose
//! bits are kept.
//!
//! # What is supported
//! The stable language, with classic histograms. Experimental functions and aggregations, `fill`
//! and letters beyond ASCII in names need their flag ([`parser::ParserOptions`]), as in
//! Prometheus; of them `info` is refused by name. Native histograms and start timestamps are not
//! stored: a source that meets a native histogram returns [`Error::NativeHistogram`].
//!
//! # Failure cases
//! - A text that is no query, or whose types do not fit: [`Error::Parse`], Prometheus's words.
//! - What Prometheus refuses while it evaluates, such as two series of one label set:
//!   [`Error::Execution`], Prometheus's words.
//! - More samples, series, steps or bytes than a query may have: [`Error::Limit`] names the limit.
//!   Memory is bounded: rows that are held are counted, all others pass through buffers of one row.
//! - The interrupt of [`Engine::with_interrupt`] is called every few milliseconds; its error ends
//!   the evaluation.
//! - Deep expressions are refused by the parser, so that no recursion exhausts the stack; regular
//!   expressions have a limit of size and are matched in linear time.
#![forbid(unsafe_code)]

mod alternation;
mod annotation;
pub mod ast;
pub mod batches;
pub mod duration;
pub mod engine;
pub mod error;
mod eval;
mod explain;
mod expression;
pub mod function;
pub mod grid;
pub mod json;
pub mod labels;
mod lexer;
pub mod matcher;
pub mod memory;
pub mod number;
pub mod parser;
pub mod pipeline;
mod plan;
pub mod prepared;
mod printer;
mod profile;
pub mod quote;
pub mod sample;
pub mod source;
pub mod span;
pub mod token;

pub use engine::{Answer, Engine, Limits, Options, QueryTime, Value};
pub use error::Error;
pub use labels::Labels;
