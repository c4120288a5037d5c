//! Everything that starts, feeds and stops a whole pg_lanes on one machine: the base of the whole-path tests and of
//! `cargo dev` (`src/bin/dev`).
//!
//! In the order in which a run uses them:
//!
//! | module | one thing |
//! |---|---|
//! | [`error`] | every failure, worded for the person at the terminal |
//! | [`account`] | which operating-system account runs Postgres (it refuses root), and what that account can reach |
//! | [`place`] | where things are: Postgres's programs, the build's target folder, a folder for a cluster |
//! | [`port`] | loopback ports: a free one, or why one is taken |
//! | [`process`] | one child process with a log: start, watch, signal, never leave behind |
//! | [`seed`] | the one source of randomness, printed so that a failure can be replayed |
//! | [`budget`] | how much a random test does: little in `make test`, much in `make test-long` |
//! | [`cluster`] | a private Postgres cluster: create, start, stop, kill -9, standby, promote |
//! | [`provision`] | database, roles and extension in a cluster, and what a client needs to connect |
//! | [`objects`] | an object store in memory, and a thread that recalls segments from it |
//! | [`gateway`] | the `lanes-gateway` program: configure, start, ask, stop, kill -9 |
//! | [`prometheus`] | Debian's Prometheus and node_exporter, scraping and remote-writing to a gateway |
//! | [`minio`] | MinIO, for what needs S3 |
//! | [`faulty_proxy`] | a network that is slow, or breaks off |
//! | [`small_disk`] | a disk that can be full |
//! | [`store`] | where a gateway keeps objects: a directory, MinIO with a good network or a bad one, a disk that can be full |
//! | [`remote_write`] | remote write requests, encoded by hand |
//!
//! A test needs three lines:
//! ```no_run
//! # fn main() -> Result<(), lanes_tests::error::Error> {
//! let cluster = lanes_tests::cluster::Cluster::builder("my_test").start()?;
//! let mut client = cluster.connect("postgres")?;
//! client.batch_execute("CREATE TABLE t (x int4) USING lanes")?;
//! # Ok(())
//! # }
//! ```
//!
//! Invariants: a cluster is owned by one value and its processes end with that value; a folder that this crate creates
//! for a test carries the process id of its owner, so that what a killed test run leaves behind is removed by the next
//! one; nothing here ever names, starts or stops a cluster of the operating system.

pub mod account;
pub mod budget;
pub mod cluster;
pub mod error;
pub mod faulty_proxy;
pub mod gateway;
pub mod minio;
pub mod objects;
pub mod place;
pub mod port;
pub mod process;
pub mod prometheus;
pub mod provision;
pub mod remote_write;
pub mod seed;
pub mod small_disk;
pub mod store;
