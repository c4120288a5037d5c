//! The table that a batch is appended to.

/// A table to append to. Requests with unequal targets never share a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// The table of samples.
    Samples {
        /// The registry generation that the batch's series ids belong to.
        generation: u64,
    },
    /// Any other table.
    Table {
        /// The registry generation of the database that described the table. In another database,
        /// the oid may be that of another table.
        generation: u64,
        /// The oid of the table.
        oid: u32,
        /// A hash of the names and types of the batch's columns.
        shape: u64,
        /// Whether every request has a digest. Otherwise none has, and a batch whose outcome is
        /// unknown is not sent again.
        is_once: bool,
    },
}

impl Target {
    /// The registry generation that the target belongs to.
    pub fn generation(self) -> u64 {
        match self {
            Self::Samples { generation } | Self::Table { generation, .. } => generation,
        }
    }
}
