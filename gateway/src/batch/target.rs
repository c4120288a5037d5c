//! Where a batch goes.

/// A table. Requests with unequal targets never share a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// The table of samples.
    Samples {
        /// The registry generation that its series ids belong to.
        generation: u64,
    },
    /// Any table.
    Table {
        /// Its oid.
        oid: u32,
        /// What tells the batch's columns, names and types, from others.
        shape: u64,
        /// Whether every request has a digest. Else none has, and a batch whose outcome is unknown is not sent again.
        is_once: bool,
    },
}
