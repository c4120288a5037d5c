//! Files of a table: creation, truncation, copies, sizes.

use pgrx::pg_sys;

use crate::pg::table::OpenTable;
use crate::pg::table_work::create_file;
use crate::pg::{index_columns, ports, shmem};
use crate::storage::metapage::Meta;
use crate::storage::{directory, tombstone};
use crate::table::{kept, tid};

/// `relation_set_new_filelocator`: an empty file. A file without blocks is an empty table, and so
/// is the init fork of an unlogged table, which replaces the main fork after a crash.
pub fn set_new_file(
    table: OpenTable<'_>,
    locator: &ports::RelFileLocator,
    persistence: std::ffi::c_char,
) {
    create_file(locator, persistence);
    forget(table);
}

/// `relation_nontransactional_truncate`: this transaction made the file, so nobody else can see it shrink.
pub fn truncate(table: OpenTable<'_>) {
    table.truncate(0);
    forget(table);
}

/// `relation_copy_data`: copies all forks to another place, as ALTER TABLE … SET TABLESPACE does.
pub fn copy_data(table: OpenTable<'_>, locator: &ports::RelFileLocator) {
    table.copy_forks_to(locator);
    forget(table);
}

/// Evicts what the arena caches of the table's file.
pub fn forget(table: OpenTable<'_>) {
    kept::forget();
    if let Some(arena) = shmem::arena() {
        arena.purge(table.locator());
    }
}

/// `relation_size`: the bytes of a fork.
///
/// BRIN indexes summarise ranges of the blocks that tuple ids name, and take it that the table has as many blocks
/// as its size says. So a table with such an index counts these blocks, whatever its file takes.
pub fn size(table: OpenTable<'_>, fork: pg_sys::ForkNumber::Type) -> u64 {
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

/// The planner's assumptions about a table.
pub struct Estimate {
    pub pages: u32,
    pub rows: f64,
    /// The share of pages that an index-only scan does not read.
    pub all_visible: f64,
}

/// `relation_estimate_size`: the pages and rows that the planner assumes.
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
pub fn estimate(table: OpenTable<'_>) -> Estimate {
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
