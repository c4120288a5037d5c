//! Which series of Prometheus have which labels: selectors, and the index that answers them.
//!
//! ```text
//! text ──► Selector::parse ──► matchers ──► index::select(run, selector) ──► ids of series
//! label sets ──► index::Builder ──► a run: a directory and blocks ──► index::merge of several runs
//! label sets ──► SeriesHasher ──► HashBlock: what a gateway that starts reads instead of them
//! ```
//! | module | one thing |
//! |---|---|
//! | [`selector`] | a selector's text to matchers |
//! | [`matcher`] | one matcher: does a value match it? |
//! | [`label_set`] | the JSON text of a label set to names and values |
//! | [`index`] | runs of the label index: building, merging, answering |
//! | [`series_hash`] | the hash of a series, by which gateways know it |
//! | [`hash_block`] | hashes of many series as bytes |
//!
//! This crate knows nothing of PostgreSQL. Who calls it keeps the runs and reads their blocks.
//!
//! All text is UTF-8. A label that a series does not have is the empty text, as in Prometheus; the
//! metric's name is the label [`METRIC_NAME`].

pub mod hash_block;
pub mod index;
pub mod label_set;
pub mod matcher;
pub mod selector;
pub mod series_hash;

pub use hash_block::HashBlock;
pub use matcher::{Matcher, Operator};
pub use selector::{Selector, SelectorError};
pub use series_hash::SeriesHasher;

/// Ids of series.
pub use roaring::RoaringBitmap as IdSet;

/// The label that holds the name of a metric.
pub const METRIC_NAME: &str = "__name__";

/// Why a run of the index, or a label set, cannot be read.
#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
#[error("{0}")]
pub struct Malformed(pub &'static str);
