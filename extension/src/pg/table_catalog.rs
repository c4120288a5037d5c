//! Look-ups in system catalogues, and the one update that this library makes there.

use std::ffi::CString;

use lanes_columnar::kind::LaneKind;
use pgrx::pg_sys;

use super::datum;
use super::definitions::Definitions;
use super::descriptor::base_type;
use super::ports;
use super::table::OpenTable;
use super::tree::Oids;
use super::tree::view::Field;

const RELOID: i32 = pg_sys::SysCacheIdentifier::RELOID as i32;

/// The definitions in `pg_class.reloptions` of a relation.
pub fn stored_definitions(relation: pg_sys::Oid) -> Definitions<'static> {
    // SAFETY: the tuple is live until it is released; the list is made in the current context and copied there.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(RELOID, relation.into());
        if tuple.is_null() {
            return Definitions::empty();
        }
        let mut is_null = true;
        let attribute = pg_sys::Anum_pg_class_reloptions as i16;
        let options = pg_sys::SysCacheGetAttr(RELOID, tuple, attribute, &mut is_null);
        let list = match is_null {
            true => Definitions::empty(),
            false => Definitions::of(pg_sys::untransformRelOptions(options)).copy(),
        };
        pg_sys::ReleaseSysCache(tuple);
        list
    }
}

/// The ends of the histogram of a column of dates or times, as integers, if ANALYZE has made one.
pub fn histogram_ends(relation: pg_sys::Oid, attribute: i16) -> Option<(f64, f64)> {
    let cache = pg_sys::SysCacheIdentifier::STATRELATTINH as i32;
    let kind = pg_sys::STATISTIC_KIND_HISTOGRAM as i32;
    let wanted = pg_sys::ATTSTATSSLOT_VALUES as i32;
    let mut slot = pg_sys::AttStatsSlot::default();
    // SAFETY: the tuple is live until it is released; the slot is a copy that is freed after its ends are read, and has
    // as many values as it says.
    unsafe {
        let tuple = pg_sys::SearchSysCache3(cache, relation.into(), attribute.into(), false.into());
        if tuple.is_null() {
            return None;
        }
        let any = pg_sys::InvalidOid;
        let is_found = pg_sys::get_attstatsslot(&raw mut slot, tuple, kind, any, wanted);
        pg_sys::ReleaseSysCache(tuple);
        if !is_found {
            return None;
        }
        let end = |index: i32| {
            let datum = *slot.values.add(index as usize);
            match slot.valuetype {
                pg_sys::DATEOID => Some(f64::from(datum.value() as i32)),
                pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID => Some(datum.value() as i64 as f64),
                _ => None,
            }
        };
        let ends = match slot.nvalues {
            0 => None,
            count => end(0).zip(end(count - 1)),
        };
        pg_sys::free_attstatsslot(&raw mut slot);
        ends
    }
}

/// Sets (or, with `reset`, removes) definitions in `pg_class.reloptions`, and makes the change visible. The caller owns
/// the table and has locked it.
pub fn store_definitions(relation: pg_sys::Oid, definitions: Definitions<'_>, reset: bool) {
    // SAFETY: the tuple is a copy of our own; the arrays have an element for each attribute of the catalogue.
    unsafe {
        let mode = pg_sys::RowExclusiveLock as i32;
        let catalogue = pg_sys::table_open(pg_sys::RelationRelationId, mode);
        let zero = pg_sys::Datum::null();
        let tuple = pg_sys::SearchSysCacheCopy(RELOID, relation.into(), zero, zero, zero);
        if tuple.is_null() {
            pgrx::error!("could not find relation {}", relation.to_u32());
        }
        let mut is_null = true;
        let attribute = pg_sys::Anum_pg_class_reloptions as usize;
        let old = pg_sys::SysCacheGetAttr(RELOID, tuple, attribute as i16, &mut is_null);
        let new = pg_sys::transformRelOptions(
            if is_null { zero } else { old },
            definitions.as_ptr(),
            std::ptr::null(),
            std::ptr::null_mut(),
            false,
            reset,
        );
        let natts = pg_sys::Natts_pg_class as usize;
        let (mut values, mut nulls, mut replaced) =
            (vec![zero; natts], vec![false; natts], vec![false; natts]);
        values[attribute - 1] = new;
        nulls[attribute - 1] = new.is_null();
        replaced[attribute - 1] = true;
        let changed = pg_sys::heap_modify_tuple(
            tuple,
            (*catalogue).rd_att,
            values.as_mut_ptr(),
            nulls.as_mut_ptr(),
            replaced.as_mut_ptr(),
        );
        pg_sys::CatalogTupleUpdate(catalogue, &raw mut (*changed).t_self, changed);
        pg_sys::table_close(catalogue, mode);
    }
    make_changes_visible();
}

/// Makes what this command has changed visible to itself.
pub fn make_changes_visible() {
    // SAFETY: runs inside a transaction.
    unsafe { pg_sys::CommandCounterIncrement() }
}

/// Whether the current user owns a table.
pub fn owns(table: pg_sys::Oid) -> bool {
    // SAFETY: runs inside a transaction.
    unsafe { ports::owns_relation(table) }
}

/// Whether a table belongs to an extension.
pub fn is_of_an_extension(table: pg_sys::Oid) -> bool {
    // SAFETY: a look-up in the system catalogs.
    let extension = unsafe { pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, table) };
    extension != pg_sys::InvalidOid
}

unsafe extern "C-unwind" {
    fn find_all_inheritors(
        relation: pg_sys::Oid,
        lock: pg_sys::LOCKMODE,
        parents: *mut *mut pg_sys::List,
    ) -> *mut pg_sys::List;
}

/// A table and all tables that inherit it, directly or indirectly.
pub fn with_inheritors(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let (lock, none) = (pg_sys::NoLock as pg_sys::LOCKMODE, std::ptr::null_mut());
    // SAFETY: look-ups, which give a list of OIDs; the boundary turns an ERROR into a panic.
    let tables: Oids<'_> = unsafe {
        Field::of(pg_sys::ffi::pg_guard_ffi_boundary(|| {
            find_all_inheritors(table, lock, none)
        }))
    };
    tables.iter().collect()
}

/// The index of a table's column of this name, counted from 0.
pub fn column_index(table: pg_sys::Oid, name: &str) -> Option<usize> {
    let name = CString::new(name).ok()?;
    // SAFETY: a syscache look-up of a NUL-terminated name.
    let number = unsafe { pg_sys::get_attnum(table, name.as_ptr()) };
    usize::try_from(number).ok()?.checked_sub(1)
}

/// Whether the catalogue's row of a relation was written by the current transaction.
pub fn is_changed_by_this_transaction(relation: pg_sys::Oid) -> bool {
    // SAFETY: runs inside a transaction.
    unsafe { ports::changed_by_this_transaction(relation) }
}

/// Raises an ERROR unless the current user owns a table, which need not be open.
pub fn check_owner(table: pg_sys::Oid) {
    // SAFETY: catalogue look-ups; the name is a C string or null, as the function takes it.
    unsafe {
        if !ports::owns_relation(table) {
            pg_sys::aclcheck_error(
                pg_sys::AclResult::ACLCHECK_NOT_OWNER,
                pg_sys::ObjectType::OBJECT_TABLE,
                pg_sys::get_rel_name(table),
            );
        }
    }
}

/// Raises an ERROR unless the current user may do something with a table, or with each of some columns of it, which are
/// counted from 0.
pub fn check_privilege(table: OpenTable<'_>, privilege: u32, columns: &[usize]) {
    let mode = privilege as pg_sys::AclMode;
    let is_granted = |result| result == pg_sys::AclResult::ACLCHECK_OK;
    // SAFETY: catalogue look-ups; the name of an open table is NUL-terminated.
    unsafe {
        let user = pg_sys::GetUserId();
        let granted = pg_sys::pg_class_aclcheck(table.oid(), user, mode);
        let of_column = |&column: &usize| {
            let number = column as i16 + 1;
            is_granted(pg_sys::pg_attribute_aclcheck(
                table.oid(),
                number,
                user,
                mode,
            ))
        };
        if is_granted(granted) || (!columns.is_empty() && columns.iter().all(of_column)) {
            return;
        }
        let kind = pg_sys::get_relkind_objtype(table.relkind() as std::ffi::c_char);
        let name = CString::new(table.name()).unwrap_or_default();
        pg_sys::aclcheck_error(pg_sys::AclResult::ACLCHECK_NO_PRIV, kind, name.as_ptr());
    }
}

/// Whether row-level security hides rows of a table from the current user. Where row security is
/// switched off for one whom it applies to, the answer is an ERROR unless `is_lenient`.
pub fn applies_row_security(table: pg_sys::Oid, is_lenient: bool) -> bool {
    // SAFETY: catalogue look-ups.
    let applied = unsafe { pg_sys::check_enable_rls(table, pg_sys::InvalidOid, is_lenient) };
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
    // SAFETY: the table is open; the value is copied before the executor state that owns it is freed.
    unsafe {
        let expression = pg_sys::build_column_default(table.as_ptr(), index as i32 + 1);
        if expression.is_null() {
            // A domain may refuse the NULL.
            return match base_type(attribute.atttypid) == attribute.atttypid {
                true => Ok(None),
                false => Err("a column left out is of a domain"),
            };
        }
        if pg_sys::contain_volatile_functions(expression) {
            return Err("a default differs from row to row");
        }
        let estate = pg_sys::CreateExecutorState();
        let context = pg_sys::MakePerTupleExprContext(estate);
        let state = pg_sys::ExecPrepareExpr(expression.cast(), estate);
        let mut is_null = false;
        let value = match (*state).evalfunc {
            Some(evaluate) => {
                let value =
                    pg_sys::ffi::pg_guard_ffi_boundary(|| evaluate(state, context, &mut is_null));
                (!is_null).then(|| datum::to_bytes(value, attribute, kind))
            }
            None => None,
        };
        pg_sys::FreeExecutorState(estate);
        Ok(value)
    }
}

/// Calls `visit` with each row of a catalogue, as a value of the type that its rows have.
///
/// # Safety
/// `T` is the row type of the catalogue; runs inside a transaction.
unsafe fn scan_catalogue<T>(catalogue: pg_sys::Oid, mut visit: impl FnMut(&T)) {
    // SAFETY: the caller names the row type; a row lives until the next is fetched.
    unsafe {
        let lock = pg_sys::AccessShareLock as i32;
        let relation = pg_sys::table_open(catalogue, lock);
        let scan = pg_sys::table_beginscan_catalog(relation, 0, std::ptr::null_mut());
        loop {
            let tuple = pg_sys::heap_getnext(scan, pg_sys::ScanDirection::ForwardScanDirection);
            if tuple.is_null() {
                break;
            }
            visit(&*pg_sys::GETSTRUCT(tuple).cast::<T>());
        }
        ports::table_endscan(scan);
        pg_sys::table_close(relation, lock);
    }
}

/// The databases that accept connections, templates excluded.
pub fn databases() -> Vec<pg_sys::Oid> {
    let mut found = Vec::new();
    let catalogue = pg_sys::DatabaseRelationId;
    // SAFETY: the rows of pg_database are of this type.
    unsafe {
        scan_catalogue(catalogue, |database: &pg_sys::FormData_pg_database| {
            if database.datallowconn && !database.datistemplate {
                found.push(database.oid);
            }
        });
    }
    found
}

/// The lanes tables of this database that have files and are not temporary. There are none without the extension.
pub fn lanes_tables() -> Vec<pg_sys::Oid> {
    let mut found = Vec::new();
    // SAFETY: a syscache look-up of a NUL-terminated name.
    let method = unsafe { pg_sys::get_am_oid(c"lanes".as_ptr(), true) };
    if method == pg_sys::InvalidOid {
        return found;
    }
    let is_lanes = |class: &pg_sys::FormData_pg_class| {
        class.relam == method
            && class.relpersistence != pg_sys::RELPERSISTENCE_TEMP as std::ffi::c_char
            && matches!(class.relkind as u8, b'r' | b'm')
    };
    // SAFETY: the rows of pg_class are of this type.
    unsafe {
        scan_catalogue(pg_sys::RelationRelationId, |class| {
            if is_lanes(class) {
                found.push(class.oid);
            }
        });
    }
    found
}

/// Registers a callback that PostgreSQL calls when something about a relation changes, or, with an
/// invalid OID, about any.
pub fn on_relation_change(callback: unsafe extern "C-unwind" fn(pg_sys::Datum, pg_sys::Oid)) {
    // SAFETY: the callback is a function, which stays.
    unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(callback), pg_sys::Datum::null()) }
}
