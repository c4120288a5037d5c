//! Refusals: the features that lanes tables do not have, with hints at what to do instead.

use crate::error::refuse;

/// BRIN indexes where ANALYZE reads the blocks that it counts. A lanes table with such an index
/// counts ranges of rows as blocks, and its file has fewer.
#[cfg(any(feature = "pg17", feature = "pg18"))]
pub fn brin() -> ! {
    refuse(
        "lanes tables do not support BRIN indexes on PostgreSQL 17 and later",
        "Scans of lanes tables skip rows by minimum and maximum without an index. Use btree to look up single rows.",
    )
}

/// CLUSTER by an index that is no btree.
pub fn clustering() -> ! {
    refuse(
        "lanes tables are clustered by btree indexes only",
        "Cluster by a btree index, or set the order in which rows are sealed: ALTER TABLE … SET (order_by = '…').",
    )
}

/// TOAST tables.
pub fn toast() -> ! {
    refuse(
        "lanes tables have no TOAST table",
        "Long values are stored in line.",
    )
}
