//! The types that the parts of the gateway exchange. They depend on no other part.
//!
//! | module | contents |
//! |---|---|
//! | [`ack_level`] | the promise of an acknowledgement |
//! | [`digest`] | the identity of a request |
//! | [`privilege`] | what a role may do to a table |
//! | [`table`] | a table, its columns and the batch types that they accept |
//! | [`target`] | the table that a batch is appended to |
//! | [`payload`] | the rows of a request |
//! | [`pending`] | a request that waits to be stored |
//! | [`outcome`] | the end of a request |
//! | [`budget`] | the memory of all requests |

pub mod ack_level;
pub mod budget;
pub mod digest;
pub mod outcome;
pub mod payload;
pub mod pending;
pub mod privilege;
pub mod table;
pub mod target;

pub use ack_level::AckLevel;
pub use budget::{Budget, Overloaded, Reservation, Room};
pub use digest::Digest;
pub use outcome::{Fault, Outcome, Stored};
pub use payload::{Payload, RowKind};
pub use pending::Pending;
pub use privilege::InsertPrivilege;
pub use table::{ColumnKind, Table, TableColumn};
pub use target::Target;
