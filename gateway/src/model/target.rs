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
        /// The registry generation of the database that it was described by: elsewhere its oid may be another table's.
        generation: u64,
        /// Its oid.
        oid: u32,
        /// What tells the batch's columns, names and types, from others.
        shape: u64,
        /// Whether every request has a digest. Else none has, and a batch whose outcome is unknown is not sent again.
        is_once: bool,
    },
}

impl Target {
    /// The registry generation that it belongs to.
    pub fn generation(self) -> u64 {
        match self {
            Self::Samples { generation } | Self::Table { generation, .. } => generation,
        }
    }
}
