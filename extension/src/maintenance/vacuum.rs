//! VACUUM: freezes what everybody sees, marks dead what nobody sees, gives its blocks back.
//!
//! 1. Plan, reading only. A run whose transaction committed before every snapshot is frozen; one whose transaction
//!    aborted is dead. A deletion that committed before every snapshot is frozen; locks that are over and deletions
//!    that aborted are void. A frozen run all of whose rows have frozen deletions is dead, and those deletions void.
//!    Parts that every scan under way has begun after are settled: the runs and parts that they cover are dead.
//! 2. Announce the newest transaction that this touches, so that standbys cancel queries that might still need the
//!    old state.
//! 3. Flag the runs, a page at a time, then in the arena. Entries never change their place: scans under way go on.
//! 4. Raise the generation, so that caches elsewhere (a standby's arena, other backends' tombstones) read anew. Only now
//!    void and freeze tombstones, and raise it again: whoever reads a tombstone that was voided because its row is dead
//!    must already see the run as dead. A reader that read the metapage before the first raise and tombstones after it
//!    finds the generation changed and starts over ([`crate::table::reader`]). Parts come last, in the order of their chain: one
//!    that covers others must not be gone before they are. Ending early between any two steps is harmless.
//! 5. Link past pages of either chain that say nothing any more.
//! 6. Sweep the blocks that nothing names back into the free extents.
//! 7. Drop what is older than the table retains, and seal what is to be sealed: see [`crate::maintenance::upkeep`].
//! 8. Remove the index entries of rows that are gone.
//! 9. Move parts from the file's end to free blocks before them, and cut off a free end, if that is worth it and
//!    allowed: see [`relocate`] and [`shorten`].
//! 10. [Report](super::vacuum_report): relfrozenxid is the oldest transaction id that still stands unfrozen,
//!     statistics, VERBOSE.
//!
//! `pg_stat_progress_vacuum` names step 1 `scanning heap`, steps 2 to 6 `vacuuming heap`, 7 and 10 `performing final
//! cleanup`, 8 `vacuuming indexes` and 9 `truncating heap`.

use std::collections::HashMap;

use lanes_columnar::arena::{Position, RunEntry};

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
use crate::storage::part::{self, PartEntry, Parts};
use crate::storage::tombstone::{self, Tombstone, kind};
use crate::storage::{reclaim, unlink};
use crate::table::fate;
use crate::table::generation::{self, Arena};
use crate::table::runs::Runs;
use crate::table::shape::TableShape;
use crate::table::visibility::{XidStatus, xid_precedes, xid_status};

use super::vacuum_report::{Audience, Report};

/// (entry of its page, its number in the whole directory, new flags)
type RunChange = (usize, u32, u32);

/// What is to be changed, and what was found.
struct Plan {
    horizon: u32,
    /// By directory page.
    runs: Vec<(u32, Vec<RunChange>)>,
    /// By tombstone page: (entry, its new content).
    tombstones: Vec<(u32, Vec<(usize, Tombstone)>)>,
    /// By page of parts: (entry, its new content).
    parts: Vec<(u32, Vec<(usize, PartEntry)>)>,
    newest_touched: Option<u32>,
    oldest_left: Option<u32>,
    rows_live: u64,
    rows_dead: u64,
}

impl Plan {
    fn touch(&mut self, xid: u32) {
        if self
            .newest_touched
            .is_none_or(|newest| xid_precedes(newest, xid))
        {
            self.newest_touched = Some(xid);
        }
    }

    /// The same of a part, whose id is 0 once it is settled.
    fn touch_if_normal(&mut self, xid: u32) {
        if xid != 0 {
            self.touch(xid);
        }
    }

    fn leave(&mut self, xid: u32) {
        if self
            .oldest_left
            .is_none_or(|oldest| xid_precedes(xid, oldest))
        {
            self.oldest_left = Some(xid);
        }
    }
}

/// `relation_vacuum`. With `effort`, the file may be shortened; `cleans_indexes` says that index entries of rows that
/// are gone are removed.
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
        let plan = plan(table, &meta, horizon);
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
        if !plan.runs.is_empty() || !plan.tombstones.is_empty() || !plan.parts.is_empty() {
            if let Some(newest) = plan.newest_touched
                && table.needs_wal()
            {
                table.log_snapshot_conflict(newest);
            }
            apply_runs(table, &meta, &plan);
            generation::raise(table, Arena::Follows);
            apply_tombstones(table, &plan);
            apply_parts(table, &plan);
            generation::raise(table, Arena::Follows);
        }
        unlinked = unlink_dead_pages(table, &meta);
        if let Some(meta) = Meta::load(table) {
            reclaim::sweep(table, &meta, &unlinked);
        }
    }
    progress.vacuumed(blocks);
    progress.enter(VacuumPhase::FinalCleanup);
    // After that, so that it finds the space that was freed, and keeps nothing from being frozen if it fails.
    report.sealed = upkeep::seal(table, false);
    progress.enter(VacuumPhase::Indexes);
    let indexes = VacuumedIndexes::open(table);
    report.has_indexes = !indexes.is_empty();
    if report.has_indexes && cleans_indexes {
        // Entry numbers are never given to other rows, so nothing depends on when entries go.
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

fn plan(table: OpenTable<'_>, meta: &Meta, horizon: u32) -> Plan {
    let mut plan = Plan {
        horizon,
        runs: Vec::new(),
        tombstones: Vec::new(),
        parts: Vec::new(),
        newest_touched: None,
        oldest_left: None,
        rows_live: 0,
        rows_dead: 0,
    };
    {
        let parts = Parts::of(table, meta);
        let frozen_deletions = plan_tombstones(table, meta, &parts, &mut plan);
        plan_parts(table, meta, &parts, &frozen_deletions, &mut plan);
        let mut number = 0u32;
        directory::walk(
            table,
            meta.directory_head,
            Position { block: 0, index: 0 },
            |block, entries, _| {
                let mut changes = Vec::new();
                for (index, run) in entries.iter().enumerate() {
                    let flags = match parts.of_row(run.first_row) {
                        Some(part) => plan_covered_run(&mut plan, run, part),
                        None => {
                            let gone = rows_gone(&frozen_deletions, run.first_row, run.end_row());
                            plan_run(&mut plan, run, gone)
                        }
                    };
                    if flags != run.flags {
                        changes.push((index, number, flags));
                    }
                    number += 1;
                }
                if !changes.is_empty() {
                    plan.runs.push((block, changes));
                }
                true
            },
        );
        void_tombstones_of_dead_rows(&mut plan, table, meta, &parts);
    }
    plan
}

/// Rows with a frozen deletion, ascending.
type FrozenDeletions = Vec<u64>;

fn rows_gone(frozen_deletions: &FrozenDeletions, first_row: u64, end_row: u64) -> u64 {
    let from = frozen_deletions.partition_point(|row| *row < first_row);
    let to = frozen_deletions.partition_point(|row| *row < end_row);
    (to - from) as u64
}

/// Counts the rows of parts, and finds out what to settle.
fn plan_parts(
    table: OpenTable<'_>,
    meta: &Meta,
    parts: &Parts,
    frozen_deletions: &FrozenDeletions,
    plan: &mut Plan,
) {
    for part in parts.live() {
        let part = &part.entry;
        if part.is_fading() {
            plan.rows_dead += part.rows;
            continue;
        }
        let gone = rows_gone(frozen_deletions, part.first_row, part.end_row).min(part.rows);
        plan.rows_dead += gone;
        plan.rows_live += part.rows - gone;
    }
    part::walk(table, meta, |block, entries| {
        let mut changes = Vec::new();
        for (index, old) in entries.iter().enumerate() {
            let new = parts.settle(old, |xid| xid_precedes(xid, plan.horizon));
            if new != *old {
                plan.touch_if_normal(old.xid);
                changes.push((index, new));
            } else if old.xid != 0 {
                plan.leave(old.xid);
            }
        }
        if !changes.is_empty() {
            plan.parts.push((block, changes));
        }
    });
}

/// The flags that a run should have that a part covers: scans that began before the part may still read it.
fn plan_covered_run(plan: &mut Plan, run: &RunEntry, part: &PartEntry) -> u32 {
    if run.flags & FLAG_DEAD != 0 {
        return run.flags;
    }
    if part.xid == 0 || xid_precedes(part.xid, plan.horizon) {
        plan.touch_if_normal(part.xid);
        return run.flags | FLAG_DEAD;
    }
    let (live, dead) = (plan.rows_live, plan.rows_dead);
    let flags = plan_run(plan, run, 0);
    // Its rows were counted with the part.
    (plan.rows_live, plan.rows_dead) = (live, dead);
    flags
}

/// The flags that a run should have.
fn plan_run(plan: &mut Plan, run: &RunEntry, gone: u64) -> u32 {
    let rows = run.rows as u64;
    if run.flags & FLAG_DEAD != 0 {
        return run.flags;
    }
    let mut flags = run.flags;
    if flags & FLAG_FROZEN == 0 {
        match xid_status(run.xmin) {
            XidStatus::Aborted => {
                plan.rows_dead += rows;
                return flags | FLAG_DEAD;
            }
            XidStatus::Committed if xid_precedes(run.xmin, plan.horizon) => {
                plan.touch(run.xmin);
                flags |= FLAG_FROZEN;
            }
            _ => plan.leave(run.xmin),
        }
    }
    plan.rows_dead += gone;
    plan.rows_live += rows - gone;
    if flags & FLAG_FROZEN != 0 && gone == rows {
        flags |= FLAG_DEAD;
    }
    flags
}

fn plan_tombstones(
    table: OpenTable<'_>,
    meta: &Meta,
    parts: &Parts,
    plan: &mut Plan,
) -> FrozenDeletions {
    let mut frozen_deletions = Vec::new();
    let mut next = Some(meta.tombstone_head);
    while let Some(block) = next {
        let page = LockedPage::share(table, block);
        let first_number = tombstone::number(page.bytes(), 0);
        let entries: Vec<Tombstone> = (0..tombstone::count(page.bytes()))
            .map(|i| tombstone::entry(page.bytes(), i))
            .collect();
        next = tombstone::next(page.bytes());
        drop(page);
        let mut changes = Vec::new();
        for (index, old) in entries.iter().enumerate() {
            let outliving = parts
                .of_row(old.row)
                .filter(|part| part.outlives(first_number + index as u64));
            let new = match outliving {
                Some(part) if part.xid == 0 || xid_precedes(part.xid, plan.horizon) => void(old),
                _ => plan_tombstone(plan, old),
            };
            if outliving.is_none() && new.deletes() && new.is_frozen() {
                frozen_deletions.push(new.row);
            }
            if new != *old {
                changes.push((index, new));
            }
        }
        if !changes.is_empty() {
            plan.tombstones.push((block, changes));
        }
        ports::CHECK_FOR_INTERRUPTS();
    }
    frozen_deletions.sort_unstable();
    frozen_deletions.dedup();
    frozen_deletions
}

/// It says nothing any more.
fn void(old: &Tombstone) -> Tombstone {
    Tombstone {
        kind: kind::VOID,
        xmax: 0,
        ..*old
    }
}

fn plan_tombstone(plan: &mut Plan, old: &Tombstone) -> Tombstone {
    if old.kind == kind::VOID || (old.deletes() && old.is_frozen()) {
        return *old;
    }
    match (xid_status(old.xmax), old.deletes()) {
        (XidStatus::Aborted, _) | (XidStatus::Committed, false) => void(old),
        (XidStatus::Committed, true) if xid_precedes(old.xmax, plan.horizon) => {
            plan.touch(old.xmax);
            Tombstone {
                flags: old.flags | tombstone::FLAG_FROZEN,
                ..*old
            }
        }
        _ => {
            plan.leave(old.xmax);
            *old
        }
    }
}

/// Deletions of rows whose run is dead (now or before) say nothing any more.
fn void_tombstones_of_dead_rows(plan: &mut Plan, table: OpenTable<'_>, meta: &Meta, parts: &Parts) {
    let mut dead: Vec<(u64, u64)> = Vec::new();
    let new_flags: HashMap<u32, u32> = plan
        .runs
        .iter()
        .flat_map(|(_, changes)| changes.iter().map(|(_, number, flags)| (*number, *flags)))
        .collect();
    let mut number = 0u32;
    {
        directory::walk(
            table,
            meta.directory_head,
            Position { block: 0, index: 0 },
            |_, entries, _| {
                for run in entries {
                    // Of a covered run's rows, the part's have the numbers now.
                    let is_covered = parts.of_row(run.first_row).is_some();
                    if !is_covered
                        && new_flags.get(&number).copied().unwrap_or(run.flags) & FLAG_DEAD != 0
                    {
                        dead.push((run.first_row, run.first_row + run.rows as u64));
                    }
                    number += 1;
                }
                true
            },
        );
    }
    if dead.is_empty() {
        return;
    }
    let is_dead = |row: u64| {
        let after = dead.partition_point(|(_, to)| *to <= row);
        dead.get(after).is_some_and(|(from, _)| *from <= row)
    };
    let mut changes: HashMap<u32, Vec<(usize, Tombstone)>> = plan.tombstones.drain(..).collect();
    let mut next = Some(meta.tombstone_head);
    while let Some(block) = next {
        let page = LockedPage::share(table, block);
        for index in 0..tombstone::count(page.bytes()) {
            let old = tombstone::entry(page.bytes(), index);
            let running = old.xmax != 0
                && matches!(
                    xid_status(old.xmax),
                    XidStatus::Running | XidStatus::Current
                );
            if old.kind == kind::VOID || running || !is_dead(old.row) {
                continue;
            }
            let list = changes.entry(block).or_default();
            list.retain(|(changed, _)| *changed != index);
            list.push((index, void(&old)));
        }
        next = tombstone::next(page.bytes());
    }
    plan.tombstones = changes.into_iter().collect();
    plan.tombstones.sort_unstable_by_key(|(block, _)| *block);
}

/// Changes directory entries, in pages and then in the arena. The arena is told of every flag that stands in a page, not
/// only of today's changes: a VACUUM that was cancelled half-way may have left some untold.
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
            // By row, not by number: the arena may know runs whose pages were unlinked.
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

/// Takes pages that say nothing any more out of all chains.
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
