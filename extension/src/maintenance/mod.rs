//! Maintenance of tables: sealing, retention, VACUUM.

mod place_map;
pub mod relocate;
pub mod replace_part;
pub mod seal;
pub mod seal_plan;
pub mod shorten;
pub mod upkeep;
pub mod vacuum;
pub mod vacuum_report;
