//! Starts, feeds and stops a complete pg_lanes on one machine.
//!
//! The whole-path tests (`tests/tests`), the developer tool behind `cargo dev` (`tests/src/bin/dev`)
//! and the bench (`bench`) are built on this crate. It depends on none of them.
//!
//! The modules in the order in which a test uses them:
//!
//! | module | contents |
//! |---|---|
//! | [`error`] | the error type; each message names the remedy |
//! | [`account`] | the operating-system account that runs PostgreSQL, and the folders it can reach |
//! | [`installation`] | installations of PostgreSQL: the default one, and others by their `pg_config` |
//! | [`private_installation`] | an installation with folders of its own for extensions |
//! | [`place`] | paths: the target folder, a folder for a cluster |
//! | [`port`] | loopback ports: a free one, or the process that holds one |
//! | [`process`] | a child process with a log file: start, watch, signal, stop |
//! | [`seed`] | the source of randomness; each seed is printed so that a failure can be replayed |
//! | [`budget`] | the number of rounds of a random test in `make test` and in `make test-long` |
//! | [`cluster`] | a private PostgreSQL cluster: create, start, stop, crash, standby, promote |
//! | [`provision`] | the database, roles and extension that a gateway needs |
//! | [`objects`] | an object store in memory, and a thread that recalls segments from it |
//! | [`gateway`] | the process `lanes-gateway`: configure, start, send requests, stop, crash |
//! | [`prometheus`] | Debian's Prometheus and node_exporter, which write to a gateway |
//! | [`prometheus_receiver`] | a Prometheus that stores what is written to it, for the same queries |
//! | [`minio`] | a MinIO server, for tests of S3 |
//! | [`faulty_proxy`] | a TCP proxy that delays or cuts responses |
//! | [`small_disk`] | a small file system that can be filled |
//! | [`store`] | the object store of a gateway: a directory, MinIO, or one of them with faults |
//! | [`browser`] | Chromium without a window, for tests of the page |
//! | [`remote_write`] | an encoder of remote-write requests, independent of the gateway's decoder |
//!
//! A test needs three lines:
//!
//! ```no_run
//! # fn main() -> Result<(), lanes_support::error::Error> {
//! let cluster = lanes_support::cluster::Cluster::builder("my_test").start()?;
//! let mut client = cluster.connect("postgres")?;
//! client.batch_execute("CREATE TABLE t (x int4) USING lanes")?;
//! # Ok(())
//! # }
//! ```
//!
//! # Invariants
//! - One value owns a cluster, and dropping the value ends the cluster's processes.
//! - The name of a test's folder contains the process id of its owner. The next test run removes the
//!   folders of owners that were killed.
//! - No function names, starts or stops a cluster of the operating system.

pub mod account;
pub mod browser;
pub mod budget;
pub mod cluster;
pub mod error;
pub mod faulty_proxy;
pub mod gateway;
pub mod installation;
pub mod minio;
pub mod objects;
pub mod place;
pub mod port;
pub mod private_installation;
pub mod process;
pub mod prometheus;
pub mod prometheus_receiver;
pub mod provision;
pub mod remote_write;
pub mod seed;
pub mod small_disk;
pub mod store;
