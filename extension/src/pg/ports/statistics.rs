//! Statistics that ANALYZE and the planner know of a table, and the counters of its use.

use pgrx::pg_sys;

#[cfg(not(any(feature = "pg15", feature = "pg16")))]
use crate::pg::catalog_rows::cached;
use crate::pg::descriptor::Attribute;
use crate::pg::functions::process;
use crate::pg::table::OpenTable;

/// `vac_update_relstats` for a table without multixacts or an all-visible map.
pub fn update_relation_stats(
    table: OpenTable<'_>,
    blocks: u32,
    rows: f64,
    frozen: u32,
    has_indexes: bool,
) {
    let relation = table.as_ptr();
    // SAFETY: the table is open.
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
pub fn update_index_stats(index: OpenTable<'_>, blocks: u32, entries: f64) {
    let index = index.as_ptr();
    // SAFETY: the index is open. PostgreSQL writes to the places that would tell of new frozen ids only if they are not
    // null.
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
pub fn statistics_rows(table: OpenTable<'_>) -> u64 {
    const ROWS_EACH: u64 = 300;
    let attributes = table.descriptor().attributes();
    let targets = attributes.map(|attribute| {
        let own = match attribute.attisdropped {
            true => Some(0),
            false => own_statistics_target(table.oid(), attribute),
        };
        own.unwrap_or_else(|| process::default_statistics_target().into())
    });
    targets.max().unwrap_or_default().max(1) as u64 * ROWS_EACH
}

/// The statistics target that was set for an attribute.
#[cfg(any(feature = "pg15", feature = "pg16"))]
fn own_statistics_target(_relation: pg_sys::Oid, attribute: &Attribute) -> Option<i64> {
    let target = i64::from(attribute.attstattarget);
    (target >= 0).then_some(target)
}

/// The statistics target that was set for an attribute.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
fn own_statistics_target(relation: pg_sys::Oid, attribute: &Attribute) -> Option<i64> {
    let cache = pg_sys::SysCacheIdentifier::ATTNUM;
    let column = pg_sys::Anum_pg_attribute_attstattarget as i16;
    let key = [relation.into(), attribute.attnum.into()];
    let target = cached(cache, key, |row| row.value(column)).flatten();
    target.map(|target| i64::from(target.value() as i16))
}

/// Counts a scan that begins, for `pg_stat_*_tables`.
pub fn pgstat_count_heap_scan(table: OpenTable<'_>) {
    let relation = table.as_ptr();
    // SAFETY: the table is open; the counters belong to this process.
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
pub fn pgstat_count_heap_rows(table: OpenTable<'_>, rows: i64) {
    let relation = table.as_ptr();
    // SAFETY: the table is open; the counters belong to this process.
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

/// What `ReadBuffer` counts of blocks that are found in memory: for `pg_statio_*_tables`, as `pgstat_count_buffer_read`
/// and `pgstat_count_buffer_hit` do, and for the statement, of which EXPLAIN (BUFFERS) and `pg_stat_statements` tell.
/// The arena holds no temporary tables, whose blocks count apart.
pub fn count_buffer_hits(table: OpenTable<'_>, blocks: i64) {
    let relation = table.as_ptr();
    // SAFETY: the table is open; the counters belong to this process.
    unsafe {
        pg_sys::pgBufferUsage.shared_blks_hit += blocks;
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
pub fn pgstat_report_vacuum(table: OpenTable<'_>, rows_live: u64) {
    let relation = table.as_ptr();
    // SAFETY: the table is open.
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
pub fn pgstat_count_heap_update(table: OpenTable<'_>) {
    let relation = table.as_ptr();
    // SAFETY: the table is open.
    unsafe {
        pg_sys::pgstat_count_heap_update(
            relation,
            false,
            #[cfg(not(feature = "pg15"))]
            false,
        );
    }
}

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
