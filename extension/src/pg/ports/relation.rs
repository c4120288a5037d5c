//! Relations: their file, name, persistence and privileges.

use pgrx::pg_sys;

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

/// Whether the WAL contains what logical decoding needs.
pub fn XLogLogicalInfoActive() -> bool {
    // SAFETY: a setting that changes only at a restart.
    unsafe { pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_LOGICAL as i32 }
}

/// The relation's name, for messages.
///
/// # Safety
/// `relation` is an open relation.
pub unsafe fn RelationGetRelationName(relation: pg_sys::Relation) -> String {
    // SAFETY: the caller's promise; relname is a NUL-terminated NameData.
    unsafe {
        let name = (*(*relation).rd_rel).relname.data.as_ptr();
        std::ffi::CStr::from_ptr(name)
            .to_string_lossy()
            .into_owned()
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
