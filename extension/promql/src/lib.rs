//! PromQL: the parser of its queries.
//!
//! The crate knows nothing of PostgreSQL. All text is UTF-8; a label that a series does not have
//! is the empty text, as in Prometheus.
#![forbid(unsafe_code)]

pub mod ast;
pub mod duration;
mod expression;
pub mod function;
pub mod labels;
mod lexer;
pub mod matcher;
pub mod number;
pub mod parser;
mod printer;
pub mod quote;
pub mod span;
pub mod token;
