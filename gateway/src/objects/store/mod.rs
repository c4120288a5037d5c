//! The object store.
//!
//! | module | contents |
//! |---|---|
//! | [`contract`] | images and records under keys, as a trait; tests implement it in memory |
//! | [`slate`], [`slate_settings`] | SlateDB behind the trait, and the reasons for its settings |
//! | [`reader`] | reading a store that another gateway may have open |
//! | [`location`] | a directory or a bucket |
//! | [`observed`], [`cache_metrics`] | counting of requests and of look-ups in memory |

pub mod cache_metrics;
pub mod contract;
pub mod location;
pub mod observed;
pub mod reader;
pub mod slate;
pub mod slate_settings;
#[cfg(test)]
mod slate_tests;

pub use contract::{Images, Opener, Reader, RoundError, Store, StoreError};
pub use location::Location;
pub use slate::{SlateOpener, SlateStore};
