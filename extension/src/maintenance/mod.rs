//! Maintenance of tables: VACUUM, sealing, retention, moving parts, shortening files.
//!
//! | module | contents |
//! |---|---|
//! | [`vacuum`] | VACUUM of a table, step by step |
//! | [`vacuum_report`] | the report of a VACUUM: catalogs, statistics, VERBOSE |
//! | [`upkeep`] | retention, sealing and settling, by whichever of three ways they are called |
//! | [`seal_plan`] | which rows are sealed next, and which parts are merged |
//! | [`seal`] | sealing a range: reading, sorting, writing, adding the part |
//! | `place_map` | the place map of a new part, by which index entries find its rows |
//! | [`replace_part`] | replacing a local part by one in object storage |
//! | [`relocate`] | moving parts from the end of the file to free blocks before them |
//! | [`shorten`] | returning the free end of the file to the file system |
//!
//! ```text
//! background worker, lanes.seal() ──► upkeep ──► seal_plan ──► seal (place_map) ──► a new part
//! VACUUM ──► vacuum: freeze, mark dead, sweep ──► upkeep ──► relocate ──► shorten ──► vacuum_report
//! gateway ──► crate::offload ──► replace_part ──► a remote part
//! ```
//! Each of these adds an entry that takes the place of older ones by one WAL record. A later VACUUM
//! frees the blocks of the older entries, once no scan can need them.

mod place_map;
pub mod relocate;
pub mod replace_part;
pub mod seal;
pub mod seal_plan;
pub mod shorten;
pub mod upkeep;
pub mod vacuum;
pub mod vacuum_report;
