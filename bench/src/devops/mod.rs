//! The scenario `devops`: TSBS-like queries and other common ones on lanes, heap with indexes and
//! DuckDB; star joins also on Polars.
//!
//! ```text
//! fleet_data, star_data ─► table ─┬─► postgres_store: lanes, heap ─┐
//!                                 └─► peer_store: DuckDB, Polars ──┤ store: one trait
//! scenarios/devops.toml ─► query ─► draw: hosts and times ─────────┴─► turns: compared, timed ─► judge: bars ─► records
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`table`] | columns in memory, for COPY and for files |
//! | [`fleet_data`], [`star_data`] | the data, from fixed seeds |
//! | [`query`] | a query of the data file, in the dialect of each store |
//! | [`draw`] | the hosts and times that a query refers to |
//! | [`store`] | the interface of every store |
//! | [`postgres_store`], [`peer_store`] | the stores |
//! | [`turns`] | a query on all stores: answers compared, then times in turns |
//! | [`judge`] | the records of a query, with its bar |
//! | [`scenario`] | the scenario itself |
//!
//! # Invariants
//! - A store whose answer differs from the others has no figure. pg_lanes has no figure without
//!   another store's answer.
//! - lanes and heap run the same text; where they do not, the name of the query says so.
//! - Every execution on PostgreSQL parses and plans its text again, as DuckDB does, unless the
//!   query has `prepare`.

pub mod draw;
pub mod fleet_data;
pub mod judge;
pub mod peer_store;
pub mod postgres_store;
pub mod query;
pub mod scenario;
pub mod star_data;
pub mod store;
pub mod table;
pub mod turns;
