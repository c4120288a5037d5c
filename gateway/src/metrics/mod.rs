//! The registry that all metrics are gathered from.
//!
//! | module | contents |
//! |---|---|
//! | [`families`] | the registry, and functions that add families to it |
//! | `process` | CPU time, memory and file descriptors of the process |
//!
//! Each part of the gateway declares its families beside the code that counts them: see
//! [`crate::http::HttpMetrics`], [`crate::receive::ReceiveMetrics`],
//! [`crate::series::SeriesMetrics`], [`crate::deliver::DeliverMetrics`] and
//! [`crate::objects::model::ObjectMetrics`].

pub mod families;
mod process;

pub use families::Families;
