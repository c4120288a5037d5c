//! Files of a relation: creation, truncation, copies, sizes.

use pgrx::pg_sys;

use crate::pg::page::LockedPage;
use crate::pg::{ports, shmem};
use crate::storage::directory::DirectoryPage;
use crate::storage::metapage::Meta;

/// `relation_set_new_filelocator`: a fresh, empty file. A file of no blocks is an empty table, so the init fork of an
/// UNLOGGED table, which replaces the main fork after a crash, is empty too.
///
/// # Safety
/// The table access method's contract for this callback.
pub unsafe fn set_new_file(
    relation: pg_sys::Relation,
    locator: &ports::RelFileLocator,
    persistence: std::ffi::c_char,
    freeze: *mut pg_sys::TransactionId,
    freeze_multi: *mut pg_sys::MultiXactId,
) {
    // SAFETY: the caller's promise.
    unsafe {
        *freeze = pg_sys::RecentXmin;
        *freeze_multi = pg_sys::GetOldestMultiXactId();
        let smgr = pg_sys::RelationCreateStorage(*locator, persistence, true);
        if persistence == pg_sys::RELPERSISTENCE_UNLOGGED as std::ffi::c_char {
            pg_sys::smgrcreate(smgr, pg_sys::ForkNumber::INIT_FORKNUM, false);
            ports::log_smgrcreate(locator, pg_sys::ForkNumber::INIT_FORKNUM);
            pg_sys::smgrimmedsync(smgr, pg_sys::ForkNumber::INIT_FORKNUM);
        }
        pg_sys::smgrclose(smgr);
        forget(relation);
    }
}

/// `relation_nontransactional_truncate`: the file was made by this transaction, so nobody else can see it shrink.
///
/// # Safety
/// `relation` is an exclusively locked lanes table.
pub unsafe fn truncate(relation: pg_sys::Relation) {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::RelationTruncate(relation, 0);
        forget(relation);
    }
}

/// `relation_copy_data`: all forks to another place (ALTER TABLE … SET TABLESPACE).
///
/// # Safety
/// `relation` is an exclusively locked lanes table.
pub unsafe fn copy_data(relation: pg_sys::Relation, locator: &ports::RelFileLocator) {
    // SAFETY: the caller's promise.
    unsafe {
        let persistence = (*(*relation).rd_rel).relpersistence;
        let source = ports::RelationGetSmgr(relation);
        pg_sys::FlushRelationBuffers(relation);
        let target = pg_sys::RelationCreateStorage(*locator, persistence, true);
        pg_sys::RelationCopyStorage(
            source,
            target,
            pg_sys::ForkNumber::MAIN_FORKNUM,
            persistence,
        );
        for fork in pg_sys::ForkNumber::MAIN_FORKNUM + 1..=pg_sys::ForkNumber::INIT_FORKNUM {
            if pg_sys::smgrexists(source, fork) {
                pg_sys::smgrcreate(target, fork, false);
                let unlogged_init = persistence
                    == pg_sys::RELPERSISTENCE_UNLOGGED as std::ffi::c_char
                    && fork == pg_sys::ForkNumber::INIT_FORKNUM;
                if persistence == pg_sys::RELPERSISTENCE_PERMANENT as std::ffi::c_char
                    || unlogged_init
                {
                    ports::log_smgrcreate(locator, fork);
                }
                pg_sys::RelationCopyStorage(source, target, fork, persistence);
            }
        }
        pg_sys::RelationDropStorage(relation);
        pg_sys::smgrclose(target);
        forget(relation);
    }
}

/// Drops what the arena caches of the relation's file. Always allowed: it is a cache.
///
/// # Safety
/// `relation` is open.
pub unsafe fn forget(relation: pg_sys::Relation) {
    if let Some(arena) = shmem::arena() {
        // SAFETY: the caller's promise.
        arena.purge(ports::locator_parts(&unsafe {
            ports::relation_locator(relation)
        }));
    }
}

/// `relation_estimate_size`: what the planner believes. Rows by the density that the last VACUUM or ANALYZE found, or
/// all rows ever appended when neither has run.
///
/// # Safety
/// `relation` is an open lanes table; the pointers are the planner's.
pub unsafe fn estimate(
    relation: pg_sys::Relation,
    pages: *mut pg_sys::BlockNumber,
    tuples: *mut f64,
    all_visible_fraction: *mut f64,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let blocks = crate::storage::metapage::blocks(relation);
        let (known_pages, known_tuples) = (
            (*(*relation).rd_rel).relpages,
            (*(*relation).rd_rel).reltuples,
        );
        *pages = blocks;
        // Index-only scans may not skip the visibility check.
        *all_visible_fraction = 0.0;
        *tuples = if known_pages > 0 && known_tuples >= 0.0 {
            (known_tuples as f64 / known_pages as f64 * blocks as f64).round()
        } else {
            next_row(relation) as f64
        };
    }
}

/// The number of the next row to be appended, from the last directory page.
///
/// # Safety
/// `relation` is an open lanes table.
pub unsafe fn next_row(relation: pg_sys::Relation) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(meta) = Meta::load(relation) else {
            return 0;
        };
        let mut block = meta.directory_tail;
        loop {
            let page = LockedPage::share(relation, block);
            let view = DirectoryPage::parse(page.bytes());
            match view.next() {
                Some(next) => block = next,
                None => return view.next_row(),
            }
        }
    }
}
