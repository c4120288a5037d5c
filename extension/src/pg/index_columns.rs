//! Which columns the indexes of a table have.

use pgrx::pg_sys;

use super::catalog_rows::cached;
use super::datum::{self, RowOutlet};
use super::functions::{planner, relation};
use super::slot::Slot;
use super::table::OpenTable;

/// Places of the columns, counted from 0, that keys of the table's unique indexes are made of: those that a foreign
/// key may refer to.
pub fn key_columns(table: OpenTable<'_>) -> Vec<usize> {
    columns_of(table, pg_sys::IndexAttrBitmapKind::INDEX_ATTR_BITMAP_KEY)
}

/// Places of the columns, counted from 0, of the index that is the table's replica identity.
pub fn identity_columns(table: OpenTable<'_>) -> Vec<usize> {
    let kind = pg_sys::IndexAttrBitmapKind::INDEX_ATTR_BITMAP_IDENTITY_KEY;
    columns_of(table, kind)
}

fn columns_of(table: OpenTable<'_>, kind: pg_sys::IndexAttrBitmapKind::Type) -> Vec<usize> {
    let set = relation::RelationGetIndexAttrBitmap(table, kind);
    // System columns come first; a whole-row reference is none of the columns.
    let columns = set.iter().filter_map(|member| {
        let attribute = member + pg_sys::FirstLowInvalidHeapAttributeNumber;
        usize::try_from(attribute - 1).ok()
    });
    let columns = columns.collect();
    planner::bms_free(set);
    columns
}

/// Whether a table has an index that summarises ranges of its blocks: BRIN.
pub fn has_block_ranges(table: OpenTable<'_>) -> bool {
    let cache = pg_sys::SysCacheIdentifier::RELOID;
    let column = pg_sys::Anum_pg_class_relam as i16;
    let indexes = relation::RelationGetIndexList(table);
    let found = indexes.iter().any(|index| {
        let method = cached(cache, [index.into()], |row| row.oid(column));
        method.flatten() == Some(pg_sys::BRIN_AM_OID)
    });
    relation::list_free(indexes);
    found
}

/// Whether a row of lanes has the bytes that a slot's row has in some columns, which are counted from 0.
pub fn have_equal_bytes(
    table: OpenTable<'_>,
    lanes: &RowOutlet,
    row: usize,
    slot: Slot<'_>,
    columns: &[usize],
) -> bool {
    let (values, nulls) = slot.read_all();
    columns.iter().all(|&column| {
        let (value, is_null) = lanes.value(row, column);
        if is_null || nulls[column] {
            return is_null == nulls[column];
        }
        let attribute = table.descriptor().attribute(column);
        datum::have_equal_bytes(value, values[column], attribute)
    })
}
