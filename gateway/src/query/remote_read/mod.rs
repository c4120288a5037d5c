//! Prometheus's remote read 1.0: raw samples of series, for a Prometheus that evaluates PromQL itself.
//!
//! ```text
//! body ─► request ─► statement ─► sessions ─► rows ─► series ─┬► samples ─► message ─► body
//!                                                             └► frames ─► xor ──────► body
//! ```
//! | module | contents |
//! |---|---|
//! | [`request`] | a request, from its bytes to selectors and times |
//! | [`statement`] | the statement for all queries of a request, and its rows |
//! | [`series`] | rows as series with samples in the order of their times |
//! | [`samples`] | the answer of type `SAMPLES` |
//! | [`message`] | a protobuf message that is compressed while it is written |
//! | [`frames`] | the answer of type `STREAMED_XOR_CHUNKS` |
//! | [`xor`] | samples as Prometheus's XOR chunks |
//! | [`answer`] | a request answered, in the type that it accepts |

pub mod answer;
pub mod frames;
pub mod message;
pub mod request;
pub mod samples;
pub mod series;
pub mod statement;
#[cfg(test)]
mod test_support;
pub mod xor;
