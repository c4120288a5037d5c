//! The plan of a VACUUM: the flags of runs, tombstones and parts that it changes, and what it has found.

use std::collections::HashMap;

use lanes_columnar::arena::{Position, RunEntry};

use crate::pg::page::LockedPage;
use crate::pg::ports;
use crate::pg::table::OpenTable;
use crate::storage::directory::{self, FLAG_DEAD, FLAG_FROZEN};
use crate::storage::metapage::Meta;
use crate::storage::part::{self, PartEntry, Parts};
use crate::storage::tombstone::{self, Tombstone, kind};
use crate::table::visibility::{XidStatus, xid_precedes, xid_status};

/// (the entry on its page, its number in the whole directory, its new flags)
type RunChange = (usize, u32, u32);

/// The planned changes, and what was found.
pub(super) struct Plan {
    horizon: u32,
    /// By directory page.
    pub runs: Vec<(u32, Vec<RunChange>)>,
    /// By tombstone page: (entry, its new content).
    pub tombstones: Vec<(u32, Vec<(usize, Tombstone)>)>,
    /// By page of parts: (entry, its new content).
    pub parts: Vec<(u32, Vec<(usize, PartEntry)>)>,
    pub newest_touched: Option<u32>,
    pub oldest_left: Option<u32>,
    pub rows_live: u64,
    pub rows_dead: u64,
    /// Rows that are deleted and that a snapshot may still see: neither live nor dead. They are among
    /// `rows_live` while the plan is made.
    rows_deleted_lately: u64,
}

impl Plan {
    /// Plans the changes of a table. Nothing is changed yet.
    pub fn of(table: OpenTable<'_>, meta: &Meta, horizon: u32) -> Plan {
        let mut plan = Plan {
            horizon,
            runs: Vec::new(),
            tombstones: Vec::new(),
            parts: Vec::new(),
            newest_touched: None,
            oldest_left: None,
            rows_live: 0,
            rows_dead: 0,
            rows_deleted_lately: 0,
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
                                let gone =
                                    rows_gone(&frozen_deletions, run.first_row, run.end_row());
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
        plan.rows_live = plan.rows_live.saturating_sub(plan.rows_deleted_lately);
        plan
    }

    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.tombstones.is_empty() && self.parts.is_empty()
    }

    fn touch(&mut self, xid: u32) {
        if self
            .newest_touched
            .is_none_or(|newest| xid_precedes(newest, xid))
        {
            self.newest_touched = Some(xid);
        }
    }

    /// Notes the transaction of a part. Its id is 0 once the part is settled.
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

/// Rows with a frozen deletion, ascending.
type FrozenDeletions = Vec<u64>;

fn rows_gone(frozen_deletions: &FrozenDeletions, first_row: u64, end_row: u64) -> u64 {
    let from = frozen_deletions.partition_point(|row| *row < first_row);
    let to = frozen_deletions.partition_point(|row| *row < end_row);
    (to - from) as u64
}

/// Counts the rows of parts, and finds parts to settle.
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

/// The flags that a run should have that a part covers. Scans that began before the part may still
/// read it.
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
    // Rows that are not committed yet do not count, as in heap.
    let mut is_under_way = false;
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
            status => {
                plan.leave(run.xmin);
                is_under_way = status == XidStatus::Running;
            }
        }
    }
    plan.rows_dead += gone;
    if !is_under_way {
        plan.rows_live += rows - gone;
    }
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
    let (mut frozen_deletions, mut deleted_lately) = (Vec::new(), Vec::new());
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
            if outliving.is_none() && new.deletes() {
                if new.is_frozen() {
                    frozen_deletions.push(new.row);
                } else if xid_status(new.xmax) == XidStatus::Committed {
                    deleted_lately.push(new.row);
                }
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
    for rows in [&mut frozen_deletions, &mut deleted_lately] {
        rows.sort_unstable();
        rows.dedup();
    }
    plan.rows_deleted_lately = deleted_lately.len() as u64;
    frozen_deletions
}

/// Voids a tombstone, which says nothing any more.
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

/// Voids the tombstones of rows whose run is dead, now or before.
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
                    // The rows of the part have the numbers of the covered run's rows now.
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
