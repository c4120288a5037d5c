//! Storage parameters of lanes tables: `WITH (order_by = 'series, ts')`.
//!
//! Core offers no way to add parameters for tables: it rejects names that it does not know when it checks them, and
//! ignores them when it reads `pg_class.reloptions` back. So they are kept there like any other (pg_dump writes them,
//! rewrites copy them), but core never gets to check them: [`crate::hooks::utility`] takes ours out of a statement
//! before core sees it, and this module stores them afterwards. [`settings`] knows what they mean.

use std::ffi::{CStr, CString};

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::error;
use crate::pg::{ports, tree};

mod settings;

pub use settings::Settings;

/// Whether a `WITH` element is ours.
///
/// # Safety
/// `element` is a live `DefElem`.
pub unsafe fn is_ours(element: *mut pg_sys::DefElem) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let name = CStr::from_ptr((*element).defname);
        (*element).defnamespace.is_null() && settings::NAMES.contains(&name)
    }
}

/// Splits our elements off a list of `WITH` elements: (ours, the others).
///
/// # Safety
/// `list` is a live list of `DefElem`s.
pub unsafe fn split(list: *mut pg_sys::List) -> (*mut pg_sys::List, *mut pg_sys::List) {
    let (mut ours, mut others) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the caller's promise.
    unsafe {
        for i in 0..ports::list_length(list) {
            let element: *mut pg_sys::DefElem = ports::list_nth(list, i);
            let target = if is_ours(element) {
                &mut ours
            } else {
                &mut others
            };
            *target = pg_sys::lappend(*target, element.cast());
        }
    }
    (ours, others)
}

/// Our parameters as they are stored for a table.
///
/// # Safety
/// Runs inside a transaction.
pub unsafe fn stored(relation: pg_sys::Oid) -> *mut pg_sys::List {
    // SAFETY: a syscache look-up; the list is allocated in the current context.
    unsafe {
        let tuple =
            pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as i32, relation.into());
        if tuple.is_null() {
            return std::ptr::null_mut();
        }
        let mut is_null = true;
        let options = pg_sys::SysCacheGetAttr(
            pg_sys::SysCacheIdentifier::RELOID as i32,
            tuple,
            pg_sys::Anum_pg_class_reloptions as i16,
            &mut is_null,
        );
        let list = if is_null {
            std::ptr::null_mut()
        } else {
            pg_sys::untransformRelOptions(options)
        };
        let (ours, _) = split(list);
        let ours = pg_sys::copyObjectImpl(ours.cast()).cast();
        pg_sys::ReleaseSysCache(tuple);
        ours
    }
}

/// Sets (or, with `reset`, removes) parameters in `pg_class.reloptions`, and makes that visible.
///
/// # Safety
/// Runs inside a transaction; the caller owns the table and has locked it.
pub unsafe fn store(relation: pg_sys::Oid, parameters: *mut pg_sys::List, reset: bool) {
    // SAFETY: the usual dance of a catalogue update.
    unsafe {
        if ports::list_length(parameters) == 0 {
            return;
        }
        let parameters = if reset {
            names_only(parameters)
        } else {
            parameters
        };
        let catalogue =
            pg_sys::table_open(pg_sys::RelationRelationId, pg_sys::RowExclusiveLock as i32);
        let cache = pg_sys::SysCacheIdentifier::RELOID as i32;
        let zero = pg_sys::Datum::null();
        let tuple = pg_sys::SearchSysCacheCopy(cache, relation.into(), zero, zero, zero);
        if tuple.is_null() {
            pgrx::error!("table {} is gone", relation.to_u32());
        }
        let mut is_null = true;
        let attribute = pg_sys::Anum_pg_class_reloptions as usize;
        let old = pg_sys::SysCacheGetAttr(cache, tuple, attribute as i16, &mut is_null);
        let new = pg_sys::transformRelOptions(
            if is_null { zero } else { old },
            parameters,
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
        pg_sys::table_close(catalogue, pg_sys::RowExclusiveLock as i32);
        pg_sys::CommandCounterIncrement();
    }
}

/// The parameters without their values, as RESET takes them.
unsafe fn names_only(parameters: *mut pg_sys::List) -> *mut pg_sys::List {
    let mut names = std::ptr::null_mut();
    // SAFETY: a live list of DefElems.
    unsafe {
        for i in 0..ports::list_length(parameters) {
            let element: *mut pg_sys::DefElem = ports::list_nth(parameters, i);
            let name = pg_sys::makeDefElem((*element).defname, std::ptr::null_mut(), -1);
            names = pg_sys::lappend(names, name.cast());
        }
    }
    names
}

/// Checks what our parameters come to, against one another and the table's columns: those that are stored, with these
/// set and those reset.
///
/// # Safety
/// `relation` is an existing table that this transaction has locked; the lists are live ones of `DefElem`s of ours.
pub unsafe fn check(
    relation: pg_sys::Oid,
    stored: *mut pg_sys::List,
    set: *mut pg_sys::List,
    reset: *mut pg_sys::List,
) {
    // SAFETY: the caller's promise; of two values of a parameter the later counts.
    unsafe {
        // Wrong values are told even of parameters that are reset.
        Settings::read(set);
        let mut left = std::ptr::null_mut();
        for list in [stored, set] {
            for i in 0..ports::list_length(list) {
                let element: *mut pg_sys::DefElem = ports::list_nth(list, i);
                if !names(reset, CStr::from_ptr((*element).defname)) {
                    left = pg_sys::lappend(left, element.cast());
                }
            }
        }
        Settings::read(left).check(relation);
    }
}

/// Whether a list of `WITH` elements has one of this name.
unsafe fn names(list: *mut pg_sys::List, name: &CStr) -> bool {
    // SAFETY: `check` and `warn_of_useless` were given live lists.
    unsafe {
        (0..ports::list_length(list)).any(|i| {
            let element: *mut pg_sys::DefElem = ports::list_nth(list, i);
            (*element).defnamespace.is_null() && CStr::from_ptr((*element).defname) == name
        })
    }
}

/// Warns of parameters of other tables that lanes tables take and make nothing of.
///
/// # Safety
/// `others` is a live list of `DefElem`s.
pub unsafe fn warn_of_useless(others: *mut pg_sys::List) {
    // SAFETY: the caller's promise.
    if unsafe { names(others, c"fillfactor") } {
        pgrx::warning!("fillfactor means nothing to a lanes table, whose pages are always filled");
    }
}

/// Raises an ERROR if a statement about a table that is none of ours has parameters of ours, which core does not know.
///
/// # Safety
/// `parameters` is a live list of `DefElem`s.
pub unsafe fn refuse_elsewhere(parameters: *mut pg_sys::List) {
    // SAFETY: the caller's promise.
    unsafe {
        let (ours, _) = split(parameters);
        if ports::list_length(ours) == 0 {
            return;
        }
        let element: *mut pg_sys::DefElem = ports::list_nth(ours, 0);
        let name = CStr::from_ptr((*element).defname).to_string_lossy();
        error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("unrecognized parameter \"{name}\""),
            format!(
                "Lanes tables have it: CREATE TABLE … USING lanes WITH ({name} = …), or ALTER TABLE … SET ACCESS METHOD lanes first."
            ),
        );
    }
}

/// The parameters of a table. Runs inside a transaction.
pub fn of(relation: pg_sys::Oid) -> Settings {
    // SAFETY: the list is live.
    unsafe { Settings::read(stored(relation)) }
}

/// Follows a column that has got another name.
///
/// # Safety
/// Runs inside a transaction, after a command of the table's owner renamed the column.
pub unsafe fn rename_column(relation: pg_sys::Oid, from: &CStr, to: &CStr) {
    // SAFETY: the caller's promise; makes nodes.
    unsafe {
        let (from, to) = (from.to_string_lossy(), to.to_string_lossy());
        let settings = of(relation);
        let Some(order_by) = settings.order_by_renamed(&from, &to) else {
            return;
        };
        let Ok(order_by) = CString::new(order_by) else {
            return;
        };
        let value = pg_sys::makeString(pg_sys::pstrdup(order_by.as_ptr()));
        let name = pg_sys::pstrdup(settings::ORDER_BY.as_ptr());
        let element = pg_sys::makeDefElem(name, value.cast(), -1);
        store(relation, tree::list(&[element]), false);
    }
}

/// Drops what is stored of ours for a table that it no longer fits: it names a column that is gone, or the table is
/// no lanes table any more. Core would stumble over it later, and so would the restore of a dump.
///
/// # Safety
/// Runs inside a transaction, after a command of the table's owner changed the table.
pub unsafe fn drop_unfit(relation: pg_sys::Oid, is_lanes: unsafe fn(pg_sys::Oid) -> bool) {
    // SAFETY: catalogue look-ups; an unknown oid has nothing stored.
    unsafe {
        pg_sys::CommandCounterIncrement();
        let ours = stored(relation);
        if ports::list_length(ours) == 0 {
            return;
        }
        if !is_lanes(relation) {
            store(relation, ours, true);
            pgrx::notice!("the table is no lanes table any more: its lanes parameters are dropped");
        } else if Settings::read(ours).keys(relation).is_none() {
            let mut unfit = std::ptr::null_mut();
            for i in 0..ports::list_length(ours) {
                let element: *mut pg_sys::DefElem = ports::list_nth(ours, i);
                let name = CStr::from_ptr((*element).defname);
                if name == settings::ORDER_BY || name == settings::DEDUP {
                    unfit = pg_sys::lappend(unfit, element.cast());
                }
            }
            store(relation, unfit, true);
            pgrx::notice!(
                "order_by of the table no longer fits it and is dropped; set it again with ALTER TABLE … SET (order_by = '…')"
            );
        }
    }
}
