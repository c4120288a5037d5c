//! The bytes of the arena that a table's rows may take: its parameter `arena_budget`, told to the arena by whoever opens the table.
//!
//! Tables are opened for every statement, so a backend remembers the parameter until it hears that something about the table has
//! changed. A backend that has not heard yet, or that is about to change it, may tell the arena otherwise for a while.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use lanes_columnar::arena::Relation;
use pgrx::prelude::*;

use crate::pg::shmem::ArenaLocks;
use crate::table_options;

/// Tables whose parameter a backend remembers; past that it starts over.
const REMEMBERED_MAX: usize = 4096;

thread_local! {
    static KNOWN: RefCell<HashMap<pg_sys::Oid, u64>> = RefCell::new(HashMap::new());
    /// How often the backend was told that a table has changed; `None`: it does not listen yet.
    static CHANGES: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Tells the arena what a table may take.
///
/// # Safety
/// `relation` is the open lanes table that is cached; runs inside a transaction.
pub unsafe fn tell(relation: pg_sys::Relation, cached: &Relation<ArenaLocks>) {
    // SAFETY: the caller's promise.
    let table = unsafe { (*relation).rd_id };
    let known = KNOWN.with_borrow(|known| known.get(&table).copied());
    // SAFETY: the caller's promise.
    cached.set_budget(known.unwrap_or_else(|| unsafe { read(table) }));
}

unsafe fn read(table: pg_sys::Oid) -> u64 {
    if CHANGES.get().is_none() {
        CHANGES.set(Some(0));
        // SAFETY: once a backend; the function stays.
        unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(changed), pg_sys::Datum::null()) };
    }
    let before = CHANGES.get();
    let bytes = table_options::of(table).arena_budget.unwrap_or_default();
    if CHANGES.get() == before {
        KNOWN.with_borrow_mut(|known| {
            if known.len() >= REMEMBERED_MAX {
                known.clear();
            }
            known.insert(table, bytes);
        });
    }
    bytes
}

/// Something about a table has changed, or, if it is none, about any.
#[pg_guard]
unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, table: pg_sys::Oid) {
    CHANGES.set(CHANGES.get().map(|changes| changes.wrapping_add(1)));
    KNOWN.with_borrow_mut(|known| {
        if table == pg_sys::InvalidOid {
            known.clear();
        } else {
            known.remove(&table);
        }
    });
}
