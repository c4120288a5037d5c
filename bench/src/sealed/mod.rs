//! Scenarios of sealed rows: how small they are and at what cost, how fast they are read, and what all that does to ingest.
//!
//! ```text
//! fleet's bodies ─► gateway ─► lanes.samples ─► VACUUM, lanes.seal() ─► bytes, CPU            size      beside VictoriaMetrics
//! the SQL table's rows ─► open, sealed, sorted ─► the same queries in turns                   scenario
//! sample_table ─► lanes.append ─► lanes.seal() ─► one series ─► object_store ─► one series    scenario
//! fleet's bodies ─► open loop ─► gateway, beside the background worker and an object_store    offload   p99
//! ```
//!
//! | module | one thing |
//! |---|---|
//! | [`object_store`] | where segments go: a directory, or MinIO |
//! | [`sample_table`] | a table of samples whose every value is known |
//! | [`size`] | scenario `size`: bytes a sample, CPU of sealing and merging |
//! | [`scenario`] | scenario `sealed`: whole tables, one series of many, the same out of a store |
//! | [`offload`] | scenario `offload`: p99 of ingest while rows are sealed and put away |
//!
//! How long all of that can go on is scenario `soak` of [`crate::remote_write`].

pub mod object_store;

pub mod sample_table;

pub mod size;

pub mod scenario;

pub mod offload;
