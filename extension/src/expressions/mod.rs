//! Expressions of PostgreSQL, translated into expressions of the engine.

pub mod aggregate_call;
pub mod buckets;
pub mod call_memory;
pub mod condition_code;
pub mod epoch_bucket;
pub mod joined_columns;
pub mod lanes_aggregate;
pub mod number_functions;
pub mod percentile;
pub mod result_datum;
pub mod scalar;
pub mod sort_key;
pub mod text_predicate;
pub mod text_quals;
pub mod time_sort;
pub mod translate;
pub mod uuid_quals;
pub mod value_predicate;
pub mod value_quals;
