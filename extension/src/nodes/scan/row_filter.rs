//! The conditions that PostgreSQL evaluates for single rows of a vector.

use pgrx::pg_sys;

use crate::pg::exec::expression::{RowContext, RowQual};
use crate::pg::exec::node::ExecNode;
use crate::pg::exec::slot::Slot;
use crate::vectors::vector_source::VectorSource;

/// The conditions of a node that scans a table, and the slot in which a row is formed for them.
pub struct RowFilter {
    qual: RowQual,
    attributes: Vec<usize>,
    slot: Slot,
    context: RowContext,
    table: pg_sys::Oid,
}

impl RowFilter {
    /// The conditions read these attributes. The slot is allocated in the current memory context.
    pub fn new(node: ExecNode<'_>, qual: RowQual, attributes: &[usize]) -> RowFilter {
        let table = node.scanned_table();
        RowFilter {
            qual,
            attributes: attributes.to_vec(),
            slot: table.new_slot(),
            context: node.context(),
            table: table.oid(),
        }
    }

    /// Frees the slot.
    pub fn free(self) {
        self.slot.free();
    }

    /// Whether a row of the source's current vector passes. The attributes are filled. An ERROR jumps.
    #[inline]
    pub fn passes(&self, source: &VectorSource, row: usize) -> bool {
        if self.qual.is_empty() {
            return true;
        }
        self.context.reset();
        let mut writer = self.slot.writer();
        let (outlet, place) = (source.outlet(), source.place(row));
        for &attribute in &self.attributes {
            writer.read_lane(outlet, place, attribute);
        }
        writer.set_table(self.table);
        self.context.set_scan_row(writer.store());
        self.qual.passes(self.context)
    }
}
