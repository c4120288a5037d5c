//! Tables that this backend has open, kept from row to row.
//!
//! A statement that changes or checks rows one by one opens its table for each of them. It nearly always finds the
//! table as it was, but for what the statement itself has added.
//!
//! A kept table is valid as long as its metapage names the same generation. Then only the ends of its chains
//! are looked at. It is kept until the outermost execution or the transaction ends, because it pins the table in the
//! arena.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use lanes_columnar::arena::Relation;
use pgrx::prelude::*;

use super::entry_numbers;
use super::reader::Content;
use super::runs::Runs;
use super::shape::{TableShape, arena_key};
use crate::pg::descriptor::Descriptor;
use crate::pg::ports::Locator;
use crate::pg::shmem::{self, ArenaLocks};
use crate::pg::table::OpenTable;
use crate::pg::{index, ports, table_catalog, transaction};
use crate::storage::metapage::{self, Meta};
use crate::storage::part::Parts;
use crate::storage::tombstone::Tombstones;

/// Tables that are kept at a time; the one that was kept first goes first.
const KEPT_MAX: usize = 4;

/// A table as it was found.
struct Kept {
    state: State,
    shape: Rc<TableShape>,
    /// `None`: not read yet, or nothing was ever written.
    content: Option<Content>,
    /// `None`: not asked for yet.
    indexes: Option<Indexes>,
    /// `None`: not asked for yet.
    end: Option<End>,
}

/// The identity of a kept table. The kept table is valid as long as this stays the same.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    changes: u64,
    file: Locator,
    /// The address of the table's descriptor. Its content is the same until a change of the table is heard of.
    descriptor: usize,
}

/// Facts about a table's indexes that writers of rows need.
#[derive(Clone)]
pub struct Indexes {
    pub any: bool,
    /// Places of the columns, counted from 0, that keys of unique indexes are made of.
    pub keys: Rc<[usize]>,
}

/// Where runs are appended to a table.
#[derive(Clone)]
pub struct End {
    /// The metapage of some moment since the table is kept. By now the directory's last page may be a later one, and
    /// the page that it was may belong to another chain.
    pub meta: Meta,
    /// The arena's table, where there is one.
    pub cached: Option<Rc<Relation<ArenaLocks>>>,
}

thread_local! {
    static KEPT: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
    /// How often the backend was told that a table has changed; `None`: it does not listen yet.
    static CHANGES: Cell<Option<u64>> = const { Cell::new(None) };
}

/// How much of a table is to be known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All runs and tombstones that it has now.
    All,
    /// The run of a row and its tombstones, by the number that it has or had when it was inserted.
    Row(u64),
    /// The run of a row. Newer tombstones may be missing until the caller has read them.
    Run(u64),
}

/// The shape of a table's rows.
pub fn shape(table: OpenTable<'_>) -> Rc<TableShape> {
    let known = find(State::of(table), |kept| Some(kept.shape.clone()));
    known.unwrap_or_else(|| keep(table))
}

/// Opens a table: its shape, and what it holds, if anything was ever written to it.
pub fn open(
    table: OpenTable<'_>,
    descriptor: Descriptor<'_>,
    extent: Extent,
) -> (Rc<TableShape>, Option<Content>) {
    if descriptor != table.descriptor() {
        // Nobody tells when it changes.
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
        true => index::key_columns(table),
        false => Vec::new(),
    };
    let indexes = Indexes {
        any,
        keys: keys.into(),
    };
    change(state, |kept| kept.indexes = Some(indexes.clone()));
    indexes
}

/// Whether the current transaction has deleted or updated the row with an entry number, as far as this is known without
/// looking at the table. The row keeps its number as long as that transaction is under way
/// ([`super::row_numbers`]), so what was kept when it was changed still names it.
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

/// Where runs are appended to a table. It gets a metapage if it has none.
pub fn end(table: OpenTable<'_>) -> End {
    let known = find(State::of(table), |kept| {
        let of_content = || kept.content.as_ref().map(Content::end);
        kept.end.clone().or_else(of_content)
    });
    known.unwrap_or_else(|| renew_end(table))
}

/// Where runs are appended to a table by now.
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

/// Notes where runs are appended to a table; `None`: it is to be found out anew.
pub fn note_end(table: OpenTable<'_>, end: Option<End>) {
    change(State::of(table), |kept| {
        if end.is_none() {
            kept.content = None;
        }
        kept.end = end;
    });
}

/// Forgets all tables: no execution is under way, a transaction has ended, or files were truncated. Aborts may call
/// it at any time, so it neither raises errors nor allocates.
pub fn forget() {
    metapage::forget_written();
    let _ = KEPT.try_with(|kept| kept.try_borrow_mut().map(|mut kept| kept.clear()));
}

/// Looks something up in what is kept of a table.
fn find<T>(state: State, what: impl Fn(&Kept) -> Option<T>) -> Option<T> {
    KEPT.with_borrow(|kept| kept.iter().find(|kept| kept.state == state).and_then(what))
}

/// Changes what is kept of a table, if it is kept.
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

/// Reads a table from its pages and caches.
fn read(table: OpenTable<'_>, shape: &TableShape) -> Option<Content> {
    loop {
        let meta = Meta::load(table)?;
        // Tombstones first: one that is read names a row whose run is then in the directory.
        let tombstones = Tombstones::of(table, &meta);
        let runs = Runs::of(table, &meta, shape.fingerprint);
        let parts = Parts::of(table, &meta);
        // A VACUUM in between may have voided tombstones whose dead runs these `runs` do not know to be dead.
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

/// Adds what a table has gained since it was read; false: it has to be read anew.
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
    // In the order of `read`, and for its reasons.
    let any = content.tombstones.borrow_mut().read_on(table, &meta, None);
    (knows_run || content.runs.read_on(table, &meta))
        && (!any || Meta::load(table).is_some_and(|now| content.is_as_of(&now)))
}

impl Content {
    /// Whether it is of the generation of a table that its metapage names.
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

/// How often the backend was told that a table has changed.
fn changes() -> u64 {
    CHANGES.get().unwrap_or_else(|| {
        CHANGES.set(Some(0));
        table_catalog::on_relation_change(changed);
        0
    })
}

/// Something about a table has changed.
#[pg_guard]
extern "C-unwind" fn changed(_argument: pg_sys::Datum, _table: pg_sys::Oid) {
    CHANGES.set(CHANGES.get().map(|changes| changes.wrapping_add(1)));
}
