//! Batches into PostgreSQL: exactly once what has a digest, at most once for each time that it is sent what has none.
//!
//! | step | module | noun |
//! |---|---|---|
//! | send until known | [`send`] | one batch: repeated, split, reduced, until each request has its outcome |
//! | how often | [`backoff`] | pauses between attempts |
//! | to whom | [`sink`] | what is asked of a database, as a trait: tests have their own |
//! | what an error means | [`call_error`] | by SQLSTATE, and by whether the commit may be done |
//! | over what | [`postgres`], [`connection`] | a few connections for each level |
//! | how soon again | [`opening_pause`] | sessions that an operator's mistake keeps from being opened |
//! | into what log | [`logged`] | level `object`: what is committed is put into object storage too, before it is acknowledged |
//! | into what | [`describe`] | a table as the catalogue has it |
//! | which registry | [`registry`] | whether series ids learned earlier still hold |
//! | which series | [`registration`], [`registry_calls`] | label sets found in the database, or registered there |
//! | as whom | [`password`] | where a password comes from |
//! | what is counted | [`metrics`] | batches, calls, and PostgreSQL as it is seen |
//!
//! Why it is exactly once with digests: these commit in the transaction that appends their rows, so an attempt whose outcome is
//! unknown (connection lost while committing) is simply repeated: either the digests are there, and the requests are acknowledged
//! without being applied, or they are not, and nothing was applied. The window is as long as digests are kept. Events without a key have
//! no digest: an attempt whose outcome is unknown is not repeated, and its sender is told so.

pub mod backoff;
pub mod call_error;
pub mod connection;
pub mod describe;
pub mod logged;
pub mod metrics;
pub mod opening_pause;
pub mod password;
pub mod postgres;
pub mod registration;
pub mod registry;
pub mod registry_calls;
pub mod send;
pub mod sink;

pub use backoff::Backoff;
pub use metrics::DeliverMetrics;
pub use postgres::PostgresSink;
pub use send::Sender;
pub use sink::{Append, Health, NO_LOG, Registered, Repeated, Sink, SinkError};
