//! The bytes of the arena that a table's rows may take. Whoever opens the table passes its
//! parameter `arena_budget` on to the arena.
//!
//! Tables are opened for every statement. So a backend remembers the parameter until it is notified
//! that the table has changed. A backend that is not notified yet, or that is about to change the
//! parameter itself, may pass on another value for a while.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use lanes_columnar::arena::Relation;
use pgrx::prelude::*;

use crate::pg::hooks::on_relation_change;
use crate::pg::shmem::ArenaLocks;
use crate::pg::table::OpenTable;
use crate::table_options;

/// The number of tables whose parameter a backend remembers. When there are more, it forgets all of
/// them.
const REMEMBERED_MAX: usize = 4096;

thread_local! {
    static KNOWN: RefCell<HashMap<pg_sys::Oid, u64>> = RefCell::new(HashMap::new());
    /// How many notifications about changed tables this backend has received; `None`: it does not
    /// receive them yet.
    static CHANGES: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Passes a table's budget on to the arena.
pub fn tell(table: OpenTable<'_>, cached: &Relation<ArenaLocks>) {
    let table = table.oid();
    let known = KNOWN.with_borrow(|known| known.get(&table).copied());
    cached.set_budget(known.unwrap_or_else(|| read(table)));
}

fn read(table: pg_sys::Oid) -> u64 {
    if CHANGES.get().is_none() {
        CHANGES.set(Some(0));
        on_relation_change(changed);
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

/// Called when something about a table has changed, or about any table if `table` names none.
#[pg_guard]
extern "C-unwind" fn changed(_argument: pg_sys::Datum, table: pg_sys::Oid) {
    CHANGES.set(CHANGES.get().map(|changes| changes.wrapping_add(1)));
    KNOWN.with_borrow_mut(|known| {
        if table == pg_sys::InvalidOid {
            known.clear();
        } else {
            known.remove(&table);
        }
    });
}
