//! The column that holds the time of a row, from which the row's age follows.

use pgrx::pg_sys;

use crate::pg::descriptor::Attribute;
use crate::pg::table::OpenTable;

/// The index of a table's time column: its first column of a timestamp type, or the first such
/// column of `order_by` if it names one.
pub fn of(table: OpenTable<'_>) -> Option<usize> {
    let descriptor = table.descriptor();
    let is_time = |attribute: &Attribute| {
        let type_of = attribute.atttypid;
        !attribute.attisdropped
            && (type_of == pg_sys::TIMESTAMPTZOID || type_of == pg_sys::TIMESTAMPOID)
    };
    let keys = super::of(table.oid()).keys(table.oid()).unwrap_or_default();
    keys.into_iter()
        .chain(0..descriptor.len())
        .find(|&index| is_time(descriptor.attribute(index)))
}
