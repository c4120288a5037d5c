//! Open tables as values: [`OpenTable`] is borrowed and made once in each callback, [`OpenedTable`] closes its table.
//!
//! All that the rest of the library reads from a relation cache entry, or does to an open table, is a method of
//! [`OpenTable`]. Whoever makes one promises that the table is open; the methods are safe and cost nothing.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use pgrx::pg_sys;

use super::descriptor::Descriptor;
use super::functions::{Null, catalog, process, relation};
use super::ports::{self, Locator, RelFileLocator};
use super::tree::view::views;
use super::tree::{View, plan_node};
use super::{index_columns, server};

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

views! {
    /// A table that is open for `'p`, in a backend that runs a transaction. An open relation's entry in the cache is
    /// pinned, so it stays in place, and nobody else writes to it meanwhile.
    OpenTable of RelationData {
        /// The table's OID.
        oid = rd_id: pg_sys::Oid;
        rd_islocaltemp: bool;
        rd_tableam: *const pg_sys::TableAmRoutine;
    } {
        /// The row of `pg_class`, which is replaced only by invalidations that keep the address of open ones.
        rd_rel: ClassRow<'p>;
        /// The row of `pg_index` of an index.
        rd_index: Option<IndexRow<'p>>;
        /// The routine table of an index's access method.
        rd_indam: Option<IndexRoutine<'p>>;
        /// The descriptor of the table's rows. One that is replaced while the table is open is kept until the
        /// transaction ends.
        descriptor = rd_att: Descriptor<'p>;
        trigdesc: Option<TriggerRow<'p>>;
    } {}

    /// A row of `pg_class`.
    ClassRow of FormData_pg_class {
        relnamespace: pg_sys::Oid;
        relowner: pg_sys::Oid;
        relkind: std::ffi::c_char;
        relam: pg_sys::Oid;
        relpersistence: std::ffi::c_char;
        relrewrite: pg_sys::Oid;
        relreplident: std::ffi::c_char;
        relhasindex: bool;
        relhastriggers: bool;
        relispartition: bool;
        relhassubclass: bool;
        relpages: i32;
        reltuples: f32;
    } {} {}

    /// A row of `pg_index`.
    IndexRow of FormData_pg_index {
        indisvalid: bool;
    } {} {}

    /// The routine table of an index's access method.
    IndexRoutine of IndexAmRoutine {
        /// Whether a scan need not give a key of the first column.
        amoptionalkey: bool;
    } {} {}

    /// Which kinds of triggers a table has.
    TriggerRow of TriggerDesc {
        trig_insert_before_row: bool;
        trig_insert_after_row: bool;
        trig_insert_instead_row: bool;
        trig_insert_before_statement: bool;
        trig_insert_after_statement: bool;
        trig_insert_new_table: bool;
    } {} {}
}

impl<'a> OpenTable<'a> {
    /// A relation that a callback or PostgreSQL's functions pass, and that stays open for `'a`.
    #[inline]
    pub(in crate::pg) fn new(relation: pg_sys::Relation) -> OpenTable<'a> {
        plan_node(relation)
    }

    /// The cache entry, for PostgreSQL's functions.
    #[inline]
    pub fn as_ptr(self) -> pg_sys::Relation {
        View::as_ptr(self)
    }

    /// The `pg_class` row in the cache entry.
    #[inline]
    fn class(self) -> ClassRow<'a> {
        self.rd_rel()
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
            catalog::get_namespace_name(self.class().relnamespace()),
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
        self.class().relkind() as u8
    }

    /// The access method of a table or an index.
    pub fn access_method(self) -> pg_sys::Oid {
        self.class().relam()
    }

    /// The owner of the table.
    pub fn owner(self) -> pg_sys::Oid {
        self.class().relowner()
    }

    /// Whether queries may use an index.
    pub fn is_valid_index(self) -> bool {
        self.rd_index().is_some_and(IndexRow::indisvalid)
    }

    /// Whether an index has entries for rows whose first column is NULL: a scan need not give a key of it.
    pub fn keeps_nulls_of_first_column(self) -> bool {
        self.rd_indam().is_some_and(IndexRoutine::amoptionalkey)
    }

    /// `relpersistence`: permanent, unlogged or temporary.
    pub fn persistence(self) -> std::ffi::c_char {
        self.class().relpersistence()
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
        self.uses_local_buffers() && !self.rd_islocaltemp()
    }

    /// Whether the table is the temporary target of a rewrite of another table.
    pub fn is_of_rewrite(self) -> bool {
        self.class().relrewrite() != pg_sys::InvalidOid
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
        match self.class().relreplident() as u8 {
            pg_sys::REPLICA_IDENTITY_FULL => ReplicaIdentity::Full,
            pg_sys::REPLICA_IDENTITY_NOTHING => ReplicaIdentity::Nothing,
            _ => ReplicaIdentity::Columns(index_columns::identity_columns(self)),
        }
    }

    /// Whether the access method of the table is `lanes`.
    #[inline]
    pub fn is_lanes(self) -> bool {
        let routine = self.rd_tableam();
        !routine.is_null() && routine == ROUTINE.load(Ordering::Relaxed).cast_const()
    }

    /// Closes a table that [`OpenedTable::open_until_close`] opened. No copy of the handle is used afterwards.
    pub(in crate::pg) fn close(self) {
        relation::relation_close(self, pg_sys::NoLock as pg_sys::LOCKMODE);
    }

    /// Whether the table has an index.
    pub fn has_indexes(self) -> bool {
        // The catalog's flag stays until the next VACUUM once the last index is dropped.
        if !self.class().relhasindex() {
            return false;
        }
        let indexes = relation::RelationGetIndexList(self);
        let has_one = indexes.iter().next().is_some();
        relation::list_free(indexes);
        has_one
    }

    /// Whether the table has, or had, a trigger.
    pub fn has_triggers(self) -> bool {
        self.class().relhastriggers()
    }

    /// Whether the table is a partition.
    pub fn is_partition(self) -> bool {
        self.class().relispartition()
    }

    /// Whether triggers of the table are known to this backend.
    pub fn has_trigger_descriptor(self) -> bool {
        self.trigdesc().is_some()
    }

    /// Whether a trigger, such as a foreign key's, fires on INSERT.
    pub fn fires_on_insert(self) -> bool {
        self.trigdesc().is_some_and(|triggers| {
            triggers.trig_insert_before_row()
                || triggers.trig_insert_after_row()
                || triggers.trig_insert_instead_row()
                || triggers.trig_insert_before_statement()
                || triggers.trig_insert_after_statement()
                || triggers.trig_insert_new_table()
        })
    }

    /// Whether a rule rewrites an INSERT into the table.
    pub fn has_insert_rule(self) -> bool {
        ports::has_insert_rule(self)
    }

    /// The pages and rows that the catalogue says the table has.
    pub fn catalogued_size(self) -> (i32, f32) {
        (self.class().relpages(), self.class().reltuples())
    }

    /// Whether the table has, or had, child tables.
    pub fn has_children(self) -> bool {
        self.class().relhassubclass()
    }

    /// The bytes of a row's columns that the planner assumes: from statistics, or from the columns' types.
    pub fn data_width(self) -> usize {
        relation::get_rel_data_width(self, Null) as usize
    }
}

/// A table that this value has opened and closes when it is dropped. While an ERROR passes, the
/// resource owner closes the table instead.
pub struct OpenedTable {
    table: OpenTable<'static>,
    /// The mode of the lock that closing releases; `NoLock` keeps the lock until the transaction ends.
    released: pg_sys::LOCKMODE,
}

impl OpenedTable {
    /// Opens a table, with an ERROR if there is none, and keeps its lock until the value is dropped.
    pub fn open(table: pg_sys::Oid, mode: u32) -> OpenedTable {
        let mode = mode as pg_sys::LOCKMODE;
        OpenedTable {
            table: relation::table_open(table, mode),
            released: mode,
        }
    }

    /// Opens a table, with an ERROR if there is none, until [`OpenTable::close`] or the end of the transaction. Its
    /// lock stays until the transaction ends.
    pub(in crate::pg) fn open_until_close<'a>(table: pg_sys::Oid, mode: u32) -> OpenTable<'a> {
        relation::relation_open(table, mode as pg_sys::LOCKMODE)
    }

    /// Opens a relation that the caller has locked. It is an ERROR if there is none.
    pub fn open_locked(relation: pg_sys::Oid) -> OpenedTable {
        let no_lock = pg_sys::NoLock as pg_sys::LOCKMODE;
        OpenedTable {
            table: relation::relation_open(relation, no_lock),
            released: no_lock,
        }
    }

    /// As [`Self::open_locked`]. `None`: there is no such relation.
    pub fn find_locked(relation: pg_sys::Oid) -> Option<OpenedTable> {
        Some(OpenedTable {
            table: relation::RelationIdGetRelation(relation)?,
            released: pg_sys::NoLock as pg_sys::LOCKMODE,
        })
    }

    /// Opens a table and keeps its lock until the value is dropped. `None`: there is no such relation.
    pub fn try_open(table: pg_sys::Oid, mode: u32) -> Option<OpenedTable> {
        let mode = mode as pg_sys::LOCKMODE;
        Some(OpenedTable {
            table: relation::try_relation_open(table, mode)?,
            released: mode,
        })
    }

    /// Opens a table if its lock is free at once. `None`: it is not, or there is no such relation.
    pub fn try_open_at_once(table: pg_sys::Oid, mode: u32) -> Option<OpenedTable> {
        let lock = mode as pg_sys::LOCKMODE;
        if !process::ConditionalLockRelationOid(table, lock) {
            return None;
        }
        let opened = relation::try_relation_open(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        let Some(opened) = opened else {
            process::UnlockRelationOid(table, lock);
            return None;
        };
        Some(OpenedTable {
            table: opened,
            released: lock,
        })
    }

    /// Keeps the lock until the transaction ends, beyond this value.
    pub fn keep_lock(mut self) -> OpenedTable {
        self.released = pg_sys::NoLock as pg_sys::LOCKMODE;
        self
    }

    /// The open table.
    #[inline]
    pub fn get(&self) -> OpenTable<'_> {
        // This value closes the table no earlier than the borrow ends.
        self.table
    }
}

impl Drop for OpenedTable {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            relation::relation_close(self.table, self.released);
        }
    }
}
