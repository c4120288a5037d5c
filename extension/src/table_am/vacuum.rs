//! VACUUM: freezes what everybody sees, marks dead what nobody sees, gives its blocks back.
//!
//! 1. Plan, reading only. A run whose transaction committed before every snapshot is frozen; one whose transaction
//!    aborted is dead. A deletion that committed before every snapshot is frozen; locks that are over and deletions
//!    that aborted are void. A frozen run all of whose rows have frozen deletions is dead, and those deletions void.
//! 2. Announce the newest transaction that this touches, so that standbys cancel queries that might still need the
//!    old state.
//! 3. Flag the runs, a page at a time, then in the arena. Entries never change their place: scans under way go on.
//! 4. Raise the generation, so that caches elsewhere (a standby's arena, other backends' tombstones) read anew. Only now
//!    void and freeze tombstones, and raise it again: whoever reads a tombstone that was voided because its row is dead
//!    must already see the run as dead. A reader that read the metapage before the first raise and tombstones after it
//!    finds the generation changed and starts over ([`super::reader`]). Ending early between any two steps is harmless.
//! 5. Link past pages of either chain that say nothing any more.
//! 6. Sweep the blocks that nothing names back into the free extents.
//! 7. Report: relfrozenxid is the oldest transaction id that still stands unfrozen, statistics.

use std::collections::HashMap;

use lanes_columnar::arena::{Position, RunEntry};
use pgrx::pg_sys;

use crate::pg::page::{LockedPage, PageChange};
use crate::pg::ports;
use crate::pg::snapshot::{XidStatus, xid_precedes, xid_status};
use crate::storage::directory::{self, FLAG_DEAD, FLAG_FROZEN};
use crate::storage::load::{Runs, Shape};
use crate::storage::metapage::{self, META_BLOCK, Meta};
use crate::storage::reclaim;
use crate::storage::tombstone::{self, Tombstone, kind};
use crate::storage::unlink::{self, Chain};

/// (entry of its page, its number in the whole directory, new flags)
type RunChange = (usize, u32, u32);

/// What is to be changed, and what was found.
struct Plan {
    horizon: u32,
    /// By directory page.
    runs: Vec<(u32, Vec<RunChange>)>,
    /// By tombstone page: (entry, its new content).
    tombstones: Vec<(u32, Vec<(usize, Tombstone)>)>,
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

    fn leave(&mut self, xid: u32) {
        if self
            .oldest_left
            .is_none_or(|oldest| xid_precedes(xid, oldest))
        {
            self.oldest_left = Some(xid);
        }
    }
}

/// `relation_vacuum`.
///
/// # Safety
/// `relation` is a lanes table locked in ShareUpdateExclusive mode.
pub unsafe fn vacuum(relation: pg_sys::Relation) {
    // SAFETY: the caller's promise.
    unsafe {
        let horizon = pg_sys::GetOldestNonRemovableTransactionId(relation).into_inner();
        let mut report = Report {
            frozen: horizon,
            rows_live: 0,
            rows_dead: 0,
        };
        if let Some(meta) = Meta::load(relation) {
            let plan = plan(relation, &meta, horizon);
            report.rows_live = plan.rows_live;
            report.rows_dead = plan.rows_dead;
            if let Some(oldest) = plan
                .oldest_left
                .filter(|oldest| xid_precedes(*oldest, horizon))
            {
                report.frozen = oldest;
            }
            if !plan.runs.is_empty() || !plan.tombstones.is_empty() {
                if let Some(newest) = plan.newest_touched
                    && ports::RelationNeedsWAL(relation)
                {
                    ports::log_snapshot_conflict(relation, newest);
                }
                apply_runs(relation, &meta, &plan);
                raise_generation(relation, Arena::Follows);
                apply_tombstones(relation, &plan);
                raise_generation(relation, Arena::Follows);
            }
            let unlinked = unlink_dead_pages(relation, &meta);
            if let Some(meta) = Meta::load(relation) {
                reclaim::sweep(relation, &meta, &unlinked);
            }
        }
        report.send(relation);
    }
}

unsafe fn plan(relation: pg_sys::Relation, meta: &Meta, horizon: u32) -> Plan {
    let mut plan = Plan {
        horizon,
        runs: Vec::new(),
        tombstones: Vec::new(),
        newest_touched: None,
        oldest_left: None,
        rows_live: 0,
        rows_dead: 0,
    };
    // SAFETY: the caller holds the table open and is its only VACUUM.
    unsafe {
        let frozen_deletions = plan_tombstones(relation, meta, &mut plan);
        let mut number = 0u32;
        directory::walk(
            relation,
            meta.directory_head,
            Position { block: 0, index: 0 },
            |block, entries, _| {
                let mut changes = Vec::new();
                for (index, run) in entries.iter().enumerate() {
                    let gone = rows_gone(&frozen_deletions, run);
                    let flags = plan_run(&mut plan, run, gone);
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
        void_tombstones_of_dead_rows(&mut plan, relation, meta);
    }
    plan
}

/// Rows with a frozen deletion, ascending.
type FrozenDeletions = Vec<u64>;

fn rows_gone(frozen_deletions: &FrozenDeletions, run: &RunEntry) -> u64 {
    let from = frozen_deletions.partition_point(|row| *row < run.first_row);
    let to = frozen_deletions.partition_point(|row| *row < run.first_row + run.rows as u64);
    (to - from) as u64
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

unsafe fn plan_tombstones(
    relation: pg_sys::Relation,
    meta: &Meta,
    plan: &mut Plan,
) -> FrozenDeletions {
    let mut frozen_deletions = Vec::new();
    let mut next = Some(meta.tombstone_head);
    while let Some(block) = next {
        // SAFETY: the caller holds the table open; chain links name existing blocks.
        let page = unsafe { LockedPage::share(relation, block) };
        let entries: Vec<Tombstone> = (0..tombstone::count(page.bytes()))
            .map(|i| tombstone::entry(page.bytes(), i))
            .collect();
        next = tombstone::next(page.bytes());
        drop(page);
        let mut changes = Vec::new();
        for (index, old) in entries.iter().enumerate() {
            let new = plan_tombstone(plan, old);
            if new.deletes() && new.is_frozen() {
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

fn plan_tombstone(plan: &mut Plan, old: &Tombstone) -> Tombstone {
    let void = Tombstone {
        kind: kind::VOID,
        xmax: 0,
        ..*old
    };
    if old.kind == kind::VOID || (old.deletes() && old.is_frozen()) {
        return *old;
    }
    match (xid_status(old.xmax), old.deletes()) {
        (XidStatus::Aborted, _) | (XidStatus::Committed, false) => void,
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
unsafe fn void_tombstones_of_dead_rows(plan: &mut Plan, relation: pg_sys::Relation, meta: &Meta) {
    let mut dead: Vec<(u64, u64)> = Vec::new();
    let new_flags: HashMap<u32, u32> = plan
        .runs
        .iter()
        .flat_map(|(_, changes)| changes.iter().map(|(_, number, flags)| (*number, *flags)))
        .collect();
    let mut number = 0u32;
    // SAFETY: the caller holds the table open.
    unsafe {
        directory::walk(
            relation,
            meta.directory_head,
            Position { block: 0, index: 0 },
            |_, entries, _| {
                for run in entries {
                    if new_flags.get(&number).copied().unwrap_or(run.flags) & FLAG_DEAD != 0 {
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
        // SAFETY: the caller holds the table open; chain links name existing blocks.
        let page = unsafe { LockedPage::share(relation, block) };
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
            list.push((
                index,
                Tombstone {
                    kind: kind::VOID,
                    xmax: 0,
                    ..old
                },
            ));
        }
        next = tombstone::next(page.bytes());
    }
    plan.tombstones = changes.into_iter().collect();
    plan.tombstones.sort_unstable_by_key(|(block, _)| *block);
}

/// Changes directory entries, in pages and then in the arena. The arena is told of every flag that stands in a page, not
/// only of today's changes: a VACUUM that was cancelled half-way may have left some untold.
unsafe fn apply_runs(relation: pg_sys::Relation, meta: &Meta, plan: &Plan) {
    // SAFETY: the caller holds the table open; entries keep their places.
    unsafe {
        for (block, changes) in &plan.runs {
            let page = LockedPage::exclusive(relation, *block);
            let mut change = PageChange::begin(relation);
            let bytes = change.edit(&page);
            for (index, _, flags) in changes {
                directory::set_flags(bytes, *index, *flags);
            }
            change.finish();
            drop(page);
            ports::CHECK_FOR_INTERRUPTS();
        }
        let runs = Runs::of(relation, meta, Shape::of((*relation).rd_att).fingerprint);
        let Some(cached) = runs.cached() else { return };
        let (mut index, count) = (0u32, cached.runs());
        let head = Position { block: 0, index: 0 };
        directory::walk(relation, meta.directory_head, head, |_, entries, _| {
            for run in entries {
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
}

unsafe fn apply_tombstones(relation: pg_sys::Relation, plan: &Plan) {
    // SAFETY: the caller holds the table open; entries keep their places.
    unsafe {
        for (block, changes) in &plan.tombstones {
            let page = LockedPage::exclusive(relation, *block);
            let mut change = PageChange::begin(relation);
            let bytes = change.edit(&page);
            for (index, tombstone) in changes {
                tombstone::set_entry(bytes, *index, tombstone);
            }
            change.finish();
            drop(page);
            ports::CHECK_FOR_INTERRUPTS();
        }
    }
}

/// Takes pages that say nothing any more out of both chains.
unsafe fn unlink_dead_pages(relation: pg_sys::Relation, meta: &Meta) -> Vec<u32> {
    // SAFETY: the caller holds the table open and is its only VACUUM.
    unsafe {
        let mut unlinked = unlink::unlink_dead_pages(relation, meta, Chain::Tombstones);
        if !unlinked.is_empty() {
            raise_generation(relation, Arena::Follows);
        }
        let directory = unlink::unlink_dead_pages(relation, meta, Chain::Directory);
        if !directory.is_empty() {
            raise_generation(relation, Arena::StartsOver);
        }
        unlinked.extend(directory);
        unlinked
    }
}

/// What a new generation means for what the arena caches of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arena {
    /// It was told of every change.
    Follows,
    /// Its runs are not the directory's any more.
    StartsOver,
}

/// Raises the generation in the metapage.
unsafe fn raise_generation(relation: pg_sys::Relation, arena: Arena) {
    // SAFETY: the caller holds the table open and is its only VACUUM, so the generation is not raised meanwhile.
    unsafe {
        let Some(meta) = Meta::load(relation) else {
            return;
        };
        let runs = Runs::of(relation, &meta, Shape::of((*relation).rd_att).fingerprint);
        let page = LockedPage::exclusive(relation, META_BLOCK);
        let mut change = PageChange::begin(relation);
        let generation = metapage::raise_generation(change.edit(&page));
        change.finish();
        if arena == Arena::Follows
            && let Some(cached) = runs.cached()
        {
            cached.advance_generation(meta.generation, generation);
        }
        drop(page);
    }
}

struct Report {
    frozen: u32,
    rows_live: u64,
    rows_dead: u64,
}

impl Report {
    unsafe fn send(&self, relation: pg_sys::Relation) {
        // SAFETY: the caller holds the table open.
        unsafe {
            let blocks = metapage::blocks(relation);
            ports::update_relation_stats(relation, blocks, self.rows_live as f64, self.frozen);
            ports::pgstat_report_vacuum(relation, self.rows_live);
            pgrx::debug1!(
                "lanes table \"{}\": {} rows live, {} dead, {} blocks",
                ports::RelationGetRelationName(relation),
                self.rows_live,
                self.rows_dead,
                blocks
            );
        }
    }
}
