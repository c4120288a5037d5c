//! A private PostgreSQL cluster with its own data, port, socket, settings and processes.
//!
//! | module | contents |
//! |---|---|
//! | [`builder`] | the description of a cluster to be created |
//! | `layout` | the files of a cluster, and its settings |
//! | [`running`] | a cluster as a value: start, stop, kill -9, connect |
//! | `template` | the data folder that initdb creates once and each test copies |
//! | [`kept`] | clusters that stay running after their test has failed |
//! | [`standby`] | a streaming standby of a cluster, its progress, its promotion |
//! | `upgrade` | the move of a cluster's data to another version of PostgreSQL |
//!
//! # Access
//! The superuser `postgres` connects through the socket only, as the operating-system account that
//! owns the cluster or as root (`peer`). Everyone else needs a SCRAM password, through the socket
//! too. The cluster listens on 127.0.0.1 only.
//!
//! # Failures
//! - If a cluster's postmaster is still running because its owner was killed, it is stopped before
//!   the next start.
//! - A cluster that was killed recovers as any PostgreSQL does.
//! - The error of a failed start contains the end of the log.

mod builder;
pub mod kept;
mod layout;
mod running;
mod standby;
mod template;
#[cfg(test)]
mod tests;
mod upgrade;

pub use builder::Builder;
pub use running::{Cluster, Stop, end_leftover};
