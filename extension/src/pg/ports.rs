//! C macros under their C names, declarations that the bindings lack, and every difference between Postgres
//! versions. Elsewhere a version is mentioned only where it gives a callback another signature.

#![allow(non_snake_case)]

use pgrx::pg_sys;

/// Bytes of a page.
pub const BLCKSZ: usize = pg_sys::BLCKSZ as usize;
/// Bytes of the standard page header, before anything of ours.
pub const PAGE_HEADER_BYTES: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_linp);
/// Asks `ReadBufferExtended` for a new block at the end of the relation.
pub const P_NEW: pg_sys::BlockNumber = pg_sys::InvalidBlockNumber;
/// No subtransaction.
const INVALID_SUBXID: pg_sys::SubTransactionId = 0;
/// The largest block number; one more means "none".
pub const MAX_BLOCK: u32 = 0xFFFF_FFFE;

/// Where a relation's file lies: (tablespace, database, file), the physical part of a relation's identity.
pub type Locator = (u32, u32, u32);

#[cfg(feature = "pg15")]
pub type RelFileLocator = pg_sys::RelFileNode;
#[cfg(not(feature = "pg15"))]
pub type RelFileLocator = pg_sys::RelFileLocator;

/// The parts of a relation file's locator.
pub fn locator_parts(locator: &RelFileLocator) -> Locator {
    #[cfg(feature = "pg15")]
    return (
        locator.spcNode.to_u32(),
        locator.dbNode.to_u32(),
        locator.relNode.to_u32(),
    );
    #[cfg(not(feature = "pg15"))]
    return (
        locator.spcOid.to_u32(),
        locator.dbOid.to_u32(),
        locator.relNumber.to_u32(),
    );
}

/// # Safety
/// `relation` is an open relation.
pub unsafe fn relation_locator(relation: pg_sys::Relation) -> RelFileLocator {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        return (*relation).rd_node;
        #[cfg(not(feature = "pg15"))]
        return (*relation).rd_locator;
    }
}

/// `RelationGetSmgr`: the relation's storage manager handle, opened if need be.
///
/// # Safety
/// `relation` is an open relation.
pub unsafe fn RelationGetSmgr(relation: pg_sys::Relation) -> pg_sys::SMgrRelation {
    // SAFETY: the caller's promise; the relcache entry owns the handle once it is set.
    unsafe {
        if (*relation).rd_smgr.is_null() {
            let smgr = pg_sys::smgropen(relation_locator(relation), (*relation).rd_backend);
            #[cfg(any(feature = "pg15", feature = "pg16"))]
            pg_sys::smgrsetowner(&raw mut (*relation).rd_smgr, smgr);
            #[cfg(not(any(feature = "pg15", feature = "pg16")))]
            {
                (*relation).rd_smgr = smgr;
                pg_sys::smgrpin(smgr);
            }
        }
        (*relation).rd_smgr
    }
}

/// # Safety
/// `relation` is an open relation.
pub unsafe fn RelationUsesLocalBuffers(relation: pg_sys::Relation) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        (*(*relation).rd_rel).relpersistence == pg_sys::RELPERSISTENCE_TEMP as std::ffi::c_char
    }
}

/// # Safety
/// `relation` is an open relation.
pub unsafe fn RelationNeedsWAL(relation: pg_sys::Relation) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        if (*(*relation).rd_rel).relpersistence
            != pg_sys::RELPERSISTENCE_PERMANENT as std::ffi::c_char
        {
            return false;
        }
        #[cfg(feature = "pg15")]
        let (created, renewed) = (
            (*relation).rd_createSubid,
            (*relation).rd_firstRelfilenodeSubid,
        );
        #[cfg(not(feature = "pg15"))]
        let (created, renewed) = (
            (*relation).rd_createSubid,
            (*relation).rd_firstRelfilelocatorSubid,
        );
        pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32
            || (created == INVALID_SUBXID && renewed == INVALID_SUBXID)
    }
}

/// The relation's name, for messages.
///
/// # Safety
/// `relation` is an open relation.
pub unsafe fn RelationGetRelationName(relation: pg_sys::Relation) -> String {
    // SAFETY: the caller's promise; relname is a NUL-terminated NameData.
    unsafe { super::names::text((*(*relation).rd_rel).relname.data.as_ptr()).unwrap_or_default() }
}

/// One attribute of a tuple descriptor, counted from 0.
///
/// # Safety
/// `descriptor` is a live descriptor of more than `index` attributes.
pub unsafe fn TupleDescAttr<'a>(
    descriptor: pg_sys::TupleDesc,
    index: usize,
) -> &'a pg_sys::FormData_pg_attribute {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return &*(*descriptor).attrs.as_ptr().add(index);
        // The full attributes lie behind the compact ones.
        #[cfg(feature = "pg18")]
        return &*(*descriptor)
            .compact_attrs
            .as_ptr()
            .add((*descriptor).natts as usize)
            .cast::<pg_sys::FormData_pg_attribute>()
            .add(index);
    }
}

/// The value that rows from before `ALTER TABLE … ADD COLUMN … DEFAULT` have in attribute `index` (from 0).
///
/// # Safety
/// `descriptor` is a relation's live descriptor of more than `index` attributes.
pub unsafe fn missing_value(descriptor: pg_sys::TupleDesc, index: usize) -> Option<pg_sys::Datum> {
    let mut is_null = true;
    // SAFETY: the caller's promise.
    let value = unsafe { pg_sys::getmissingattr(descriptor, index as i32 + 1, &mut is_null) };
    (!is_null).then_some(value)
}

unsafe extern "C-unwind" {
    fn CheckForSerializableConflictOutNeeded(
        relation: pg_sys::Relation,
        snapshot: pg_sys::Snapshot,
    ) -> bool;
    #[link_name = "CheckForSerializableConflictOut"]
    fn check_conflict_out(
        relation: pg_sys::Relation,
        xid: pg_sys::TransactionId,
        snapshot: pg_sys::Snapshot,
    );
    #[link_name = "CheckForSerializableConflictIn"]
    fn check_conflict_in(
        relation: pg_sys::Relation,
        tid: pg_sys::ItemPointer,
        block: pg_sys::BlockNumber,
    );
    #[link_name = "PredicateLockRelation"]
    fn predicate_lock_relation(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot);
    #[link_name = "log_smgrcreate"]
    fn log_create(locator: *const RelFileLocator, fork: pg_sys::ForkNumber::Type);
}

/// Serializable isolation: this scan reads the whole relation.
///
/// # Safety
/// Open relation, live snapshot.
pub unsafe fn PredicateLockRelation(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot) {
    // SAFETY: the caller's promise; the boundary turns an ERROR into a panic.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| predicate_lock_relation(relation, snapshot)) }
}

/// Serializable isolation: whether scans under this snapshot must report the writers they do not see.
///
/// # Safety
/// Open relation, live snapshot.
pub unsafe fn serializable_check_needed(
    relation: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
) -> bool {
    // SAFETY: the caller's promise; the boundary turns an ERROR into a panic.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            CheckForSerializableConflictOutNeeded(relation, snapshot)
        })
    }
}

/// Serializable isolation: this transaction read around a row that `xid` wrote.
///
/// # Safety
/// Open relation, live snapshot.
pub unsafe fn CheckForSerializableConflictOut(
    relation: pg_sys::Relation,
    xid: u32,
    snapshot: pg_sys::Snapshot,
) {
    // SAFETY: the caller's promise; the boundary turns an ERROR into a panic.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| check_conflict_out(relation, xid.into(), snapshot))
    }
}

/// Serializable isolation: this transaction is about to write the relation.
///
/// # Safety
/// Open relation.
pub unsafe fn CheckForSerializableConflictIn(relation: pg_sys::Relation) {
    // SAFETY: the caller's promise; the boundary turns an ERROR into a panic.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            check_conflict_in(relation, std::ptr::null_mut(), pg_sys::InvalidBlockNumber)
        })
    }
}

/// WAL-logs the creation of a fork's file.
///
/// # Safety
/// The file of `locator` was created.
pub unsafe fn log_smgrcreate(locator: &RelFileLocator, fork: pg_sys::ForkNumber::Type) {
    // SAFETY: the caller's promise; the boundary turns an ERROR into a panic.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| log_create(locator, fork)) }
}

/// nbtxlog.h; the same in every supported version.
const XLOG_BTREE_REUSE_PAGE: u8 = 0xD0;

/// Makes every standby cancel queries whose snapshot still needs what transactions up to `horizon` removed or
/// froze. Core writes such a record when a B-tree page is recycled; its replay touches no page, only conflicts,
/// which is exactly what a VACUUM of ours must announce and cannot by generic WAL records.
///
/// # Safety
/// `relation` is an open, WAL-logged relation; `horizon` is a normal transaction id.
pub unsafe fn log_snapshot_conflict(relation: pg_sys::Relation, horizon: u32) {
    // SAFETY: the record lives on this stack until XLogInsert has copied it.
    unsafe {
        let next = pg_sys::ReadNextFullTransactionId();
        let age = (next.value as u32).wrapping_sub(horizon) as u64;
        // xl_btree_reuse_page: locator, block, full transaction id and, from version 16 on, whether it is a catalogue.
        let mut record = Vec::with_capacity(32);
        let (space, database, file) = locator_parts(&relation_locator(relation));
        for part in [space, database, file, pg_sys::InvalidBlockNumber] {
            record.extend_from_slice(&part.to_ne_bytes());
        }
        record.extend_from_slice(&next.value.saturating_sub(age).to_ne_bytes());
        #[cfg(not(feature = "pg15"))]
        record.push(0u8);
        pg_sys::XLogBeginInsert();
        pg_sys::XLogRegisterData(record.as_mut_ptr().cast(), record.len() as _);
        pg_sys::XLogInsert(pg_sys::RmgrIds::RM_BTREE_ID as u8, XLOG_BTREE_REUSE_PAGE);
    }
}

/// Whether this process runs VACUUM, so that others' snapshots pass over its transaction id, and over its snapshots too.
pub fn is_vacuum() -> bool {
    // SAFETY: this process's own entry among all processes, whose flags nobody else writes.
    let flags = unsafe { (*pg_sys::MyProc).statusFlags };
    u32::from(flags) & pg_sys::PROC_IN_VACUUM != 0
}

/// Lets a long loop be cancelled. A request to end the whole process is turned into an ERROR here: Postgres would leave
/// through `exit` without unwinding, and pins in the arena that are held on the stack would never be released. The process
/// ends all the same, at the next check outside.
pub fn CHECK_FOR_INTERRUPTS() {
    // SAFETY: flags that signal handlers of this process set.
    if unsafe { pg_sys::ProcDiePending != 0 && pg_sys::InterruptHoldoffCount == 0 } {
        crate::error::raise(
            pgrx::PgSqlErrorCode::ERRCODE_ADMIN_SHUTDOWN,
            "terminating connection due to administrator command",
            "",
        );
    }
    pgrx::check_for_interrupts!();
}
/// `vac_update_relstats` for a table without indexes, multixacts or an all-visible map.
///
/// # Safety
/// `relation` is an open table that this VACUUM holds.
pub unsafe fn update_relation_stats(
    relation: pg_sys::Relation,
    blocks: u32,
    rows: f64,
    frozen: u32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let multi = pg_sys::GetOldestMultiXactId();
        let (mut frozen_updated, mut multi_updated) = (false, false);
        pg_sys::vac_update_relstats(
            relation,
            blocks,
            rows,
            0,
            #[cfg(feature = "pg18")]
            0,
            (*(*relation).rd_rel).relhasindex,
            frozen.into(),
            multi,
            &mut frozen_updated,
            &mut multi_updated,
            false,
        );
    }
}

/// How many rows ANALYZE wants of a table, by the column that wants most: `std_typanalyze` asks for so many for each entry of the
/// lists that it makes.
///
/// # Safety
/// `relation` is open, inside a transaction.
pub unsafe fn statistics_rows(relation: pg_sys::Relation) -> u64 {
    const ROWS_EACH: u64 = 300;
    // SAFETY: the caller's promise.
    unsafe {
        let descriptor = (*relation).rd_att;
        let targets = (0..(*descriptor).natts as usize).map(|index| {
            let attribute = TupleDescAttr(descriptor, index);
            let own = if attribute.attisdropped {
                Some(0)
            } else {
                own_statistics_target((*relation).rd_id, attribute)
            };
            own.unwrap_or(pg_sys::default_statistics_target.into())
        });
        targets.max().unwrap_or_default().max(1) as u64 * ROWS_EACH
    }
}

/// The statistics target that was set for an attribute.
#[cfg(any(feature = "pg15", feature = "pg16"))]
unsafe fn own_statistics_target(
    _relation: pg_sys::Oid,
    attribute: &pg_sys::FormData_pg_attribute,
) -> Option<i64> {
    let target = i64::from(attribute.attstattarget);
    (target >= 0).then_some(target)
}

/// The statistics target that was set for an attribute.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
unsafe fn own_statistics_target(
    relation: pg_sys::Oid,
    attribute: &pg_sys::FormData_pg_attribute,
) -> Option<i64> {
    let cache = pg_sys::SysCacheIdentifier::ATTNUM as i32;
    // SAFETY: a syscache look-up; the tuple is live until it is released.
    unsafe {
        let tuple = pg_sys::SearchSysCache2(cache, relation.into(), attribute.attnum.into());
        if tuple.is_null() {
            return None;
        }
        let mut is_null = true;
        let target = pg_sys::Anum_pg_attribute_attstattarget as i16;
        let datum = pg_sys::SysCacheGetAttr(cache, tuple, target, &mut is_null);
        pg_sys::ReleaseSysCache(tuple);
        (!is_null).then(|| i64::from(datum.value() as i16))
    }
}

/// Counts a scan that begins, for `pg_stat_*_tables`.
///
/// # Safety
/// `relation` is open.
pub unsafe fn pgstat_count_heap_scan(relation: pg_sys::Relation) {
    // SAFETY: the caller's promise; the counters belong to this backend.
    unsafe {
        if (*relation).pgstat_info.is_null() && (*relation).pgstat_enabled {
            pg_sys::pgstat_assoc_relation(relation);
        }
        if let Some(info) = (*relation).pgstat_info.as_mut() {
            #[cfg(feature = "pg15")]
            {
                info.t_counts.t_numscans += 1;
            }
            #[cfg(not(feature = "pg15"))]
            {
                info.counts.numscans += 1;
            }
        }
    }
}

/// Counts rows that a scan returned.
///
/// # Safety
/// `relation` is open.
pub unsafe fn pgstat_count_heap_rows(relation: pg_sys::Relation, rows: i64) {
    // SAFETY: the caller's promise; the counters belong to this backend.
    unsafe {
        if let Some(info) = (*relation).pgstat_info.as_mut() {
            #[cfg(feature = "pg15")]
            {
                info.t_counts.t_tuples_returned += rows;
            }
            #[cfg(not(feature = "pg15"))]
            {
                info.counts.tuples_returned += rows;
            }
        }
    }
}

/// Elements of a list; a null list is empty.
///
/// # Safety
/// `list` is null or live.
pub unsafe fn list_length(list: *const pg_sys::List) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { list.as_ref().map_or(0, |list| list.length) }
}

/// `table_endscan`, which core defines in a header.
///
/// # Safety
/// `scan` is a scan under way.
pub unsafe fn table_endscan(scan: pg_sys::TableScanDesc) {
    // SAFETY: the caller's promise; every access method has the callback.
    unsafe {
        if let Some(end) = (*(*(*scan).rs_rd).rd_tableam).scan_end {
            end(scan);
        }
    }
}

/// Whether the catalogue's row of a relation was written by the current transaction.
///
/// # Safety
/// Runs inside a transaction.
pub unsafe fn changed_by_this_transaction(relation: pg_sys::Oid) -> bool {
    let cache = pg_sys::SysCacheIdentifier::RELOID as i32;
    // SAFETY: a syscache look-up; the tuple is live until it is released.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache, relation.into());
        if tuple.is_null() {
            return false;
        }
        let xmin = (*(*tuple).t_data).t_choice.t_heap.t_xmin;
        let own = pg_sys::TransactionIdIsCurrentTransactionId(xmin);
        pg_sys::ReleaseSysCache(tuple);
        own
    }
}

/// Whether the current user owns a relation.
///
/// # Safety
/// Runs inside a transaction.
pub unsafe fn owns_relation(relation: pg_sys::Oid) -> bool {
    // SAFETY: catalogue look-ups.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pg_class_ownercheck(relation, pg_sys::GetUserId());
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(
            pg_sys::RelationRelationId,
            relation,
            pg_sys::GetUserId(),
        );
    }
}

/// An element of a list of pointers.
///
/// # Safety
/// `list` is a live list of pointers with more than `index` elements.
pub unsafe fn list_nth<T>(list: *const pg_sys::List, index: i32) -> *mut T {
    // SAFETY: the caller's promise.
    unsafe { (*(*list).elements.add(index as usize)).ptr_value.cast() }
}

/// Empties a slot.
///
/// # Safety
/// `slot` is live.
pub unsafe fn ExecClearTuple(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: every slot has routines, and every routine table this callback.
    unsafe {
        if let Some(clear) = (*(*slot).tts_ops).clear {
            clear(slot);
        }
    }
}

/// What `tuple_update` says about indexes.
#[cfg(feature = "pg15")]
pub type UpdateIndexes = bool;
#[cfg(not(feature = "pg15"))]
pub type UpdateIndexes = pg_sys::TU_UpdateIndexes::Type;

/// No index needs a new entry: there are none.
#[cfg(feature = "pg15")]
pub const UPDATE_NO_INDEXES: UpdateIndexes = false;
#[cfg(not(feature = "pg15"))]
pub const UPDATE_NO_INDEXES: UpdateIndexes = pg_sys::TU_UpdateIndexes::TU_None;

/// The number of the next block that a read stream brings.
///
/// # Safety
/// `stream` is live.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub unsafe fn next_streamed_block(stream: *mut pg_sys::ReadStream) -> Option<u32> {
    // SAFETY: the caller's promise; the pin that comes with the buffer is given back.
    unsafe {
        let buffer = pg_sys::read_stream_next_buffer(stream, std::ptr::null_mut());
        if buffer == 0 {
            return None;
        }
        let block = pg_sys::BufferGetBlockNumber(buffer);
        pg_sys::ReleaseBuffer(buffer);
        Some(block)
    }
}

/// `ConditionalLockTuple`.
///
/// # Safety
/// Open relation, live tuple id.
pub unsafe fn ConditionalLockTuple(
    relation: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    mode: i32,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::ConditionalLockTuple(
            relation,
            tid,
            mode,
            #[cfg(feature = "pg18")]
            false,
        )
    }
}

/// `ConditionalXactLockTableWait`: whether the transaction is over.
pub fn ConditionalXactLockTableWait(xid: u32) -> bool {
    // SAFETY: a plain call.
    unsafe {
        pg_sys::ConditionalXactLockTableWait(
            xid.into(),
            #[cfg(feature = "pg18")]
            false,
        )
    }
}

/// `pgstat_report_vacuum`.
///
/// # Safety
/// `relation` is an open table that this VACUUM holds.
pub unsafe fn pgstat_report_vacuum(relation: pg_sys::Relation, rows_live: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::pgstat_report_vacuum(
            (*relation).rd_id,
            (*(*relation).rd_rel).relisshared,
            rows_live as _,
            0,
            #[cfg(feature = "pg18")]
            pg_sys::GetCurrentTimestamp(),
        );
    }
}

/// Whether VACUUM may shorten a table's file where it is not told otherwise: `vacuum_truncate`.
///
/// # Safety
/// `relation` is an open table.
pub unsafe fn vacuum_truncate(relation: pg_sys::Relation) -> bool {
    // SAFETY: the caller's promise; a table's options are of this type.
    unsafe {
        let options = (*relation).rd_options.cast::<pg_sys::StdRdOptions>();
        #[cfg(not(feature = "pg18"))]
        return options.is_null() || (*options).vacuum_truncate;
        #[cfg(feature = "pg18")]
        return if !options.is_null() && (*options).vacuum_truncate_set {
            (*options).vacuum_truncate
        } else {
            pg_sys::vacuum_truncate
        };
    }
}

/// Counts an updated row.
///
/// # Safety
/// `relation` is open.
pub unsafe fn pgstat_count_heap_update(relation: pg_sys::Relation) {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::pgstat_count_heap_update(
            relation,
            false,
            #[cfg(not(feature = "pg15"))]
            false,
        );
    }
}

/// The B-tree family of `real` and `double precision`.
pub const FLOAT_BTREE_FAM_OID: pg_sys::Oid = pg_sys::Oid::from_u32(1970);
/// The B-tree family of dates and timestamps.
const DATETIME_BTREE_FAM_OID: pg_sys::Oid = pg_sys::Oid::from_u32(434);
/// The B-tree family of times of day.
const TIME_BTREE_FAM_OID: pg_sys::Oid = pg_sys::Oid::from_u32(1996);

/// Whether an operator family orders numbers or times, as the engine does.
pub fn is_number_family(family: pg_sys::Oid) -> bool {
    matches!(
        family,
        pg_sys::INTEGER_BTREE_FAM_OID
            | FLOAT_BTREE_FAM_OID
            | DATETIME_BTREE_FAM_OID
            | TIME_BTREE_FAM_OID
    )
}

/// Whether an ordering operator is descending, and its B-tree family.
pub fn ordering_operator(operator: pg_sys::Oid) -> Option<(bool, pg_sys::Oid)> {
    let (mut family, mut input) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: a catalogue look-up.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        {
            let mut strategy = 0;
            pg_sys::get_ordering_op_properties(operator, &mut family, &mut input, &mut strategy)
                .then_some((
                    u32::from(strategy as u16) == pg_sys::BTGreaterStrategyNumber,
                    family,
                ))
        }
        #[cfg(feature = "pg18")]
        {
            let mut comparison = 0;
            pg_sys::get_ordering_op_properties(operator, &mut family, &mut input, &mut comparison)
                .then_some((comparison == pg_sys::CompareType::COMPARE_GT, family))
        }
    }
}

/// Whether a path key is descending.
///
/// # Safety
/// `key` is live.
pub unsafe fn is_descending(key: *const pg_sys::PathKey) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return (*key).pk_strategy == pg_sys::BTGreaterStrategyNumber as i32;
        #[cfg(feature = "pg18")]
        return (*key).pk_cmptype == pg_sys::CompareType::COMPARE_GT;
    }
}

/// What a comparison operator means in one of the families of numbers and times: the comparison, the family, and the
/// types of its sides.
pub fn btree_operator(
    operator: pg_sys::Oid,
) -> Option<(
    lanes_simd::Comparison,
    pg_sys::Oid,
    (pg_sys::Oid, pg_sys::Oid),
)> {
    use lanes_simd::Comparison;
    // SAFETY: catalogue look-ups; the list lives in the current memory context.
    unsafe {
        let found = pg_sys::get_op_btree_interpretation(operator);
        for index in 0..list_length(found) {
            let meaning = list_nth::<pg_sys::OpBtreeInterpretation>(found, index);
            let family = (*meaning).opfamily_id;
            if !is_number_family(family) {
                continue;
            }
            let comparison = match (*meaning).strategy {
                1 => Comparison::Less,
                2 => Comparison::LessOrEqual,
                3 => Comparison::Equal,
                4 => Comparison::GreaterOrEqual,
                5 => Comparison::Greater,
                // ROWCOMPARE_NE: the negator of an equality.
                6 => Comparison::NotEqual,
                _ => continue,
            };
            let types = ((*meaning).oplefttype, (*meaning).oprighttype);
            return Some((comparison, family, types));
        }
        None
    }
}

/// Makes all attributes of a slot readable.
///
/// # Safety
/// `slot` is filled.
pub unsafe fn slot_getallattrs(slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: the caller's promise; every kind of slot that leaves attributes unread has this callback.
    unsafe {
        let attributes = (*(*slot).tts_tupleDescriptor).natts;
        if i32::from((*slot).tts_nvalid) < attributes {
            pg_sys::slot_getsomeattrs_int(slot, attributes);
        }
    }
}

/// Whether a user may execute a function.
///
/// # Safety
/// A backend that may look into catalogues.
pub unsafe fn function_aclcheck(
    function: pg_sys::Oid,
    user: pg_sys::Oid,
) -> pg_sys::AclResult::Type {
    let execute = pg_sys::ACL_EXECUTE as pg_sys::AclMode;
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        {
            pg_sys::pg_proc_aclcheck(function, user, execute)
        }
        #[cfg(not(feature = "pg15"))]
        {
            pg_sys::object_aclcheck(pg_sys::ProcedureRelationId, function, user, execute)
        }
    }
}
