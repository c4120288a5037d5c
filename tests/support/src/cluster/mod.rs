//! A private Postgres cluster: its own data, port, socket, settings and processes.
//!
//! | module | one thing |
//! |---|---|
//! | [`builder`] | what a cluster is asked to be |
//! | `layout` | the files of a cluster, and what is written into its settings |
//! | [`running`] | a cluster as a value: start, stop, kill -9, connect |
//! | `template` | the data folder that initdb makes, made once and copied for each test |
//! | [`kept`] | clusters that stay running after their test has failed |
//! | [`standby`] | a streaming standby of a cluster, its progress, its promotion |
//!
//! Access: the superuser `postgres` connects through the socket only, by being the operating-system account that owns the
//! cluster, or root (`peer`); everyone else needs a scram password, through the socket too. It listens on 127.0.0.1 only.
//!
//! Failure cases: a cluster whose postmaster is still running (its owner was killed) is stopped before it is started
//! again; a cluster that was killed recovers as any Postgres does; a start that fails shows the end of the log.

mod builder;
pub mod kept;
mod layout;
mod running;
mod standby;
mod template;
#[cfg(test)]
mod tests;

pub use builder::Builder;
pub use running::{Cluster, Stop, end_leftover};
