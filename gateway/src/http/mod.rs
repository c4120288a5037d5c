//! HTTP without routes: connections, bodies and answers.
//!
//! ```text
//! listener ─► server ─► hosts ─► body ─► handler ─► answer, or refusal
//!             limits    names    memory budget
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`server`] | connections and their limits |
//! | [`hosts`] | the host names that are served; protection against web pages of other sites |
//! | [`body`] | reading a body within the memory budget |
//! | [`unread`] | the rest of a body whose request was refused |
//! | [`refusal`] | the kinds of refusal and their status codes |
//! | [`metrics`] | what is counted |

pub mod body;
pub mod hosts;
pub mod metrics;
pub mod refusal;
pub mod server;
pub mod unread;

pub use hosts::Hosts;
pub use metrics::HttpMetrics;
pub use refusal::Refusal;
