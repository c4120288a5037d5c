//! The database, as object storage sees it.
//!
//! | module | contents |
//! |---|---|
//! | [`contract`] | the calls to the database, as a trait; tests implement it in memory |
//! | [`postgres`] | PostgreSQL behind the trait, through three sessions |
//! | [`session`] | one session |

pub mod contract;
pub mod postgres;
pub mod session;

pub use contract::{
    Backlog, Definition, DueSegment, Identity, LocalRows, PartRows, Primary, Source, SourceError,
};
pub use postgres::PostgresSource;
