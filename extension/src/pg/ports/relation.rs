//! Relations: their file, name, persistence and privileges.

use pgrx::pg_sys;

use crate::pg::functions::process;
use crate::pg::table::OpenTable;

/// No subtransaction.
const INVALID_SUBXID: pg_sys::SubTransactionId = 0;
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

/// Where the relation's file lies.
pub fn relation_locator(table: OpenTable<'_>) -> RelFileLocator {
    let relation = table.as_ptr();
    // SAFETY: the table is open.
    unsafe {
        #[cfg(feature = "pg15")]
        return (*relation).rd_node;
        #[cfg(not(feature = "pg15"))]
        return (*relation).rd_locator;
    }
}

/// `RelationGetSmgr`: the relation's storage manager handle, opened if need be.
pub fn RelationGetSmgr(table: OpenTable<'_>) -> pg_sys::SMgrRelation {
    let relation = table.as_ptr();
    // SAFETY: the table is open; the relcache entry owns the handle once it is set.
    unsafe {
        if (*relation).rd_smgr.is_null() {
            let smgr = pg_sys::smgropen(relation_locator(table), (*relation).rd_backend);
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

/// Whether the relation's pages lie in this process's own buffers.
pub fn RelationUsesLocalBuffers(table: OpenTable<'_>) -> bool {
    let relation = table.as_ptr();
    // SAFETY: the table is open.
    unsafe {
        (*(*relation).rd_rel).relpersistence == pg_sys::RELPERSISTENCE_TEMP as std::ffi::c_char
    }
}

/// Whether changes of the relation are WAL-logged.
pub fn RelationNeedsWAL(table: OpenTable<'_>) -> bool {
    let relation = table.as_ptr();
    // SAFETY: the table is open.
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
        process::wal_level() >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32
            || (created == INVALID_SUBXID && renewed == INVALID_SUBXID)
    }
}

/// Whether the WAL contains what logical decoding needs.
pub fn XLogLogicalInfoActive() -> bool {
    process::wal_level() >= pg_sys::WalLevel::WAL_LEVEL_LOGICAL as i32
}

/// The relation's name, for messages.
pub fn RelationGetRelationName(table: OpenTable<'_>) -> String {
    let relation = table.as_ptr();
    // SAFETY: the table is open; relname is a NUL-terminated NameData.
    unsafe {
        let name = (*(*relation).rd_rel).relname.data.as_ptr();
        std::ffi::CStr::from_ptr(name)
            .to_string_lossy()
            .into_owned()
    }
}

/// Whether VACUUM may shorten a table's file where it is not told otherwise: `vacuum_truncate`.
pub fn vacuum_truncate(table: OpenTable<'_>) -> bool {
    let relation = table.as_ptr();
    // SAFETY: the table is open; a table's options are of this type.
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

const MAIN: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;

/// Copies all forks to a new file at `locator` and drops the old ones when the transaction commits.
pub fn copy_forks(table: OpenTable<'_>, locator: &RelFileLocator) {
    let persistence = table.persistence();
    let is_unlogged = persistence == pg_sys::RELPERSISTENCE_UNLOGGED as std::ffi::c_char;
    // SAFETY: the table is open; both storage handles stay open until the target's is closed below.
    unsafe {
        let source = RelationGetSmgr(table);
        pg_sys::FlushRelationBuffers(table.as_ptr());
        let target = pg_sys::RelationCreateStorage(*locator, persistence, true);
        pg_sys::RelationCopyStorage(source, target, MAIN, persistence);
        for fork in MAIN + 1..=pg_sys::ForkNumber::INIT_FORKNUM {
            if pg_sys::smgrexists(source, fork) {
                pg_sys::smgrcreate(target, fork, false);
                let is_init = fork == pg_sys::ForkNumber::INIT_FORKNUM;
                if table.is_permanent() || (is_unlogged && is_init) {
                    log_smgrcreate(locator, fork);
                }
                pg_sys::RelationCopyStorage(source, target, fork, persistence);
            }
        }
        pg_sys::RelationDropStorage(table.as_ptr());
        pg_sys::smgrclose(target);
    }
}

/// Creates an empty file at `locator`. An unlogged table gets an empty init fork as well, which replaces the main fork
/// after a crash.
pub fn create_file(locator: &RelFileLocator, persistence: std::ffi::c_char) {
    const INIT: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::INIT_FORKNUM;
    // SAFETY: the storage handle is open until it is closed below; an ERROR makes the abort remove the file.
    unsafe {
        let smgr = pg_sys::RelationCreateStorage(*locator, persistence, true);
        if persistence == pg_sys::RELPERSISTENCE_UNLOGGED as std::ffi::c_char {
            pg_sys::smgrcreate(smgr, INIT, false);
            log_smgrcreate(locator, INIT);
            pg_sys::smgrimmedsync(smgr, INIT);
        }
        pg_sys::smgrclose(smgr);
    }
}

unsafe extern "C-unwind" {
    #[link_name = "log_smgrcreate"]
    fn log_create(locator: *const RelFileLocator, fork: pg_sys::ForkNumber::Type);
}

/// WAL-logs the creation of a fork's file, which the caller has made.
fn log_smgrcreate(locator: &RelFileLocator, fork: pg_sys::ForkNumber::Type) {
    // SAFETY: the locator is live; the boundary turns an ERROR into a panic.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| log_create(locator, fork)) }
}

/// nbtxlog.h; the same in every supported version.
const XLOG_BTREE_REUSE_PAGE: u8 = 0xD0;

/// Makes every standby cancel queries whose snapshot still needs what transactions up to `horizon` removed or
/// froze. Core writes such a record when a B-tree page is recycled; its replay touches no page, only conflicts,
/// which is exactly what a VACUUM of ours must announce and cannot by generic WAL records. The table is WAL-logged, and
/// `horizon` is a normal transaction id.
pub fn log_snapshot_conflict(table: OpenTable<'_>, horizon: u32) {
    // SAFETY: the record lives on this stack until XLogInsert has copied it.
    unsafe {
        let next = pg_sys::ReadNextFullTransactionId();
        let age = (next.value as u32).wrapping_sub(horizon) as u64;
        // xl_btree_reuse_page: locator, block, full transaction id and, from version 16 on, whether it is a catalogue.
        let mut record = Vec::with_capacity(32);
        let (space, database, file) = table.locator();
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

/// Whether a rule rewrites an INSERT into a table.
pub fn has_insert_rule(table: OpenTable<'_>) -> bool {
    // SAFETY: the rules of an open table live as long as its entry; a lock lists so many of them.
    unsafe {
        let rules = (*table.as_ptr()).rd_rules;
        !rules.is_null()
            && std::slice::from_raw_parts((*rules).rules, (*rules).numLocks as usize)
                .iter()
                .any(|rule| (**rule).event == pg_sys::CmdType::CMD_INSERT)
    }
}
