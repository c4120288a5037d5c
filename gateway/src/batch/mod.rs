//! From the rows of one request to a batch of many.
//!
//! | step | module | noun |
//! |---|---|---|
//! | who is this series | [`series_cache`] | label bytes to id, in memory |
//! | who may it be in the database | [`series_index`] | hashes of all registered label sets to ids, in memory |
//! | who is it there | [`register`] | label sets to new ids, in bulk, one call at a time |
//! | how much may wait | [`budget`] | bytes of all requests not yet answered |
//! | what waits | [`rows`], [`pending`] | one request's rows, its digest and who awaits the answer |
//! | with whom it travels | [`accumulate`] | requests of one level of acknowledgement, by rows and age |
//! | as what it travels | [`encode`] | the batch format of crate `lanes-wire` |

pub mod accumulate;
pub mod budget;
pub mod encode;
pub mod pending;
pub mod register;
pub mod rows;
pub mod series_cache;
pub mod series_index;

pub use budget::{Budget, Overloaded, Reservation};
pub use pending::{Digest, Fault, Pending};
pub use rows::Rows;
pub use series_cache::{SeriesCache, SeriesId};
pub use series_index::SeriesIndex;
