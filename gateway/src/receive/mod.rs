//! Remote write requests, from bytes to rows.
//!
//! | step | module | noun |
//! |---|---|---|
//! | is it meant for us | [`media_type`] | 415 for encodings and versions not understood |
//! | take it in | [`body`] | memory first, then the body |
//! | or do not | [`unread`] | the rest of a body that is refused |
//! | unpack | [`decompress`] | the declared length is judged before it is believed |
//! | read | [`protobuf`], [`decode`] | series and samples, in place |
//! | judge labels | [`label_set`], [`label_json`] | only those of series not seen before; canonical as bytes and as text |
//! | to rows | [`resolve`] | ids where known, label sets to register where not |
//! | all together | [`write`] | one request from body to answer |
//!
//! All that a request holds is taken from the memory budget, step by step before it is held: see [`crate::batch::budget`].

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
