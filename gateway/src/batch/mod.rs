//! From the rows of one request to a batch of many.
//!
//! | step | module | noun |
//! |---|---|---|
//! | who is this series | [`series_cache`] | label bytes to id, in memory |
//! | who may it be in the database | [`series_index`] | hashes of all registered label sets to ids, in memory |
//! | who is it there | [`register`] | label sets to new ids, in bulk, one call at a time |
//! | how much may wait | [`budget`] | bytes of all requests not yet answered |
//! | what it brings | [`payload`], [`rows`] | rows, and how those of many requests become one batch of crate `lanes-wire`; samples are such |
//! | where it goes | [`target`] | samples, or any table |
//! | what waits | [`pending`] | one request's rows, its digest and who awaits the answer |
//! | with whom it travels | [`accumulate`] | requests of one level of acknowledgement, by rows and age |

pub mod accumulate;
pub mod budget;
pub mod payload;
pub mod pending;
pub mod register;
pub mod rows;
pub mod series_cache;
pub mod series_index;
pub mod target;

pub use budget::{Budget, Overloaded, Reservation, Room};
pub use payload::Payload;
pub use pending::{Digest, Fault, Pending};
pub use rows::Rows;
pub use series_cache::{SeriesCache, SeriesId};
pub use series_index::SeriesIndex;
pub use target::Target;
