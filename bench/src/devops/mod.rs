//! Scenario `devops`: queries in the manner of TSBS, and others that people write, of lanes, heap with indexes and
//! DuckDB; star joins, of Polars too.
//!
//! ```text
//! fleet_data, star_data ─► table ─┬─► postgres_store: lanes, heap ─┐
//!                                 └─► peer_store: DuckDB, Polars ──┤ store: one trait
//! scenarios/devops.toml ─► query ─► draw: hosts and times ─────────┴─► turns: compared, timed ─► judge: bars ─► records
//! ```
//!
//! | module | one thing |
//! |---|---|
//! | [`table`] | columns in memory, for COPY and for files |
//! | [`fleet_data`], [`star_data`] | the data, from fixed seeds |
//! | [`query`] | a query of the data file, in the dialect of each store |
//! | [`draw`] | the hosts and times that a query is asked with |
//! | [`store`] | what is asked of any store |
//! | [`postgres_store`], [`peer_store`] | the stores |
//! | [`turns`] | a query on all stores: answers compared, then times in turns |
//! | [`judge`] | the records of a query, with the bar of ours |
//! | [`scenario`] | the scenario itself |
//!
//! # Invariants
//! - A store whose answer differs from the others' has no figure, and neither has ours while nobody else answers.
//! - lanes and heap are asked the same text; where they are not, the name of the query says so.
//! - Every execution on PostgreSQL parses and plans its text anew, as it does on DuckDB, unless the query has
//!   `prepare`.

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
