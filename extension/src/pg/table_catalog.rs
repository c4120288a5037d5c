//! Look-ups in system catalogues, and the one update that this library makes there.

use std::ffi::CString;

use lanes_columnar::kind::LaneKind;
use pgrx::pg_sys;
use pgrx::pg_sys::SysCacheIdentifier::RELOID;

use super::catalog_rows;
use super::catalog_rows::{CachedRow, cached};
use super::datum;
use super::definitions::Definitions;
use super::exec::expression::evaluated_once;
use super::functions::catalog;
use super::table::OpenTable;

pub use super::catalog_rows::{ObjectScope, add_object_scope, object_scopes, store_definitions};

/// The definitions in `pg_class.reloptions` of a relation.
pub fn stored_definitions(relation: pg_sys::Oid) -> Definitions<'static> {
    let options = cached(RELOID, [relation.into()], |row| {
        row.parameters(pg_sys::Anum_pg_class_reloptions as i16)
    });
    options.flatten().unwrap_or(Definitions::EMPTY)
}

/// The ends of the histogram of a column of dates or times, as integers, if ANALYZE has made one.
pub fn histogram_ends(relation: pg_sys::Oid, attribute: i16) -> Option<(f64, f64)> {
    let cache = pg_sys::SysCacheIdentifier::STATRELATTINH;
    let key = [relation.into(), attribute.into(), false.into()];
    cached(cache, key, CachedRow::histogram_ends)?
}

/// How many distinct values a column of so many rows has, if ANALYZE has found that out.
pub fn distinct_values(relation: pg_sys::Oid, attribute: i16, rows: f64) -> Option<f64> {
    let cache = pg_sys::SysCacheIdentifier::STATRELATTINH;
    let key = [relation.into(), attribute.into(), false.into()];
    // A negative number is a share of the rows.
    match cached(cache, key, CachedRow::distinct_values)?? {
        0.0 => None,
        share if share < 0.0 => Some(-share * rows),
        count => Some(count),
    }
}

/// Makes what this command has changed visible to itself.
pub fn make_changes_visible() {
    catalog::CommandCounterIncrement();
}

/// Whether the current user owns a table.
pub fn owns(table: pg_sys::Oid) -> bool {
    catalog::owns_relation(table)
}

/// Whether a table belongs to an extension.
pub fn is_of_an_extension(table: pg_sys::Oid) -> bool {
    let extension = catalog::getExtensionOfObject(pg_sys::RelationRelationId, table);
    extension != pg_sys::InvalidOid
}

/// A table and all tables that inherit it, directly or indirectly.
pub fn with_inheritors(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    catalog::with_inheritors(table).iter().collect()
}

/// The index of a table's column of this name, counted from 0.
pub fn column_index(table: pg_sys::Oid, name: &str) -> Option<usize> {
    let name = CString::new(name).ok()?;
    let number = catalog::get_attnum(table, &name);
    usize::try_from(number).ok()?.checked_sub(1)
}

/// Whether the catalogue's row of a relation was written by the current transaction.
pub fn is_changed_by_this_transaction(relation: pg_sys::Oid) -> bool {
    cached(RELOID, [relation.into()], CachedRow::is_of_this_transaction).unwrap_or(false)
}

/// Raises an ERROR unless the current user owns a table, which need not be open.
pub fn check_owner(table: pg_sys::Oid) {
    if !catalog::owns_relation(table) {
        let (not_owner, kind) = (
            pg_sys::AclResult::ACLCHECK_NOT_OWNER,
            pg_sys::ObjectType::OBJECT_TABLE,
        );
        catalog::aclcheck_error(not_owner, kind, catalog::get_rel_name(table));
    }
}

/// Raises an ERROR unless the current user may do something with a table, or with each of some columns of it, which are
/// counted from 0.
pub fn check_privilege(table: OpenTable<'_>, privilege: u32, columns: &[usize]) {
    let mode = privilege as pg_sys::AclMode;
    let is_granted = |result| result == pg_sys::AclResult::ACLCHECK_OK;
    let user = catalog::GetUserId();
    let of_column = |&column: &usize| {
        let number = column as i16 + 1;
        is_granted(catalog::pg_attribute_aclcheck(
            table.oid(),
            number,
            user,
            mode,
        ))
    };
    if is_granted(catalog::pg_class_aclcheck(table.oid(), user, mode))
        || (!columns.is_empty() && columns.iter().all(of_column))
    {
        return;
    }
    let kind = catalog::get_relkind_objtype(table.relkind() as std::ffi::c_char);
    let name = CString::new(table.name()).unwrap_or_default();
    catalog::aclcheck_error(pg_sys::AclResult::ACLCHECK_NO_PRIV, kind, Some(&name));
}

/// Whether row-level security hides rows of a table from the current user. Where row security is
/// switched off for one whom it applies to, the answer is an ERROR unless `is_lenient`.
pub fn applies_row_security(table: pg_sys::Oid, is_lenient: bool) -> bool {
    let applied = catalog::check_enable_rls(table, pg_sys::InvalidOid, is_lenient);
    applied == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
}

/// The default of a column, counted from 0, if one value goes for all rows: its bytes as a column
/// of `kind` repeats them, `None` for NULL.
///
/// # Errors
/// Why there is no such value.
pub fn constant_default(
    table: OpenTable<'_>,
    index: usize,
    kind: LaneKind,
) -> Result<Option<Vec<u8>>, &'static str> {
    let attribute = table.descriptor().attribute(index);
    let Some(expression) = catalog::build_column_default(table, index as i32 + 1) else {
        // A domain may refuse the NULL.
        return match catalog::getBaseType(attribute.atttypid) == attribute.atttypid {
            true => Ok(None),
            false => Err("a column left out is of a domain"),
        };
    };
    if expression.is_volatile() {
        return Err("a default differs from row to row");
    }
    let bytes = |value| datum::to_bytes(value, attribute, kind);
    Ok(evaluated_once(expression, |value| value.map(bytes)))
}

/// The databases that accept connections, templates excluded.
pub fn databases() -> Vec<pg_sys::Oid> {
    let mut found = Vec::new();
    catalog_rows::databases(|database| {
        if database.datallowconn && !database.datistemplate {
            found.push(database.oid);
        }
    });
    found
}

/// The lanes tables of this database that have files and are not temporary. There are none without the extension.
pub fn lanes_tables() -> Vec<pg_sys::Oid> {
    let mut found = Vec::new();
    let method = catalog::get_am_oid(c"lanes", true);
    if method == pg_sys::InvalidOid {
        return found;
    }
    let is_lanes = |class: &pg_sys::FormData_pg_class| {
        class.relam == method
            && class.relpersistence != pg_sys::RELPERSISTENCE_TEMP as std::ffi::c_char
            && matches!(class.relkind as u8, b'r' | b'm')
    };
    catalog_rows::relations(|class| {
        if is_lanes(class) {
            found.push(class.oid);
        }
    });
    found
}
