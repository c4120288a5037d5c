//! Tables that this backend has open, kept from row to row.
//!
//! A statement that changes or checks rows one by one opens its table for each of them. It nearly
//! always finds the table unchanged, except for what the statement itself has added.
//!
//! A kept table is valid while its metapage has the same generation. Only the ends of its chains
//! are then looked at. Its content is kept until the outermost execution or the transaction ends,
//! and not longer, because it pins the table in the arena. Its shape and its indexes are kept until
//! the transaction ends, for the next statement of one row.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use lanes_columnar::arena::Relation;
use pgrx::prelude::*;

use super::entry_numbers;
use super::reader::Content;
use super::runs::Runs;
use super::shape::{TableShape, arena_key};
use crate::pg::descriptor::Descriptor;
use crate::pg::hooks::on_relation_change;
use crate::pg::ports::Locator;
use crate::pg::shmem::{self, ArenaLocks};
use crate::pg::table::OpenTable;
use crate::pg::{index_columns, ports, transaction};
use crate::storage::metapage::{self, Meta};
use crate::storage::part::Parts;
use crate::storage::tombstone::Tombstones;

/// The number of tables that are kept at a time. The one that was kept first is dropped first.
const KEPT_MAX: usize = 4;

/// A table as it was read.
struct Kept {
    state: State,
    shape: Rc<TableShape>,
    /// `None`: not read yet, or nothing was ever written.
    content: Option<Content>,
    /// `None`: not read yet.
    indexes: Option<Indexes>,
    /// `None`: not read yet.
    end: Option<End>,
}

/// The identity of a kept table, which is valid while this stays equal.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    changes: u64,
    file: Locator,
    /// The address of the table's descriptor. Its content stays equal until a notification of a
    /// changed table arrives.
    descriptor: usize,
}

/// Facts about a table's indexes that writers of rows need.
#[derive(Clone)]
pub struct Indexes {
    pub any: bool,
    /// The columns, counted from 0, that occur in keys of unique indexes.
    pub keys: Rc<[usize]>,
}

/// Where runs are appended to a table.
#[derive(Clone)]
pub struct End {
    /// The metapage, as it was at some moment since the table is kept. The directory may have a
    /// later last page by now, and the former last page may belong to another chain.
    pub meta: Meta,
    /// The arena's table, where there is one.
    pub cached: Option<Rc<Relation<ArenaLocks>>>,
}

thread_local! {
    static KEPT: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
    /// How many notifications about changed tables this backend has received; `None`: it does not
    /// receive them yet.
    static CHANGES: Cell<Option<u64>> = const { Cell::new(None) };
}

/// How much of a table the caller needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All current runs and tombstones.
    All,
    /// The run and the tombstones of a row, by its present row number or by the number with which
    /// it was inserted.
    Row(u64),
    /// The run of a row. Newer tombstones may be missing until the caller reads them.
    Run(u64),
}

/// The shape of a table's rows.
pub fn shape(table: OpenTable<'_>) -> Rc<TableShape> {
    let known = find(State::of(table), |kept| Some(kept.shape.clone()));
    known.unwrap_or_else(|| keep(table))
}

/// Opens a table: returns its shape, and its content if anything was ever written to it.
pub fn open(
    table: OpenTable<'_>,
    descriptor: Descriptor<'_>,
    extent: Extent,
) -> (Rc<TableShape>, Option<Content>) {
    if descriptor != table.descriptor() {
        // No notification says when another descriptor changes.
        let shape = Rc::new(TableShape::of(descriptor));
        let content = read(table, &shape);
        return (shape, content);
    }
    let state = State::of(table);
    let known = find(state, |kept| {
        Some((kept.shape.clone(), kept.content.clone()))
    });
    let (shape, content) = known.unwrap_or_else(|| (keep(table), None));
    if let Some(mut content) = content {
        let runs = content.runs.len();
        if read_on(table, &mut content, extent) {
            if content.runs.len() > runs {
                change(state, |kept| kept.content = Some(content.clone()));
            }
            return (shape, Some(content));
        }
    }
    let content = read(table, &shape);
    change(state, |kept| {
        kept.content.clone_from(&content);
        kept.end = None;
    });
    (shape, content)
}

/// The indexes of a table.
pub fn indexes(table: OpenTable<'_>) -> Indexes {
    let state = State::of(table);
    if let Some(indexes) = find(state, |kept| kept.indexes.clone()) {
        return indexes;
    }
    shape(table);
    let any = table.has_indexes();
    let keys = match any {
        true => index_columns::key_columns(table),
        false => Vec::new(),
    };
    let indexes = Indexes {
        any,
        keys: keys.into(),
    };
    change(state, |kept| kept.indexes = Some(indexes.clone()));
    indexes
}

/// Whether the current transaction has deleted or updated the row with an entry number, as far as
/// this backend knows without reading the table. The row keeps its number while that transaction
/// runs ([`super::row_numbers`]), so the number that was kept when the row was changed still names
/// it.
pub fn has_own_deletion(table: OpenTable<'_>, number: u64) -> bool {
    let known = find(State::of(table), |kept| {
        let content = kept.content.as_ref()?;
        Some((content.parts.clone(), content.tombstones.clone()))
    });
    let Some((parts, tombstones)) = known.filter(|known| !known.1.borrow().is_empty()) else {
        return false;
    };
    let Some(row) = entry_numbers::row_of(table, &parts, number) else {
        return false;
    };
    let tombstones = tombstones.borrow();
    let mut of_row = tombstones.of_row(row).iter();
    of_row.any(|tombstone| tombstone.deletes() && transaction::is_current(tombstone.xmax))
}

/// Where runs are appended to a table. A table without a metapage gets one.
pub fn end(table: OpenTable<'_>) -> End {
    let known = find(State::of(table), |kept| {
        let of_content = || kept.content.as_ref().map(Content::end);
        kept.end.clone().or_else(of_content)
    });
    known.unwrap_or_else(|| renew_end(table))
}

/// Where runs are appended to a table now.
pub fn renew_end(table: OpenTable<'_>) -> End {
    let meta = Meta::load_or_create(table);
    let key = arena_key(table, &meta, shape(table).fingerprint);
    let arena = shmem::arena().filter(|_| !table.uses_local_buffers());
    let end = End {
        meta,
        cached: arena
            .and_then(|arena| arena.open(key, meta.generation))
            .map(Rc::new),
    };
    change(State::of(table), |kept| kept.end = Some(end.clone()));
    end
}

/// Notes where runs are appended to a table; `None`: it has to be found out anew.
pub fn note_end(table: OpenTable<'_>, end: Option<End>) {
    change(State::of(table), |kept| {
        if end.is_none() {
            kept.content = None;
        }
        kept.end = end;
    });
}

/// Forgets the contents of all tables, because no execution is in progress.
pub fn forget_contents() {
    KEPT.with_borrow_mut(|kept| {
        for kept in kept {
            kept.content = None;
            kept.end = None;
        }
    });
}

/// Forgets all tables: a transaction has ended, or files were truncated. Aborts may call this function at any time, so
/// it neither raises errors nor allocates.
pub fn forget() {
    metapage::forget_written();
    let _ = KEPT.try_with(|kept| kept.try_borrow_mut().map(|mut kept| kept.clear()));
}

/// Looks something up in a kept table.
fn find<T>(state: State, what: impl Fn(&Kept) -> Option<T>) -> Option<T> {
    KEPT.with_borrow(|kept| kept.iter().find(|kept| kept.state == state).and_then(what))
}

/// Changes a kept table, if the table is kept.
fn change(state: State, how: impl FnOnce(&mut Kept)) {
    KEPT.with_borrow_mut(|kept| {
        if let Some(it) = kept.iter_mut().find(|kept| kept.state == state) {
            how(it);
        }
    });
}

fn keep(table: OpenTable<'_>) -> Rc<TableShape> {
    let state = State::of(table);
    let shape = Rc::new(TableShape::of(table.descriptor()));
    let kept = Kept {
        state,
        shape: shape.clone(),
        content: None,
        indexes: None,
        end: None,
    };
    KEPT.with_borrow_mut(|all| {
        all.retain(|other| other.state.changes == state.changes);
        if all.len() >= KEPT_MAX {
            all.remove(0);
        }
        all.push(kept);
    });
    shape
}

/// Reads a table from its pages and from caches.
fn read(table: OpenTable<'_>, shape: &TableShape) -> Option<Content> {
    loop {
        let meta = Meta::load(table)?;
        // Tombstones are read first, so the row of each tombstone is in the directory when that is
        // read.
        let tombstones = Tombstones::of(table, &meta);
        let runs = Runs::of(table, &meta, shape.fingerprint);
        let parts = Parts::of(table, &meta);
        // A VACUUM in between may have voided tombstones because their runs are dead, while the
        // `runs` read here do not know that.
        if Meta::load(table).is_some_and(|now| now.generation == meta.generation) {
            return Some(Content {
                meta,
                runs,
                tombstones,
                parts,
                near: Rc::default(),
                near_rows: Rc::default(),
            });
        }
        ports::CHECK_FOR_INTERRUPTS();
    }
}

/// Adds what a table has gained since it was read; false: the table has to be read anew.
fn read_on(table: OpenTable<'_>, content: &mut Content, extent: Extent) -> bool {
    let meta = match Meta::load(table) {
        Some(meta) if content.is_as_of(&meta) => meta,
        _ => return false,
    };
    content.meta = meta;
    let is_known = |row| row < content.runs.end_row();
    let knows_run = match extent {
        Extent::All => false,
        Extent::Run(row) if is_known(row) => return true,
        Extent::Row(row) | Extent::Run(row) => is_known(row),
    };
    // In the order of `read`, for the reasons given there.
    let any = content.tombstones.borrow_mut().read_on(table, &meta, None);
    (knows_run || content.runs.read_on(table, &meta))
        && (!any || Meta::load(table).is_some_and(|now| content.is_as_of(&now)))
}

impl Content {
    /// Whether the content has the generation that the table's metapage names.
    fn is_as_of(&self, meta: &Meta) -> bool {
        self.meta.storage_id == meta.storage_id && self.meta.generation == meta.generation
    }

    fn end(&self) -> End {
        End {
            meta: self.meta,
            cached: self.runs.cached().cloned(),
        }
    }
}

impl State {
    fn of(table: OpenTable<'_>) -> State {
        State {
            changes: changes(),
            file: table.locator(),
            descriptor: table.descriptor().address(),
        }
    }
}

/// How many notifications about changed tables this backend has received.
fn changes() -> u64 {
    CHANGES.get().unwrap_or_else(|| {
        CHANGES.set(Some(0));
        on_relation_change(changed);
        0
    })
}

/// Called when something about a table has changed.
#[pg_guard]
extern "C-unwind" fn changed(_argument: pg_sys::Datum, _table: pg_sys::Oid) {
    CHANGES.set(CHANGES.get().map(|changes| changes.wrapping_add(1)));
}
