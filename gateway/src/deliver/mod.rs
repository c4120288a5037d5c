//! Delivery of batches to PostgreSQL. Requests with a digest are applied exactly once. Requests
//! without one are applied at most once each time that they are sent.
//!
//! | module | contents |
//! |---|---|
//! | [`sink`] | the calls to a database, as a trait; tests implement it in memory |
//! | [`send`] | one batch: repeated, split and reduced until each request has its outcome |
//! | [`backoff`], [`opening_pause`] | pauses between attempts to send, and between attempts to open sessions that fail by a mistake of an operator |
//! | [`postgres`], [`connection`] | PostgreSQL behind the trait: a few sessions for each level |
//! | [`call_error`] | the meaning of errors, by SQLSTATE and by whether the commit may have happened |
//! | [`logged`] | level `object`: committed rows are put into the log of object storage before they are acknowledged |
//! | [`describe`] | a table from the catalogue, and the statement that creates one |
//! | [`registry`] | whether cached series ids are still valid |
//! | [`registration`], [`registry_calls`] | label sets looked up and registered in the database |
//! | [`metrics`] | what is counted |
//!
//! Digests make delivery exactly once because they commit in the transaction that appends their
//! rows. If the outcome of an attempt is unknown, for example because the connection was lost
//! during the commit, the attempt is repeated. Either the digests exist, and the requests are
//! acknowledged without being applied again, or they do not, and nothing was applied. This holds
//! for as long as digests are kept. Events without a key have no digest: an attempt whose outcome
//! is unknown is not repeated, and its sender is informed.

pub mod backoff;
pub mod call_error;
pub mod connection;
pub mod describe;
pub mod logged;
pub mod metrics;
pub mod opening_pause;
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
