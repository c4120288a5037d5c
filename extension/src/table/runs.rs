//! Reading back: the runs of a table and the columns of a range of its rows.
//!
//! The list of runs is the directory's, without those that a part covers, and with the parts' segments in their places. It is
//! read on from where it stands, by whoever scans; the segments that follow the last run of the directory are always
//! listed together with it, so that a writer that lists its own run next leaves none out.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::rc::Rc;

use lanes_columnar::arena::{Position, Relation, RelationKey, RunEntry};
use lanes_columnar::column::Column;
use lanes_columnar::image::Image;
use lanes_columnar::kind::LaneKind;
use lanes_columnar::limits::{VECTOR_ROWS, segment_first_row, segment_rows_max};
use pgrx::pg_sys;

use super::arena_budget;
use super::visibility::{XidStatus, xid_status};
use crate::pg::datum::{self, Outlet};
use crate::pg::page::LockedPage;
use crate::pg::ports;
use crate::pg::shmem::{self, ArenaLocks};
use crate::remote::recall;
use crate::storage::directory::{
    self, DirectoryPage, FLAG_DEAD, FLAG_FROZEN, FLAG_INLINE, FLAG_PACKED, FLAG_REMOTE, FLAG_SEALED,
};
use crate::storage::metapage::Meta;
use crate::storage::part::Parts;
use crate::storage::{data_page, part_image};
use crate::{error, gucs};

/// The runs of a table as of one moment: the arena's, or this backend's own copy where there is no arena (temporary
/// tables, a library that was not preloaded, an arena too full even for a directory).
pub enum Runs {
    Shared {
        cached: Relation<ArenaLocks>,
        runs: u32,
    },
    Private {
        entries: Rc<RefCell<PrivateDirectory>>,
        runs: usize,
    },
}

/// A table's directory in this backend's own memory, read on from where it stood.
pub struct PrivateDirectory {
    generation: u64,
    position: Position,
    entries: Vec<RunEntry>,
}

/// Tables whose directories a backend keeps for itself; past that it starts over.
const PRIVATE_DIRECTORIES_MAX: usize = 32;

thread_local! {
    static PRIVATE: RefCell<HashMap<RelationKey, Rc<RefCell<PrivateDirectory>>>> = RefCell::new(HashMap::new());
}

impl PrivateDirectory {
    /// This backend's copy of the table's directory, brought up to date.
    unsafe fn of(relation: pg_sys::Relation, meta: &Meta) -> Rc<RefCell<PrivateDirectory>> {
        // SAFETY: the caller holds the table open.
        let key = unsafe { meta.key(relation) };
        let shared = PRIVATE.with_borrow_mut(|known| {
            if known.len() >= PRIVATE_DIRECTORIES_MAX && !known.contains_key(&key) {
                known.clear();
            }
            // Scans under way keep the copy that goes with their generation.
            if known
                .get(&key)
                .is_none_or(|d| d.borrow().generation != meta.generation)
            {
                let empty = PrivateDirectory {
                    generation: meta.generation,
                    position: Position::default(),
                    entries: Vec::new(),
                };
                known.insert(key, Rc::new(RefCell::new(empty)));
            }
            known[&key].clone()
        });
        let position = shared.borrow().position;
        let end_row = shared.borrow().entries.last().map_or(0, RunEntry::end_row);
        // SAFETY: as above.
        unsafe {
            walk_runs(relation, meta, position, end_row, |runs, next| {
                let mut directory = shared.borrow_mut();
                directory.entries.extend_from_slice(runs);
                directory.position = next;
                true
            });
        }
        shared
    }
}

/// Calls `visit` with the runs from `position` of the directory on, after those that end at `end_row`, and with the
/// position after them. Stops early when it answers false.
///
/// # Safety
/// `relation` is the open lanes table that `meta` was read from; position and row belong together, in its generation.
unsafe fn walk_runs(
    relation: pg_sys::Relation,
    meta: &Meta,
    position: Position,
    mut end_row: u64,
    mut visit: impl FnMut(&[RunEntry], Position) -> bool,
) {
    // SAFETY: the caller's promise.
    let parts = unsafe { Parts::of(relation, meta) };
    let mut runs: Vec<RunEntry> = Vec::new();
    let (mut last, mut goes_on) = (position, true);
    // SAFETY: the caller's promise.
    unsafe {
        directory::walk(
            relation,
            meta.directory_head,
            position,
            |block, entries, next| {
                runs.clear();
                for entry in entries {
                    if parts.of_row(entry.first_row).is_none() {
                        parts.push_runs(relation, end_row, entry.first_row, &mut runs);
                        runs.push(*entry);
                        end_row = entry.end_row();
                    }
                }
                if next.block == block {
                    parts.push_runs(relation, end_row, u64::MAX, &mut runs);
                    end_row = runs.last().map_or(end_row, RunEntry::end_row).max(end_row);
                }
                last = next;
                goes_on = visit(&runs, next);
                goes_on
            },
        );
        runs.clear();
        parts.push_runs(relation, end_row, u64::MAX, &mut runs);
    }
    if goes_on && !runs.is_empty() {
        // The directory has no entry left on its last page.
        visit(&runs, last);
    }
}

impl Runs {
    /// All runs that the directory names now, with the arena's rows of a shape.
    ///
    /// # Safety
    /// `relation` is the open lanes table that `meta` was read from.
    pub unsafe fn of(relation: pg_sys::Relation, meta: &Meta, fingerprint: u64) -> Runs {
        // SAFETY: the caller's promise.
        unsafe {
            if !ports::RelationUsesLocalBuffers(relation) {
                let cached = shmem::arena().and_then(|arena| {
                    arena.open(arena_key(relation, meta, fingerprint), meta.generation)
                });
                if let Some(cached) = cached
                    && let Some(runs) = catch_up(relation, meta, &cached)
                {
                    arena_budget::tell(relation, &cached);
                    return Runs::Shared { cached, runs };
                }
            }
            let entries = PrivateDirectory::of(relation, meta);
            let runs = entries.borrow().entries.len();
            Runs::Private { entries, runs }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Runs::Shared { runs, .. } => *runs as usize,
            Runs::Private { runs, .. } => *runs,
        }
    }

    /// One run.
    pub fn get(&self, index: usize) -> RunEntry {
        match self {
            Runs::Shared { cached, .. } => cached.run(index as u32),
            Runs::Private { entries, .. } => entries.borrow().entries[index],
        }
    }

    /// Notes flags that a visibility check found out.
    pub fn learn(&mut self, index: usize, flags: u32) {
        match self {
            Runs::Shared { cached, .. } => cached.set_flags(index as u32, flags),
            Runs::Private { entries, .. } => entries.borrow_mut().entries[index].flags |= flags,
        }
    }

    /// The first row that a run has; 0 if there is none.
    pub fn first_row(&self) -> u64 {
        match self.len() {
            0 => 0,
            _ => self.get(0).first_row,
        }
    }

    /// The row after the last one.
    pub fn end_row(&self) -> u64 {
        match self.len() {
            0 => 0,
            len => {
                let last = self.get(len - 1);
                last.first_row + last.rows as u64
            }
        }
    }

    /// The run that holds a row.
    pub fn find(&self, row: u64) -> Option<usize> {
        let index = self.first_ending_after(row);
        (index < self.len() && self.get(index).first_row <= row).then_some(index)
    }

    /// The first run that ends after `row`.
    pub fn first_ending_after(&self, row: u64) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let run = self.get(middle);
            if run.first_row + run.rows as u64 > row {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// The arena's relation, where there is one.
    pub fn cached(&self) -> Option<&Relation<ArenaLocks>> {
        match self {
            Runs::Shared { cached, .. } => Some(cached),
            Runs::Private { .. } => None,
        }
    }
}

/// Tells the arena what the directory has gained. `None`: there is no room for it.
unsafe fn catch_up(
    relation: pg_sys::Relation,
    meta: &Meta,
    cached: &Relation<ArenaLocks>,
) -> Option<u32> {
    loop {
        let (mut confirmed, position) = cached.published();
        // Of a later generation than ours: our head of the chain may be unlinked, and we do not know its parts. The
        // caller starts over.
        if cached.generation() != meta.generation {
            return None;
        }
        let end_row = match confirmed {
            0 => 0,
            runs => cached.run(runs - 1).end_row(),
        };
        let mut complete = true;
        // SAFETY: the caller holds the relation open.
        unsafe {
            walk_runs(relation, meta, position, end_row, |runs, next| {
                complete = cached.publish(confirmed, runs, next);
                confirmed += if complete { runs.len() as u32 } else { 0 };
                complete
            });
        }
        if complete {
            return Some(confirmed);
        }
        // Another backend got further, or nobody can.
        if cached.published().0 == confirmed {
            return None;
        }
    }
}

/// What it takes to read any row of a table as a row of some descriptor: the attributes' kinds, how each is handed out,
/// and the values that rows from before an ADD COLUMN have.
pub struct Shape {
    pub kinds: Vec<LaneKind>,
    pub outlets: Vec<Outlet>,
    pub missing: Vec<Option<Vec<u8>>>,
    /// Says which shape this is; see [`arena_key`].
    pub fingerprint: u64,
}

impl Shape {
    /// # Safety
    /// `descriptor` is a live tuple descriptor of the table: its own, or, while ALTER TABLE rewrites it, its old one.
    pub unsafe fn of(descriptor: pg_sys::TupleDesc) -> Shape {
        // SAFETY: the caller's promise.
        unsafe {
            let kinds = datum::kinds(descriptor);
            let missing = missing_values(descriptor, &kinds);
            let outlets = datum::outlets(descriptor, &kinds);
            let fingerprint = fingerprint(&kinds, &missing);
            Shape {
                kinds,
                outlets,
                missing,
                fingerprint,
            }
        }
    }

    /// The fingerprint alone.
    ///
    /// # Safety
    /// `descriptor` is a live tuple descriptor whose attributes are of `kinds`.
    pub unsafe fn fingerprint_of(descriptor: pg_sys::TupleDesc, kinds: &[LaneKind]) -> u64 {
        // SAFETY: the caller's promise.
        let missing = unsafe { missing_values(descriptor, kinds) };
        fingerprint(kinds, &missing)
    }

    /// The same for somebody who reads no attributes but these: the others are NULLs, and not decoded.
    pub fn only(&self, wanted: &[usize]) -> Shape {
        let place = |index: &usize| wanted.contains(index);
        let kinds = self.kinds.iter().enumerate();
        let kinds = kinds.map(|(index, kind)| {
            if place(&index) {
                *kind
            } else {
                LaneKind::Absent
            }
        });
        let missing = self.missing.iter().enumerate();
        Shape {
            kinds: kinds.collect(),
            outlets: Vec::new(),
            missing: missing
                .map(|(index, value)| value.clone().filter(|_| place(&index)))
                .collect(),
            fingerprint: self.fingerprint,
        }
    }

    /// Bytes that a row takes in memory, without those of items.
    pub fn bytes_a_row(&self) -> u64 {
        let width = |kind: &LaneKind| match *kind {
            LaneKind::Absent | LaneKind::Bool => 1,
            LaneKind::Fixed { stride, .. } => u64::from(stride),
            LaneKind::Varlena { .. } => 12,
        };
        self.kinds.iter().map(width).sum()
    }

    /// Empty columns of this shape.
    pub fn columns(&self) -> Vec<Column> {
        self.kinds.iter().map(|kind| Column::new(*kind)).collect()
    }
}

/// What is done about rows that are in object storage.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Remote {
    /// They are waited for.
    Recall,
    /// They become NULLs: nobody is going to look at them.
    Leave,
}

/// Decodes rows of one run, appending to `columns`: any of a sealed one, else all. The rows of a dead run are NULLs:
/// nobody sees them.
///
/// # Safety
/// `relation` is the open lanes table that the run belongs to.
unsafe fn decode_run(
    relation: pg_sys::Relation,
    shape: &Shape,
    run: &RunEntry,
    rows: Range<usize>,
    remote: Remote,
    columns: &mut [Column],
) {
    let before = columns.first().map_or(0, Column::rows);
    // SAFETY: the caller's promise.
    unsafe {
        if run.flags & FLAG_DEAD == 0 && (run.flags & FLAG_REMOTE == 0 || remote == Remote::Recall)
        {
            let decoded = try_decode_run(relation, shape, run, rows.clone(), columns);
            let Err(failure) = decoded else {
                return;
            };
            // VACUUM may have found it dead, and reused its blocks, since the caller read its entry. And columns that were added by
            // who was rolled back may be others by now: nobody sees those rows.
            if !is_rolled_back(run) && !directory::is_dead_by_now(relation, run) {
                error::corrupt(&failure_of(run, &failure));
            }
        }
    }
    for column in columns {
        column.truncate(before);
        column.push_repeated(None, rows.len());
    }
}

/// Whether those who inserted a run's rows were rolled back.
fn is_rolled_back(run: &RunEntry) -> bool {
    run.flags & (FLAG_SEALED | FLAG_FROZEN) == 0 && xid_status(run.xmin) == XidStatus::Aborted
}

/// What is said of a run that cannot be read.
pub fn failure_of(run: &RunEntry, failure: &dyn std::fmt::Display) -> String {
    format!("the run at row {}: {failure}", run.first_row)
}

/// Appends a run's image to an empty `bytes`. That of a run in object storage is waited for.
///
/// # Safety
/// `relation` is the open lanes table that the run belongs to.
pub unsafe fn read_image(
    relation: pg_sys::Relation,
    run: &RunEntry,
    bytes: &mut Vec<u8>,
) -> Result<(), String> {
    // SAFETY: the caller's promise.
    unsafe {
        if run.flags & FLAG_REMOTE != 0 {
            *bytes = recall::image(relation, run)?;
        } else if run.flags & FLAG_PACKED != 0 {
            part_image::read_image_of_run(relation, run, bytes)?;
        } else if run.flags & FLAG_INLINE != 0 {
            let page = LockedPage::share(relation, run.block);
            let view = DirectoryPage::try_parse(page.bytes())
                .ok_or("its directory page is another by now")?;
            bytes.extend_from_slice(view.inline_image(run));
        } else {
            let length = run.bytes as usize;
            data_page::read(relation, run.block, 0..length, bytes)?;
        }
    }
    Ok(())
}

unsafe fn try_decode_run(
    relation: pg_sys::Relation,
    shape: &Shape,
    run: &RunEntry,
    rows: Range<usize>,
    columns: &mut [Column],
) -> Result<(), String> {
    let mut bytes = Vec::with_capacity(run.bytes as usize);
    // SAFETY: the caller's promise.
    unsafe { read_image(relation, run, &mut bytes)? };
    let image = Image::parse(&bytes).map_err(|e| e.to_string())?;
    if image.rows() != run.rows as usize {
        return Err(format!(
            "its image holds {} rows, not {}",
            image.rows(),
            run.rows
        ));
    }
    for (index, column) in columns.iter_mut().enumerate() {
        let (kind, missing) = (shape.kinds[index], shape.missing[index].as_deref());
        let decoded = if run.flags & FLAG_SEALED != 0 {
            image.decode_range(index, kind, missing, rows.clone(), column)
        } else {
            image.decode(index, kind, missing, column)
        };
        decoded.map_err(|e| format!("column {}: {e}", index + 1))?;
    }
    Ok(())
}

/// Rows decoded from pages: columns, and the table's row that their first one is.
pub struct DecodedRows {
    pub first_row: u64,
    pub columns: Vec<Column>,
}

/// # Safety
/// `descriptor` is a live tuple descriptor whose attributes are of `kinds`.
unsafe fn missing_values(
    descriptor: pg_sys::TupleDesc,
    kinds: &[LaneKind],
) -> Vec<Option<Vec<u8>>> {
    let value_of = |(i, kind): (usize, &LaneKind)| {
        if *kind == LaneKind::Absent {
            return None;
        }
        // SAFETY: the caller's promise.
        unsafe {
            let value = ports::missing_value(descriptor, i)?;
            Some(datum::to_bytes(
                value,
                ports::TupleDescAttr(descriptor, i),
                *kind,
            ))
        }
    };
    kinds.iter().enumerate().map(value_of).collect()
}

fn fingerprint(kinds: &[LaneKind], missing: &[Option<Vec<u8>>]) -> u64 {
    // The same in every process: the hasher has fixed keys.
    let mut hasher = DefaultHasher::new();
    for kind in kinds {
        match *kind {
            LaneKind::Absent => 0u64.hash(&mut hasher),
            LaneKind::Bool => 1u64.hash(&mut hasher),
            LaneKind::Fixed {
                width,
                stride,
                number,
            } => (2u64, width, stride, number as u8).hash(&mut hasher),
            LaneKind::Varlena { dictionary, packed } => {
                (3u64, dictionary, packed).hash(&mut hasher)
            }
        }
    }
    missing.hash(&mut hasher);
    hasher.finish()
}

/// The arena's key: the file, and the shape that its rows were decoded in. A change of the table's columns makes another
/// shape, and so does taking it back: what an ALTER TABLE that is rolled back had decoded is never read by others.
///
/// # Safety
/// `relation` is the open lanes table that `meta` was read from.
pub unsafe fn arena_key(relation: pg_sys::Relation, meta: &Meta, fingerprint: u64) -> RelationKey {
    // SAFETY: the caller's promise.
    let key = unsafe { meta.key(relation) };
    RelationKey {
        shape: fingerprint,
        ..key
    }
}

/// Decoded rows that a backend may keep for the next look-up are at most so many bytes.
const KEPT_BYTES_MAX: usize = 32 * 1024 * 1024;

impl DecodedRows {
    /// How many rows.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, Column::rows)
    }

    /// Whether they are worth keeping for the next look-up.
    pub fn is_small(&self) -> bool {
        self.columns.iter().map(Column::byte_len).sum::<usize>() <= KEPT_BYTES_MAX
    }
}

/// Decodes the runs that overlap the rows `[from, to)`. The result covers all of these rows: those that no run holds any
/// more are NULLs, like those of dead runs.
///
/// # Safety
/// `relation` is the open lanes table that the runs belong to.
pub unsafe fn decode_rows(
    relation: pg_sys::Relation,
    shape: &Shape,
    runs: &Runs,
    from: u64,
    to: u64,
    remote: Remote,
) -> DecodedRows {
    let mut columns = shape.columns();
    let pad = |columns: &mut [Column], rows: u64| {
        for column in columns {
            column.push_repeated(None, rows as usize);
        }
    };
    let first = runs.first_ending_after(from);
    // Of a sealed run, only the vectors that are wanted are decoded: whole ones, as reading its image costs more than decoding the
    // rows around one that is fetched by its number, and the next one that is fetched often lies there.
    let vector = VECTOR_ROWS as u64;
    let (vectors_from, vectors_to) = (from - from % vector, to.next_multiple_of(vector));
    let rows_of = |run: &RunEntry| match run.flags & FLAG_SEALED {
        0 => (run.first_row, run.end_row()),
        _ => (
            run.first_row.max(vectors_from),
            run.end_row().min(vectors_to),
        ),
    };
    let first_row = if first < runs.len() {
        rows_of(&runs.get(first)).0.min(from)
    } else {
        from
    };
    for column in &mut columns {
        column.reserve(to.saturating_sub(first_row) as usize);
    }
    let mut next = first_row;
    for index in first..runs.len() {
        let run = runs.get(index);
        if run.first_row >= to {
            break;
        }
        let (start, end) = rows_of(&run);
        pad(&mut columns, start - next);
        let rows = (start - run.first_row) as usize..(end - run.first_row) as usize;
        // SAFETY: the caller's promise.
        unsafe { decode_run(relation, shape, &run, rows, remote, &mut columns) };
        next = end;
    }
    pad(&mut columns, to.saturating_sub(next));
    DecodedRows { first_row, columns }
}

/// The end of what is decoded with the rows up to `to`, at most `end`: a sealed run is decoded as a whole, as whoever
/// reads it next wants more than a part, and finds no image any more.
fn whole_to(runs: &Runs, to: u64, end: u64) -> u64 {
    let last = to.checked_sub(1).and_then(|row| runs.find(row));
    let sealed = last.map(|index| runs.get(index));
    let sealed = sealed.filter(|run| run.flags & FLAG_SEALED != 0);
    sealed.map_or(to, |run| to.max(run.end_row())).min(end)
}

/// Makes the rows of a segment up to `to` (a row of the table) resident in the arena, and what is sealed with them. False:
/// there is no room.
///
/// # Safety
/// `relation` is the open lanes table that the runs belong to.
pub unsafe fn make_resident(
    relation: pg_sys::Relation,
    shape: &Shape,
    runs: &Runs,
    segment: u32,
    to: u64,
) -> bool {
    let Some(cached) = runs.cached() else {
        return false;
    };
    let start = segment_first_row(segment);
    let end = whole_to(runs, to, start + segment_rows_max(segment) as u64);
    if (end - start) * shape.bytes_a_row() > gucs::arena_bytes() as u64 {
        // Not to be found out by decoding all of them, for each row that is asked for.
        return false;
    }
    // A segment of another shape (columns were added since) is retired by the first attempt to extend it.
    let mut retired_before = false;
    loop {
        let resident = cached
            .pin_segment(segment)
            .filter(|pinned| pinned.columns() == shape.kinds.len())
            .map_or(0, |pinned| pinned.rows_resident());
        let from = start + resident as u64;
        if from >= end {
            return true;
        }
        if bytes_stored(runs, from, end) > cached_bytes_max() {
            return false;
        }
        cached.give_up_images(segment);
        // SAFETY: the caller's promise.
        let decoded = unsafe { decode_rows(relation, shape, runs, from, end, Remote::Recall) };
        let skip = (from - decoded.first_row) as usize;
        let rows = (end - from) as usize;
        if cached.extend_segment(
            segment,
            &shape.kinds,
            resident,
            &decoded.columns,
            skip,
            rows,
        ) {
            return true;
        }
        // Another backend may have brought it further meanwhile; only if nothing moved is there no room.
        let now = cached
            .pin_segment(segment)
            .map_or(0, |pinned| pinned.rows_resident());
        if now <= resident && std::mem::replace(&mut retired_before, true) {
            return false;
        }
    }
}

/// Bytes of the images of the runs that overlap some rows.
fn bytes_stored(runs: &Runs, from: u64, to: u64) -> u64 {
    (runs.first_ending_after(from)..runs.len())
        .map(|index| runs.get(index))
        .take_while(|run| run.first_row < to)
        .map(|run| run.bytes as u64)
        .sum()
}

/// A segment that is larger than this is not worth decoding for the arena: it would push out everything else.
fn cached_bytes_max() -> u64 {
    gucs::arena_bytes() as u64 / 2
}
