//! Files of a table: creation, truncation, copies, sizes.

use crate::pg::table::OpenTable;
use crate::pg::table_work::create_file;
use crate::pg::{ports, shmem};
use crate::storage::directory;
use crate::table::kept;

/// `relation_set_new_filelocator`: an empty file. A file without blocks is an empty table, and so is the init fork of an
/// unlogged table, which replaces the main fork after a crash.
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

/// `relation_estimate_size`: the pages and rows that the planner assumes. The rows follow from the density that the last
/// VACUUM or ANALYZE found; if neither has run, they are all rows that were ever appended.
pub fn estimate(table: OpenTable<'_>) -> (u32, f64) {
    let blocks = table.blocks();
    let (known_pages, known_rows) = table.catalogued_size();
    let rows = if known_pages > 0 && known_rows >= 0.0 {
        (known_rows as f64 / known_pages as f64 * blocks as f64).round()
    } else {
        directory::next_row(table) as f64
    };
    (blocks, rows)
}
