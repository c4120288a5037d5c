//! What statements do to a table as a whole, as a trait.

use pgrx::pg_sys;

use crate::pg::cluster_sort::ClusterIndex;
use crate::pg::ports::RelFileLocator;
use crate::pg::table::OpenTable;

/// Tables as a whole: files, sizes, maintenance.
pub trait RelationAccess: 'static {
    /// Makes an empty file for the table.
    fn set_new_file(
        table: OpenTable<'_>,
        locator: &RelFileLocator,
        persistence: std::ffi::c_char,
    ) -> OldestIds;

    /// Empties the file of a table that is locked exclusively, and that this transaction made.
    fn truncate(table: OpenTable<'_>);

    /// Copies the files of a table that is locked exclusively to another place.
    fn copy_data(table: OpenTable<'_>, locator: &RelFileLocator);

    /// Copies the rows of a table to another of the same row type, in the order of an index if there is one. Both are
    /// locked exclusively. Nobody sees what was deleted before `horizon`.
    fn copy_rows(
        source: OpenTable<'_>,
        target: OpenTable<'_>,
        order: Option<ClusterIndex<'_>>,
        horizon: u32,
    ) -> CopyCounts;

    /// Runs a VACUUM of a table that is locked in ShareUpdateExclusive mode.
    fn vacuum(table: OpenTable<'_>, parameters: &pg_sys::VacuumParams);

    /// The bytes of a fork.
    fn size(table: OpenTable<'_>, fork: pg_sys::ForkNumber::Type) -> u64;

    /// Estimates a table's size for the planner.
    fn estimate(table: OpenTable<'_>) -> Estimate;

    /// Refuses TOAST tables.
    fn refuse_toast() -> !;
}

/// The oldest ids that a new file may contain.
pub struct OldestIds {
    pub transaction: pg_sys::TransactionId,
    pub multixact: pg_sys::MultiXactId,
}

/// The number of rows that were kept, and dropped.
#[derive(Default)]
pub struct CopyCounts {
    pub kept: f64,
    pub removed: f64,
    /// The rows among `kept` whose deletion some snapshot may not see. They are copied together with it.
    pub recently_dead: f64,
}

/// An estimate of a table's size for the planner.
pub struct Estimate {
    pub pages: u32,
    pub rows: f64,
    /// The share of pages that an index-only scan does not read.
    pub all_visible: f64,
}
