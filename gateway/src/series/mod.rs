//! Series: their labels and their ids.
//!
//! ```text
//! label bytes as sent ─► cache ─► id
//!                          │ miss
//!                          └─► label set ─► index ─► candidate ids, or a new series
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`protobuf`] | reading and writing protobuf fields |
//! | [`label_set`], [`label_json`] | a validated label set, as canonical bytes and as JSON |
//! | [`cache`] | label bytes to series id, in memory |
//! | [`index`] | hashes of all registered label sets to series ids, in memory |
//! | [`sample_rows`] | samples as rows, and the batch that they become |
//! | [`metrics`] | what is counted |

pub mod cache;
pub mod index;
pub mod label_json;
pub mod label_set;
pub mod metrics;
pub mod protobuf;
pub mod sample_rows;

pub use cache::{SeriesCache, SeriesId};
pub use index::SeriesIndex;
pub use label_set::{LabelLimits, LabelOrder, LabelSet};
pub use metrics::SeriesMetrics;
pub use sample_rows::SampleRows;
