//! Open tables: their files, locks and statistics.

use pgrx::pg_sys::{self, ItemPointerData, Oid, TransactionId};

use super::{Null, Place, functions};
use crate::pg::index::IndexDescription;
use crate::pg::table::OpenTable;
use crate::pg::tree::{Oids, Relids};

functions! {
    /// The description of an index.
    fn BuildIndexInfo(index: OpenTable<'_>) -> IndexDescription<'p>;

    /// Whether this process holds a lock in a mode, or in a stronger one.
    fn CheckRelationLockedByMe(table: OpenTable<'_>, mode: i32, or_stronger: bool) -> bool;

    /// Locks a page, unless that means waiting; whether it is locked.
    fn ConditionalLockPage(table: OpenTable<'_>, page: u32, mode: i32) -> bool;

    /// Locks a table, unless that means waiting; whether it is locked.
    fn ConditionalLockRelation(table: OpenTable<'_>, mode: i32) -> bool;

    /// The oldest transaction that some snapshot may not see.
    fn GetOldestNonRemovableTransactionId(table: OpenTable<'_>) -> TransactionId;

    /// Whether somebody waits for a lock that conflicts with this process's lock in a mode.
    fn LockHasWaitersRelation(table: OpenTable<'_>, mode: i32) -> bool;

    /// Locks a page, which stands for something that the table's access method knows.
    fn LockPage(table: OpenTable<'_>, page: u32, mode: i32);

    /// Locks the end of a table's file.
    fn LockRelationForExtension(table: OpenTable<'_>, mode: i32);

    /// Locks a row.
    fn LockTuple(table: OpenTable<'_>, row: Place<'_, ItemPointerData>, mode: i32);

    /// Blocks of a fork as PostgreSQL counts them.
    fn RelationGetNumberOfBlocksInFork(table: OpenTable<'_>, fork: pg_sys::ForkNumber::Type) -> u32;

    /// The attributes of a table, counted from the first system column, that some of its indexes have. The set is a
    /// copy.
    fn RelationGetIndexAttrBitmap(
        table: OpenTable<'_>,
        kind: pg_sys::IndexAttrBitmapKind::Type,
    ) -> Relids<'p>;

    /// The OIDs of a table's indexes, as a list of the caller's own.
    fn RelationGetIndexList(table: OpenTable<'_>) -> Oids<'p>;

    /// The relation with an OID, which the caller has locked; `None` if there is none.
    fn RelationIdGetRelation(relation: Oid) -> Option<OpenTable<'p>>;

    /// Cuts the main fork to so many blocks.
    fn RelationTruncate(table: OpenTable<'_>, blocks: u32);

    /// Unlocks a page.
    fn UnlockPage(table: OpenTable<'_>, page: u32, mode: i32);

    /// Unlocks a table.
    fn UnlockRelation(table: OpenTable<'_>, mode: i32);

    /// Unlocks the end of a table's file.
    fn UnlockRelationForExtension(table: OpenTable<'_>, mode: i32);

    /// Unlocks a row.
    fn UnlockTuple(table: OpenTable<'_>, row: Place<'_, ItemPointerData>, mode: i32);

    /// Waits until a transaction is over, on behalf of an operation on a row of a table.
    fn XactLockTableWait(
        xid: TransactionId,
        table: OpenTable<'_>,
        row: Place<'_, ItemPointerData>,
        reason: pg_sys::XLTW_Oper::Type,
    );

    /// The bytes of a row's columns that the planner assumes.
    fn get_rel_data_width(table: OpenTable<'_>, widths: Null) -> i32;

    /// Opens an index, with an ERROR if there is none.
    fn index_open(index: Oid, mode: i32) -> OpenTable<'p>;

    /// Closes an index.
    fn index_close(index: OpenTable<'_>, released: i32);

    /// Frees a list.
    fn list_free(list: Oids<'_>);

    /// Closes a relation, and releases a lock.
    fn relation_close(relation: OpenTable<'_>, released: i32);

    /// Opens a relation, with an ERROR if there is none.
    fn relation_open(relation: Oid, mode: i32) -> OpenTable<'p>;

    /// Opens a table, with an ERROR if there is none.
    fn table_open(table: Oid, mode: i32) -> OpenTable<'p>;

    /// Opens a relation; `None` if there is none.
    fn try_relation_open(relation: Oid, mode: i32) -> Option<OpenTable<'p>>;

    /// Counts a deleted row.
    fn pgstat_count_heap_delete(table: OpenTable<'_>);

    /// Counts inserted rows.
    fn pgstat_count_heap_insert(table: OpenTable<'_>, rows: i64);

    /// Bytes of a fork, or of all forks for `InvalidForkNumber`, as the access method counts them.
    fn table_block_relation_size(table: OpenTable<'_>, fork: pg_sys::ForkNumber::Type) -> u64;
}
