//! VACUUM: freezes runs that everybody sees, marks those dead that nobody sees, and frees their blocks.
//!
//! 1. Plan, without changes. A run whose transaction committed before every snapshot is frozen; one
//!    whose transaction aborted is dead. A deletion that committed before every snapshot is frozen.
//!    Locks that have ended and deletions that aborted are void. A frozen run is dead if all its rows
//!    have frozen deletions, which are then void. A part is settled if every scan in progress began
//!    after it was added: the runs and parts that it covers are dead.
//! 2. Announce the newest transaction that is affected, so that standbys cancel queries that may still
//!    need the old state.
//! 3. Set the flags of runs, a page at a time, then in the arena. Entries never move, so scans in
//!    progress continue.
//! 4. Raise the generation, so that other caches (a standby's arena, other backends' tombstones) are
//!    read anew. Only then void and freeze tombstones, and raise the generation again: a reader that
//!    sees a tombstone voided because its row is dead must already see the run as dead. A reader that
//!    read the metapage before the first raise, and tombstones after it, finds the generation changed
//!    and starts over ([`crate::table::reader`]). Parts are changed last, in the order of their chain,
//!    because a part that covers others must not disappear before they do. Ending early between any
//!    two steps does no harm.
//! 5. Unlink pages that say nothing any more from all chains.
//! 6. Sweep blocks that nothing names into the free extents.
//! 7. Drop rows that are older than the table retains, and seal: see [`crate::maintenance::upkeep`].
//! 8. Remove the index entries of rows that are gone.
//! 9. Move parts from the end of the file to free blocks before them, and cut off the free end, if that
//!    is worth it and allowed: see [`relocate`] and [`shorten`].
//! 10. [Report](super::vacuum_report) relfrozenxid, which is the oldest transaction id that is not
//!     frozen, statistics, and VERBOSE.
//!
//! `pg_stat_progress_vacuum` names step 1 `scanning heap`, steps 2 to 6 `vacuuming heap`, 7 and 10
//! `performing final cleanup`, 8 `vacuuming indexes` and 9 `truncating heap`.

use lanes_columnar::arena::{Position, RunEntry};
use pgrx::{PgLogLevel, PgSqlErrorCode, ereport};

use super::shorten::{self, Effort};
use super::{relocate, seal, upkeep};
use crate::pg::index::VacuumedIndexes;
use crate::pg::page::{LockedPage, PageChange};
use crate::pg::ports;
use crate::pg::progress::{VacuumPhase, VacuumProgress};
use crate::pg::table::OpenTable;
use crate::storage::chain::Chain;
use crate::storage::directory::{self, FLAG_DEAD, FLAG_FROZEN};
use crate::storage::metapage::Meta;
use crate::storage::part::{self, Parts};
use crate::storage::tombstone;
use crate::storage::{reclaim, unlink};
use crate::table::fate;
use crate::table::generation::{self, Arena};
use crate::table::runs::Runs;
use crate::table::shape::TableShape;
use crate::table::visibility::xid_precedes;

use super::vacuum_report::{Audience, Report};

mod plan;

use plan::Plan;

/// `relation_vacuum`. With `effort`, the file may be shortened. `cleans_indexes`: index entries of
/// rows that are gone are removed.
pub fn vacuum(
    table: OpenTable<'_>,
    audience: Audience,
    effort: Option<Effort>,
    cleans_indexes: bool,
) {
    let horizon = table.oldest_non_removable_xid();
    let mut report = Report::begin(table, audience, horizon);
    let blocks = table.blocks();
    let progress = VacuumProgress::begin(table.oid(), blocks);
    let mut unlinked = Vec::new();
    if let Some(meta) = Meta::load(table) {
        let plan = Plan::of(table, &meta, horizon);
        progress.scanned(blocks);
        progress.enter(VacuumPhase::Vacuuming);
        report.rows_live = plan.rows_live;
        report.rows_dead = plan.rows_dead;
        if let Some(oldest) = plan
            .oldest_left
            .filter(|oldest| xid_precedes(*oldest, horizon))
        {
            report.frozen = oldest;
        }
        if !plan.is_empty() {
            apply(table, &meta, &plan);
        }
        unlinked = unlink_dead_pages(table, &meta);
        if let Some(meta) = Meta::load(table) {
            reclaim::sweep(table, &meta, &unlinked);
        }
    }
    progress.vacuumed(blocks);
    progress.enter(VacuumPhase::FinalCleanup);
    // Sealing comes after the sweep, so that it finds the freed space, and a failure of it keeps
    // nothing from being frozen.
    report.sealed = upkeep::seal(table, false);
    progress.enter(VacuumPhase::Indexes);
    let indexes = VacuumedIndexes::open(table);
    report.has_indexes = !indexes.is_empty();
    if report.has_indexes && cleans_indexes {
        // Entry numbers are never given to other rows, so index entries may be removed at any time.
        let is_gone = fate::gone_entries(table, horizon);
        report.entries_removed = indexes.clean(report.rows_live, is_gone);
        progress.cleaned_indexes();
    }
    drop(indexes);
    progress.enter(VacuumPhase::Truncating);
    let mut is_changed = report.sealed.parts > 0;
    if let Some(effort) = effort {
        is_changed |= relocate::move_down(table, &unlinked, effort);
    }
    if is_changed {
        seal::let_settle();
    }
    if let Some(effort) = effort {
        shorten::shorten(table, &unlinked, effort);
    }
    progress.enter(VacuumPhase::FinalCleanup);
    report.send(table);
}

/// `VACUUM (PARALLEL n)`: warns where PostgreSQL warns that it takes no workers, of a temporary table
/// with several indexes. Workers never vacuum the indexes of a lanes table, which PostgreSQL may decide
/// without a warning.
pub fn warn_of_workers(table: OpenTable<'_>) {
    if table.uses_local_buffers() && VacuumedIndexes::open(table).count() > 1 {
        ereport!(
            PgLogLevel::WARNING,
            PgSqlErrorCode::ERRCODE_WARNING,
            format!(
                "disabling parallel option of vacuum on \"{}\" --- cannot vacuum temporary tables in parallel",
                table.name()
            )
        );
    }
}

/// Carries out a plan, in the order that the head of this file gives.
fn apply(table: OpenTable<'_>, meta: &Meta, plan: &Plan) {
    if let Some(newest) = plan.newest_touched
        && table.needs_wal()
    {
        table.log_snapshot_conflict(newest);
    }
    apply_runs(table, meta, plan);
    generation::raise(table, Arena::Follows);
    apply_tombstones(table, plan);
    apply_parts(table, plan);
    generation::raise(table, Arena::Follows);
}

/// Changes directory entries, in pages and then in the arena. The arena gets all flags that are in
/// a page, not only today's changes, because a VACUUM that was cancelled may have missed some.
fn apply_runs(table: OpenTable<'_>, meta: &Meta, plan: &Plan) {
    for (block, changes) in &plan.runs {
        let page = LockedPage::exclusive(table, *block);
        let mut change = PageChange::begin(table);
        let bytes = change.edit(&page);
        for (index, _, flags) in changes {
            directory::set_flags(bytes, *index, *flags);
        }
        change.finish();
        drop(page);
        ports::CHECK_FOR_INTERRUPTS();
    }
    let runs = Runs::of(table, meta, TableShape::of(table.descriptor()).fingerprint);
    let Some(cached) = runs.cached() else { return };
    let (mut index, count) = (0u32, cached.runs());
    let head = Position { block: 0, index: 0 };
    let parts = Parts::of(table, meta);
    directory::walk(table, meta.directory_head, head, |_, entries, _| {
        let listed = |run: &&RunEntry| parts.of_row(run.first_row).is_none();
        for run in entries.iter().filter(listed) {
            // Runs are found by row and not by number, because the arena may know runs whose pages
            // were unlinked.
            while index < count && cached.run(index).first_row < run.first_row {
                index += 1;
            }
            if index < count && cached.run(index).first_row == run.first_row {
                cached.set_flags(index, run.flags & (FLAG_DEAD | FLAG_FROZEN));
            }
        }
        index < count
    });
}

fn apply_tombstones(table: OpenTable<'_>, plan: &Plan) {
    for (block, changes) in &plan.tombstones {
        let page = LockedPage::exclusive(table, *block);
        let mut change = PageChange::begin(table);
        let bytes = change.edit(&page);
        for (index, tombstone) in changes {
            tombstone::set_entry(bytes, *index, tombstone);
        }
        change.finish();
        drop(page);
        ports::CHECK_FOR_INTERRUPTS();
    }
}

fn apply_parts(table: OpenTable<'_>, plan: &Plan) {
    for (block, changes) in &plan.parts {
        let page = LockedPage::exclusive(table, *block);
        let mut change = PageChange::begin(table);
        let bytes = change.edit(&page);
        for (index, entry) in changes {
            part::set_entry(bytes, *index, entry);
        }
        change.finish();
        drop(page);
        ports::CHECK_FOR_INTERRUPTS();
    }
}

/// Unlinks pages that say nothing any more from all chains.
fn unlink_dead_pages(table: OpenTable<'_>, meta: &Meta) -> Vec<u32> {
    let mut unlinked = unlink::unlink_dead_pages(table, meta, Chain::Tombstones);
    unlinked.extend(unlink::unlink_dead_pages(table, meta, Chain::Parts));
    if !unlinked.is_empty() {
        generation::raise(table, Arena::Follows);
    }
    let directory = unlink::unlink_dead_pages(table, meta, Chain::Directory);
    if !directory.is_empty() {
        generation::raise(table, Arena::StartsOver);
    }
    unlinked.extend(directory);
    unlinked
}
