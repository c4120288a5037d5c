//! Open tables as values: [`OpenTable`] is borrowed and made once in each callback, [`OpenedTable`] closes its table.
//!
//! All that the rest of the library reads from a relation cache entry, or does to an open table, is a method of
//! [`OpenTable`]. Its constructor is the one promise; the methods are safe and free.

use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

use pgrx::pg_sys;

use super::descriptor::Descriptor;
use super::functions::{Null, catalog, relation};
use super::ports::{self, Locator, RelFileLocator};
use super::tree::View;
use super::{index, server};

/// The routine table of lanes tables, by which they are recognised. Registered while the library is loaded.
static ROUTINE: AtomicPtr<pg_sys::TableAmRoutine> = AtomicPtr::new(null_mut());

/// Makes `routine` the routine table by which lanes tables are recognised. Called from `_PG_init`.
pub fn register_routine(routine: *const pg_sys::TableAmRoutine) {
    ROUTINE.store(routine.cast_mut(), Ordering::Relaxed);
}

/// The columns by which subscribers of logical replication find a row.
pub enum ReplicaIdentity {
    Nothing,
    /// The columns of an index, counted from 0; none if there is no such index.
    Columns(Vec<usize>),
    /// All columns.
    Full,
}

/// A table that is open for `'a`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OpenTable<'a> {
    relation: NonNull<pg_sys::RelationData>,
    open: PhantomData<&'a pg_sys::RelationData>,
}

impl<'a> OpenTable<'a> {
    /// # Safety
    /// `relation` is an open relation and stays open for `'a`, in a backend that runs a transaction.
    #[inline]
    pub unsafe fn new(relation: pg_sys::Relation) -> OpenTable<'a> {
        OpenTable {
            // SAFETY: an open relation has a cache entry.
            relation: unsafe { NonNull::new_unchecked(relation) },
            open: PhantomData,
        }
    }

    /// The cache entry, for PostgreSQL's functions.
    #[inline]
    pub fn as_ptr(self) -> pg_sys::Relation {
        self.relation.as_ptr()
    }

    /// Reads one field of the cache entry.
    #[inline]
    fn read<T>(self, field: impl FnOnce(*const pg_sys::RelationData) -> *const T) -> T
    where
        T: Copy,
    {
        // SAFETY: an open relation's entry is pinned, so it stays in place, and nobody else writes to it meanwhile.
        unsafe { *field(self.relation.as_ptr()) }
    }

    /// The `pg_class` row in the cache entry.
    #[inline]
    fn class(self) -> &'a pg_sys::FormData_pg_class {
        // SAFETY: every entry has this row, which is replaced only by invalidations that keep the address of open ones.
        unsafe { &*(*self.as_ptr()).rd_rel }
    }

    /// The table's OID.
    #[inline]
    pub fn oid(self) -> pg_sys::Oid {
        // SAFETY: the address of a field of a live entry is computed.
        self.read(|entry| unsafe { &raw const (*entry).rd_id })
    }

    /// The table's name, for messages.
    pub fn name(self) -> String {
        ports::RelationGetRelationName(self)
    }

    /// The table's name with database and schema, as PostgreSQL's own VACUUM writes it. A part that was dropped
    /// meanwhile is a question mark.
    pub fn full_name(self) -> String {
        let [database, schema] = [
            catalog::get_database_name(server::database().into()),
            catalog::get_namespace_name(self.class().relnamespace),
        ]
        .map(|name| name.unwrap_or_else(|| "?".to_owned()));
        format!("{database}.{schema}.{}", self.name())
    }

    /// Where the table's file lies.
    #[inline]
    pub fn file(self) -> RelFileLocator {
        ports::relation_locator(self)
    }

    /// The parts of [`OpenTable::file`].
    #[inline]
    pub fn locator(self) -> Locator {
        ports::locator_parts(&self.file())
    }

    /// `relkind`: what sort of relation it is.
    pub fn relkind(self) -> u8 {
        self.class().relkind as u8
    }

    /// The access method of a table or an index.
    pub fn access_method(self) -> pg_sys::Oid {
        self.class().relam
    }

    /// `relpersistence`: permanent, unlogged or temporary.
    pub fn persistence(self) -> std::ffi::c_char {
        self.class().relpersistence
    }

    /// Whether committed rows of the table outlive a crash.
    pub fn is_permanent(self) -> bool {
        self.persistence() == pg_sys::RELPERSISTENCE_PERMANENT as std::ffi::c_char
    }

    /// Whether the table is temporary, so that its pages lie in this backend's own buffers.
    #[inline]
    pub fn uses_local_buffers(self) -> bool {
        ports::RelationUsesLocalBuffers(self)
    }

    /// Whether the table is a temporary one of another session.
    pub fn is_temporary_elsewhere(self) -> bool {
        // SAFETY: the address of a field of a live entry is computed.
        self.uses_local_buffers()
            && !self.read(|entry| unsafe { &raw const (*entry).rd_islocaltemp })
    }

    /// Whether the table is the temporary target of a rewrite of another table.
    pub fn is_of_rewrite(self) -> bool {
        self.class().relrewrite != pg_sys::InvalidOid
    }

    /// Whether changes of the table are WAL-logged.
    #[inline]
    pub fn needs_wal(self) -> bool {
        ports::RelationNeedsWAL(self)
    }

    /// Whether changes of the table's rows are logged for logical decoding too. Those of a rewrite are not: the
    /// rows stay what they were.
    #[inline]
    pub fn is_logically_logged(self) -> bool {
        ports::XLogLogicalInfoActive() && self.needs_wal() && !self.is_of_rewrite()
    }

    /// The columns by which subscribers find a row of the table.
    pub fn replica_identity(self) -> ReplicaIdentity {
        match self.class().relreplident as u8 {
            pg_sys::REPLICA_IDENTITY_FULL => ReplicaIdentity::Full,
            pg_sys::REPLICA_IDENTITY_NOTHING => ReplicaIdentity::Nothing,
            _ => ReplicaIdentity::Columns(index::identity_columns(self)),
        }
    }

    /// Whether the access method of the table is `lanes`.
    #[inline]
    pub fn is_lanes(self) -> bool {
        // SAFETY: the address of a field of a live entry is computed.
        let routine = self.read(|entry| unsafe { &raw const (*entry).rd_tableam });
        !routine.is_null() && routine == ROUTINE.load(Ordering::Relaxed).cast_const()
    }

    /// The descriptor of the table's rows.
    #[inline]
    pub fn descriptor(self) -> Descriptor<'a> {
        // SAFETY: a descriptor that is replaced while the table is open is kept until the transaction ends.
        unsafe { Descriptor::at((*self.as_ptr()).rd_att) }
    }

    /// Closes a table that [`OpenedTable::open_until_close`] opened. No copy of the handle is used afterwards.
    pub fn close(self) {
        // SAFETY: the table is open.
        unsafe { pg_sys::relation_close(self.as_ptr(), pg_sys::NoLock as pg_sys::LOCKMODE) }
    }

    /// Whether the table has an index.
    pub fn has_indexes(self) -> bool {
        // The catalog's flag stays until the next VACUUM once the last index is dropped.
        if !self.class().relhasindex {
            return false;
        }
        // SAFETY: the table is open; the list is a copy that is freed here.
        unsafe {
            let indexes = pg_sys::RelationGetIndexList(self.as_ptr());
            let count = ports::list_length(indexes);
            pg_sys::list_free(indexes);
            count > 0
        }
    }

    /// Whether the table has, or had, a trigger.
    pub fn has_triggers(self) -> bool {
        self.class().relhastriggers
    }

    /// Whether the table is a partition.
    pub fn is_partition(self) -> bool {
        self.class().relispartition
    }

    /// Whether triggers of the table are known to this backend.
    pub fn has_trigger_descriptor(self) -> bool {
        // SAFETY: the address of a field of a live entry is computed.
        !self
            .read(|entry| unsafe { &raw const (*entry).trigdesc })
            .is_null()
    }

    /// Whether a trigger, such as a foreign key's, fires on INSERT.
    pub fn fires_on_insert(self) -> bool {
        // SAFETY: the descriptor of an open table's triggers lives as long as its entry.
        unsafe {
            let triggers = (*self.as_ptr()).trigdesc;
            !triggers.is_null()
                && ((*triggers).trig_insert_before_row
                    || (*triggers).trig_insert_after_row
                    || (*triggers).trig_insert_instead_row
                    || (*triggers).trig_insert_before_statement
                    || (*triggers).trig_insert_after_statement
                    || (*triggers).trig_insert_new_table)
        }
    }

    /// Whether a rule rewrites an INSERT into the table.
    pub fn has_insert_rule(self) -> bool {
        // SAFETY: the rules of an open table live as long as its entry; a lock lists so many of them.
        unsafe {
            let rules = (*self.as_ptr()).rd_rules;
            !rules.is_null()
                && std::slice::from_raw_parts((*rules).rules, (*rules).numLocks as usize)
                    .iter()
                    .any(|rule| (**rule).event == pg_sys::CmdType::CMD_INSERT)
        }
    }

    /// The pages and rows that the catalogue says the table has.
    pub fn catalogued_size(self) -> (i32, f32) {
        (self.class().relpages, self.class().reltuples)
    }

    /// Whether the table has, or had, child tables.
    pub fn has_children(self) -> bool {
        self.class().relhassubclass
    }

    /// The bytes of a row's columns that the planner assumes: from statistics, or from the columns' types.
    pub fn data_width(self) -> usize {
        relation::get_rel_data_width(self, Null) as usize
    }
}

/// A table that this value has opened and closes when it is dropped. While an ERROR passes, the
/// resource owner closes the table instead.
pub struct OpenedTable {
    relation: pg_sys::Relation,
    /// The mode of the lock that closing releases; `NoLock` keeps the lock until the transaction ends.
    released: pg_sys::LOCKMODE,
}

impl OpenedTable {
    /// Opens a table, with an ERROR if there is none, and keeps its lock until the value is dropped.
    pub fn open(table: pg_sys::Oid, mode: u32) -> OpenedTable {
        let mode = mode as pg_sys::LOCKMODE;
        OpenedTable {
            // SAFETY: runs inside a transaction, like all that opens tables; an unknown OID is an ERROR.
            relation: unsafe { pg_sys::table_open(table, mode) },
            released: mode,
        }
    }

    /// Opens a table, with an ERROR if there is none, until [`OpenTable::close`] or the end of the transaction. Its lock
    /// stays until the transaction ends.
    pub fn open_until_close<'a>(table: pg_sys::Oid, mode: u32) -> OpenTable<'a> {
        // SAFETY: runs inside a transaction; an unknown OID is an ERROR.
        unsafe { OpenTable::new(pg_sys::relation_open(table, mode as pg_sys::LOCKMODE)) }
    }

    /// Opens a relation that the caller has locked. It is an ERROR if there is none.
    pub fn open_locked(relation: pg_sys::Oid) -> OpenedTable {
        let no_lock = pg_sys::NoLock as pg_sys::LOCKMODE;
        OpenedTable {
            // SAFETY: runs inside a transaction; an unknown OID is an ERROR.
            relation: unsafe { pg_sys::relation_open(relation, no_lock) },
            released: no_lock,
        }
    }

    /// As [`Self::open_locked`]. `None`: there is no such relation.
    pub fn find_locked(relation: pg_sys::Oid) -> Option<OpenedTable> {
        // SAFETY: runs inside a transaction; an unknown OID yields null.
        let relation = unsafe { pg_sys::RelationIdGetRelation(relation) };
        (!relation.is_null()).then(|| OpenedTable {
            relation,
            released: pg_sys::NoLock as pg_sys::LOCKMODE,
        })
    }

    /// Opens a table and keeps its lock until the value is dropped. `None`: there is no such relation.
    pub fn try_open(table: pg_sys::Oid, mode: u32) -> Option<OpenedTable> {
        let mode = mode as pg_sys::LOCKMODE;
        // SAFETY: runs inside a transaction; an unknown OID yields null.
        let relation = unsafe { pg_sys::try_relation_open(table, mode) };
        // Lazily: a value around null must not be dropped.
        (!relation.is_null()).then(|| OpenedTable {
            relation,
            released: mode,
        })
    }

    /// Opens a table if its lock is free at once. `None`: it is not, or there is no such relation.
    pub fn try_open_at_once(table: pg_sys::Oid, mode: u32) -> Option<OpenedTable> {
        let lock = mode as pg_sys::LOCKMODE;
        // SAFETY: runs inside a transaction; the lock is released again if there is nothing to open.
        unsafe {
            if !pg_sys::ConditionalLockRelationOid(table, lock) {
                return None;
            }
            let relation = pg_sys::try_relation_open(table, pg_sys::NoLock as i32);
            if relation.is_null() {
                pg_sys::UnlockRelationOid(table, lock);
                return None;
            }
            Some(OpenedTable {
                relation,
                released: lock,
            })
        }
    }

    /// Keeps the lock until the transaction ends, beyond this value.
    pub fn keep_lock(mut self) -> OpenedTable {
        self.released = pg_sys::NoLock as pg_sys::LOCKMODE;
        self
    }

    /// The open table.
    #[inline]
    pub fn get(&self) -> OpenTable<'_> {
        // SAFETY: opened by this value, which closes it no earlier than the borrow ends.
        unsafe { OpenTable::new(self.relation) }
    }
}

impl Drop for OpenedTable {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: opened by this value, and closed once.
            unsafe { pg_sys::relation_close(self.relation, self.released) }
        }
    }
}
