//! Scenarios of sealed rows: their size, the cost of sealing, the speed of reading, and the effect
//! on ingest.
//!
//! ```text
//! fleet's bodies ─► gateway ─► lanes.samples ─► VACUUM, lanes.seal() ─► bytes, CPU            size      beside VictoriaMetrics
//! the SQL table's rows ─► open, sealed, sorted ─► the same queries in turns                   scenario
//! sample_table ─► lanes.append ─► lanes.seal() ─► one series ─► object_store ─► one series    scenario
//! fleet's bodies ─► open loop ─► gateway, beside the background worker and an object_store    offload   p99
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`object_store`] | the object store of a gateway: a directory, or MinIO |
//! | [`sample_table`] | a table of samples with known values |
//! | [`size`] | the scenario `size`: bytes per sample, CPU of sealing and merging |
//! | [`scenario`] | the scenario `sealed`: whole tables, one series of many, and reads from an object store |
//! | [`offload`] | the scenario `offload`: p99 of ingest while rows are sealed and offloaded |
//!
//! The scenario `soak` of [`crate::remote_write`] runs the same operations for a long time.

pub mod object_store;

pub mod sample_table;

pub mod size;

pub mod scenario;

pub mod offload;
