//! Statistics that ANALYZE and the planner know of a table, and the counters of its use.

use pgrx::pg_sys;

use super::TupleDescAttr;

/// `vac_update_relstats` for a table without multixacts or an all-visible map.
///
/// # Safety
/// `relation` is an open table that this VACUUM holds.
pub unsafe fn update_relation_stats(
    relation: pg_sys::Relation,
    blocks: u32,
    rows: f64,
    frozen: u32,
    has_indexes: bool,
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
            has_indexes,
            frozen.into(),
            multi,
            &mut frozen_updated,
            &mut multi_updated,
            false,
        );
    }
}

/// `vac_update_relstats` for an index.
///
/// # Safety
/// `index` is open, and its table's VACUUM holds it.
pub unsafe fn update_index_stats(index: pg_sys::Relation, blocks: u32, entries: f64) {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::vac_update_relstats(
            index,
            blocks,
            entries,
            0,
            #[cfg(feature = "pg18")]
            0,
            false,
            pg_sys::InvalidTransactionId,
            0.into(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            false,
        );
    }
}

/// How many rows ANALYZE wants of a table, by the column that wants most: `std_typanalyze` asks for so many for each
/// entry of the lists that it makes.
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

/// `pgstat_count_buffer_read` and `pgstat_count_buffer_hit`, for several blocks.
///
/// # Safety
/// `relation` is open.
pub unsafe fn pgstat_count_buffer_hits(relation: pg_sys::Relation, blocks: i64) {
    // SAFETY: the caller's promise; the counters belong to this backend.
    unsafe {
        if (*relation).pgstat_info.is_null() && (*relation).pgstat_enabled {
            pg_sys::pgstat_assoc_relation(relation);
        }
        if let Some(info) = (*relation).pgstat_info.as_mut() {
            #[cfg(feature = "pg15")]
            {
                info.t_counts.t_blocks_fetched += blocks;
                info.t_counts.t_blocks_hit += blocks;
            }
            #[cfg(not(feature = "pg15"))]
            {
                info.counts.blocks_fetched += blocks;
                info.counts.blocks_hit += blocks;
            }
        }
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
