//! Remote write requests, from bytes to rows.
//!
//! | module | contents |
//! |---|---|
//! | [`media_type`] | the check of the headers |
//! | [`decompress`] | snappy; the declared length is checked before it is used |
//! | [`decode`] | series and samples, read in place |
//! | [`mod@resolve`] | rows with series ids, and label sets to register |
//! | [`mod@write`] | a request, from its body to its answer |
//! | [`metrics`] | what is counted |
//! | [`fuzz`] | the fuzzing entry |
//!
//! Everything that a request holds is taken from the memory budget before it is allocated. See
//! [`crate::model::budget`].

pub mod decode;
pub mod decompress;
pub mod fuzz;
pub mod media_type;
pub mod metrics;
pub mod resolve;
pub mod write;

pub use metrics::ReceiveMetrics;
pub use resolve::{RequestLimits, Resolved, resolve};
pub use write::{ReceiveLimits, WritePath};
