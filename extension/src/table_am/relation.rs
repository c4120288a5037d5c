//! Lanes tables as a whole: creation, truncation, copies and sizes of files, and what else statements do to them.

use pgrx::pg_sys;

use super::routine::LanesTable;
use super::{refuse, rewrite};
use crate::maintenance::shorten::Effort;
use crate::maintenance::vacuum;
use crate::maintenance::vacuum_report::Audience;
use crate::pg::access::{CopyCounts, Estimate, OldestIds, RelationAccess};
use crate::pg::cluster_sort::{ClusterIndex, ClusterSort};
use crate::pg::table::OpenTable;
use crate::pg::table_work::create_file;
use crate::pg::{index_columns, ports, shmem, transaction};
use crate::storage::metapage::Meta;
use crate::storage::{directory, tombstone};
use crate::table::{kept, tid};

impl RelationAccess for LanesTable {
    /// An empty file. A file without blocks is an empty table, and so is the init fork of an unlogged table, which
    /// replaces the main fork after a crash.
    fn set_new_file(
        table: OpenTable<'_>,
        locator: &ports::RelFileLocator,
        persistence: std::ffi::c_char,
    ) -> OldestIds {
        let oldest = OldestIds {
            transaction: transaction::recent_xmin(),
            multixact: transaction::oldest_multixact(),
        };
        create_file(locator, persistence);
        forget(table);
        oldest
    }

    /// This transaction made the file, so nobody else can see it shrink.
    fn truncate(table: OpenTable<'_>) {
        table.truncate(0);
        forget(table);
    }

    /// All forks, as ALTER TABLE … SET TABLESPACE asks.
    fn copy_data(table: OpenTable<'_>, locator: &ports::RelFileLocator) {
        table.copy_forks_to(locator);
        forget(table);
    }

    fn copy_rows(
        source: OpenTable<'_>,
        target: OpenTable<'_>,
        order: Option<ClusterIndex<'_>>,
        horizon: u32,
    ) -> CopyCounts {
        let sort =
            order.map(|index| ClusterSort::begin(index).unwrap_or_else(|| refuse::clustering()));
        rewrite::copy(source, target, sort, horizon)
    }

    fn vacuum(table: OpenTable<'_>, parameters: &pg_sys::VacuumParams) {
        // Core has read the table's parameter by now where the statement does not decide.
        let keeps_length = parameters.truncate == pg_sys::VacOptValue::VACOPTVALUE_DISABLED;
        let effort = (!keeps_length).then_some(Effort::VACUUM);
        let cleans_indexes = parameters.index_cleanup != pg_sys::VacOptValue::VACOPTVALUE_DISABLED;
        if parameters.nworkers > 0 && cleans_indexes {
            vacuum::warn_of_workers(table);
        }
        vacuum::vacuum(table, Audience::of(parameters), effort, cleans_indexes);
    }

    fn size(table: OpenTable<'_>, fork: pg_sys::ForkNumber::Type) -> u64 {
        size(table, fork)
    }

    fn estimate(table: OpenTable<'_>) -> Estimate {
        estimate(table)
    }

    fn refuse_toast() -> ! {
        refuse::toast()
    }
}

/// Evicts what the arena caches of the table's file.
fn forget(table: OpenTable<'_>) {
    kept::forget();
    if let Some(arena) = shmem::arena() {
        arena.purge(table.locator());
    }
}

/// The bytes of a fork.
///
/// BRIN indexes summarise ranges of the blocks that tuple ids name, and take it that the table has as many blocks
/// as its size says. So a table with such an index counts these blocks, whatever its file takes.
fn size(table: OpenTable<'_>, fork: pg_sys::ForkNumber::Type) -> u64 {
    if fork != pg_sys::ForkNumber::MAIN_FORKNUM || !index_columns::has_block_ranges(table) {
        return table.fork_bytes(fork);
    }
    directory::next_row(table).div_ceil(tid::BLOCK_ROWS) * u64::from(pg_sys::BLCKSZ)
}

/// The bytes of a heap page that rows may take, and the bytes that heap stores with each row.
const HEAP_PAGE_BYTES: usize = 8168;
const HEAP_ROW_BYTES: usize = 28;
/// The pages that PostgreSQL assumes of a table that was neither vacuumed nor analysed: it may grow soon.
const UNKNOWN_PAGES: f64 = 10.0;

/// The pages and rows that the planner assumes.
///
/// The rows follow from the density that the last VACUUM or ANALYZE found. If neither has run, they are all rows that
/// were ever appended, but a small table is assumed to have ten full pages, as PostgreSQL assumes of heap tables.
///
/// The file of a small table does not grow with each row that is appended. If nothing was deleted from it since it was
/// vacuumed, the pages that all appended rows would take in a heap table count instead of its blocks.
///
/// The pages are those that the rows would take in a heap table. PostgreSQL's costs of a page include the work for its
/// rows, and rows must be decoded whichever bytes they take.
///
/// An index-only scan of a lanes table never reads a page of it. As in heap, the planner counts on that for the part of
/// the file that VACUUM has seen: rows that were written since are many short runs, which take longer to find.
fn estimate(table: OpenTable<'_>) -> Estimate {
    let blocks = table.counted_blocks();
    let (known_pages, known_rows) = table.catalogued_size();
    let width = table.data_width();
    let heap_pages = |rows: f64| {
        let row = width.next_multiple_of(8) + HEAP_ROW_BYTES;
        (rows / (HEAP_PAGE_BYTES / row).max(1) as f64).ceil()
    };
    let appended = || directory::next_row(table) as f64;
    let (pages, rows) = if known_pages > 0 && known_rows >= 0.0 {
        let known_rows = f64::from(known_rows);
        let is_small = known_rows >= 1.0 && heap_pages(appended()) < UNKNOWN_PAGES;
        let growth = match is_small && tombstone::is_empty(table) {
            true => heap_pages(appended()) / heap_pages(known_rows),
            false => f64::from(blocks) / f64::from(known_pages),
        };
        let rows = (known_rows * growth).round();
        (heap_pages(rows), rows)
    } else {
        let rows = appended();
        let is_unknown = known_rows < 0.0 && heap_pages(rows) < UNKNOWN_PAGES;
        let pages = match is_unknown && !table.has_children() {
            true => UNKNOWN_PAGES,
            false => heap_pages(rows),
        };
        let full = (HEAP_PAGE_BYTES / (width + HEAP_ROW_BYTES)) as f64 * pages;
        (pages, if is_unknown { rows.max(full) } else { rows })
    };
    Estimate {
        pages: pages.min(f64::from(u32::MAX - 1)) as u32,
        rows,
        all_visible: Meta::load(table).map_or(0.0, |meta| {
            f64::from(meta.vacuumed_blocks.min(blocks)) / f64::from(blocks.max(1))
        }),
    }
}
