//! Sealing: the rows of a range are sorted, deduplicated if the table has `dedup`, and written as one
//! part.
//!
//! ```text
//! plan      the range: consecutive runs that everybody sees, or neighbouring parts worth merging (seal_plan)
//! read      the rows of the range into columns, without rows whose deletion everybody sees
//! sort      by the table's order_by, stably; with dedup, only the last of rows with equal keys is kept
//! write     segment by segment, to blocks that nothing names yet; then the index of the segments. Rows that dedup
//!           takes out become a fading part, which only snapshots see that saw them before
//! swap      under the row numbers lock (below) and the lock of the last tombstone page. If a row of the range has got
//!           a tombstone since, the swap fails. Otherwise standbys cancel queries that do not see all of the rows yet,
//!           and one record adds the part and raises generation and sealings
//! ```
//!
//! Sealing may run in VACUUM, and so may moving ([`super::relocate`]). Neither takes a transaction id
//! before its last part is added. A part is added with the id of the transaction that begins next,
//! unless this transaction has an id that snapshots take into account.
//!
//! Before the swap there are only new blocks, which the next VACUUM's sweep frees if the swap fails.
//! The swap is atomic. Every snapshot sees the same before and after: the same rows, in the same order
//! except for `order_by`, and with the same one of equal times as the last. So no transaction is
//! needed. Only later snapshots miss the rows that dedup took out. Scans that began before go on
//! reading the covered runs.
//!
//! Every transaction that changes rows shares the row numbers lock. Mostly the lock is free at some
//! moment, and sealing takes it then, so that nobody waits for the sealer. If changes never cease,
//! rows that could be sealed accumulate. When they are [`QUEUE_TIMES`] times as many as are worth
//! sealing, or when rows are older than the table retains, sealing waits in the lock's queue for at
//! most [`QUEUE_MAX`]. If it waits in vain, it does not wait again in the same call. So those who begin
//! to change rows wait no longer than that. A table is never sealed if it is changed by longer
//! transactions that overlap for ever.
//!
//! If the table has indexes, the part gets a place map ([`super::place_map`]), by which index entries
//! find their rows.
//!
//! Memory: the columns of the range once, and one more segment. [`Limits`] bounds the range
//! accordingly.

use std::time::Duration;

use lanes_columnar::column::Column;
use lanes_columnar::encoding::key_starts;
use lanes_columnar::image;
use lanes_columnar::limits::SEGMENT_ROWS;
use lanes_columnar::part::{PartIndex, SealedSegment};
use lanes_columnar::sort::{same_keys, sort_rows};
use lanes_columnar::zone_map;
use pgrx::pg_sys;

use super::place_map;
use super::seal_plan::{self, Limits, Range};
use crate::error;
use crate::pg::lock::{RowNumbersLock, SpaceLock};
use crate::pg::page::{LockedPage, PageChange};
use crate::pg::table::OpenTable;
use crate::pg::{ports, server, transaction};
use crate::storage::extent;
use crate::storage::metapage::{self, META_BLOCK, Meta};
use crate::storage::part::{self, FLAG_FADING, FLAG_MAPPED, FLAG_PACKED, PartEntry};
use crate::storage::part_image::{self, BehindIndex};
use crate::storage::tombstone::Tail;
use crate::table::decode::{self, Remote};
use crate::table::generation::hand_over;
use crate::table::reader::{Content, Reader};

/// The order in which a table's rows are sealed.
#[derive(Default)]
pub struct Order {
    /// The key columns, counted from 0. The first one counts most.
    pub keys: Vec<usize>,
    /// Of rows with equal keys, only the last is kept.
    pub dedup: bool,
}

/// When the rows that are not sealed are so many times as many as are worth sealing, sealing waits
/// for the lock.
const QUEUE_TIMES: u64 = 4;
/// The longest that others have to wait for sealing.
const QUEUE_MAX: Duration = Duration::from_millis(500);

/// How the row numbers lock is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// It is taken if nobody holds it.
    Chance,
    /// It is waited for, and others queue behind.
    Queue,
}

/// The result of sealing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    pub parts: u64,
    pub rows: u64,
    /// The number of ranges that were left because rows of them were being changed or locked.
    pub busy: u64,
}

/// Seals everything that is to be sealed. The caller is the table's only VACUUM or sealer.
pub fn seal(table: OpenTable<'_>, order: &Order, limits: &Limits) -> Sealed {
    let mut sealed = Sealed::default();
    let mut has_waited_in_vain = false;
    // The rows that are considered: from where to go on after a range in use, up to the end of the
    // table as it was at first. Sealing the few rows that arrive in the meantime would never end.
    // And the fewer rows a series has in a part, the more space they take.
    let mut rows = 0..u64::MAX;
    loop {
        let mut reader = Reader::open(table);
        let Some(content) = reader.content.take() else {
            return sealed;
        };
        let horizon = table.oldest_non_removable_xid();
        rows.end = rows.end.min(content.runs.end_row());
        let next = seal_plan::next(&content, &reader.shape, horizon, limits, &rows);
        let Some(mut range) = next else {
            return sealed;
        };
        let is_urgent =
            !has_waited_in_vain && seal_plan::open_rows(&content) / QUEUE_TIMES >= limits.rows_min;
        let patience = match is_urgent {
            true => Patience::Queue,
            false => Patience::Chance,
        };
        match seal_range(table, &reader, &content, &mut range, order, patience) {
            Some(rows) => {
                sealed.parts += 1;
                sealed.rows += rows;
            }
            None => {
                sealed.busy += 1;
                has_waited_in_vain |= is_urgent;
                rows.start = range.end_row;
            }
        }
        ports::CHECK_FOR_INTERRUPTS();
        // Others that wait for the table, such as an ALTER TABLE, go first. The next round will
        // find the rest.
        if !limits.thorough && table.has_waiters(pg_sys::ShareUpdateExclusiveLock) {
            return sealed;
        }
    }
}

/// Seals one range, and takes its list of rows. Returns how many rows it has now; `None`: rows of
/// it are in use.
fn seal_range(
    table: OpenTable<'_>,
    reader: &Reader<'_>,
    content: &Content,
    range: &mut Range,
    order: &Order,
    patience: Patience,
) -> Option<u64> {
    // If others hold the lock now, they most likely hold it after all the work too.
    drop(lock_numbers(table, 1, patience)?);
    let decoded = decode::decode_rows(
        table,
        &reader.shape,
        &content.runs,
        range.first_row,
        range.end_row,
        Remote::Recall,
    );
    debug_assert_eq!(decoded.first_row, range.first_row);
    let mut rows = std::mem::take(&mut range.rows);
    let keys: Vec<&Column> = order
        .keys
        .iter()
        .map(|&key| &decoded.columns[key])
        .collect();
    let writer = PartWriter {
        table,
        content,
        columns: &decoded.columns,
        // The last key is usually the time. The others identify a series.
        series: match order.keys.split_last() {
            Some((_, [])) | None => &[],
            Some((_, series)) => series,
        },
        rows_before: range.first_row..range.end_row,
        // The list of indexes does not change under the caller's lock on the table.
        has_indexes: table.has_indexes(),
    };
    let mut fading = Vec::new();
    if !keys.is_empty() {
        sort_rows(&keys, &mut rows);
        // A table has either indexes or dedup, because a unique index does the work of dedup.
        if order.dedup && !writer.has_indexes {
            fading = take_all_but_last(&keys, &mut rows);
        }
    }
    let space = SpaceLock::share(table);
    let faded = (!fading.is_empty()).then(|| writer.write(range.first_row, &fading));
    let kept = writer.write(range.first_row + fading.len() as u64, &rows);
    drop(decoded);
    let swapped = swap(table, content, range, faded, kept, patience);
    drop(space);
    swapped.then_some(kept.rows)
}

/// Of neighbouring rows with equal keys, only the last stays. Returns the others, in their order.
fn take_all_but_last(keys: &[&Column], rows: &mut Vec<u32>) -> Vec<u32> {
    let (mut kept, mut taken) = (0, Vec::new());
    for place in 0..rows.len() {
        let last = place + 1 == rows.len() || !same_keys(keys, rows[place], rows[place + 1]);
        if last {
            rows[kept] = rows[place];
            kept += 1;
        } else {
            taken.push(rows[place]);
        }
    }
    rows.truncate(kept);
    taken
}

/// The rows that were written for a part: their number, and the part's stream.
#[derive(Clone, Copy, Default)]
struct Written {
    rows: u64,
    block: u32,
    bytes: u32,
    is_mapped: bool,
}

/// Writes rows of a range as parts.
struct PartWriter<'a> {
    table: OpenTable<'a>,
    content: &'a Content,
    /// The rows of the range, as they were.
    columns: &'a [Column],
    /// The key columns that identify a series.
    series: &'a [usize],
    /// The numbers of the rows, as they were.
    rows_before: std::ops::Range<u64>,
    has_indexes: bool,
}

impl PartWriter<'_> {
    /// Writes the given rows, in their order, as a part from a first row on.
    fn write(&self, first_row: u64, rows: &[u32]) -> Written {
        let (table, mut rests) = (self.table, Vec::new());
        let segments = write_segments(
            table,
            first_row,
            self.columns,
            rows,
            self.series,
            &mut rests,
        );
        let map = self
            .has_indexes
            .then(|| place_map::of_range(table, self.content, &self.rows_before, rows));
        let behind = BehindIndex {
            rests: Some(rests),
            map: map.flatten(),
        };
        let stream = part_image::stream(&PartIndex { segments }, &behind);
        let (block, bytes) = part_image::write_stream(table, &stream);
        Written {
            rows: rows.len() as u64,
            block,
            bytes,
            is_mapped: behind.map.is_some() && bytes > 0,
        }
    }
}

/// Writes the given rows, in their order, as segments from a first row on. The segments are cut
/// where those of the arena are. The last bytes of their images, which do not fill a page, are
/// appended to `rests`.
fn write_segments(
    table: OpenTable<'_>,
    first_row: u64,
    columns: &[Column],
    rows: &[u32],
    series: &[usize],
    rests: &mut Vec<u8>,
) -> Vec<SealedSegment> {
    let mut segments = Vec::new();
    let (mut row, mut left) = (first_row, rows);
    while !left.is_empty() {
        let room = u64::from(SEGMENT_ROWS) - row % u64::from(SEGMENT_ROWS);
        let (here, rest) = left.split_at((room as usize).min(left.len()));
        let gathered: Vec<Column> = columns.iter().map(|c| c.gather(here)).collect();
        // The zones are computed from the rows themselves and not from their encoding, because
        // queries are answered by bounds and counts.
        let zones = gathered.iter().map(|column| {
            let zone = zone_map::of_column(column, 0..here.len());
            zone_map::Zone {
                exact: false,
                ..zone
            }
        });
        let zones = zones.collect();
        let series: Vec<&Column> = series.iter().map(|&key| &gathered[key]).collect();
        let (starts, mut image) = (key_starts(&series), Vec::new());
        let columns = image::encode_sealed(&gathered, here.len(), &starts, &mut image)
            .unwrap_or_else(|failure| {
                error::too_large(
                    &format!("the rows do not fit into one segment: {failure}"),
                    "Set lanes.seal_memory lower, so that fewer rows are sealed together.",
                )
            });
        segments.push(SealedSegment {
            first_row: row,
            rows: here.len() as u32,
            block: part_image::write_image(table, &image, rests),
            bytes: image.len() as u32,
            zones,
            columns,
            digest: None,
        });
        row += here.len() as u64;
        left = rest;
        ports::CHECK_FOR_INTERRUPTS();
    }
    segments
}

/// Drops all rows of a range for everybody who begins to read from now on. False: rows of it are in
/// use.
pub fn drop_range(table: OpenTable<'_>, content: &Content, range: &Range) -> bool {
    swap(
        table,
        content,
        range,
        None,
        Written::default(),
        Patience::Queue,
    )
}

/// The most attempts to take the row numbers lock.
const SWAP_ATTEMPTS: usize = 20;
/// The time between two attempts.
const SWAP_PAUSE: Duration = Duration::from_millis(10);

/// The row numbers lock, held while its value lives. A temporary table has none. `None`: others
/// hold it.
fn lock_numbers(
    table: OpenTable<'_>,
    attempts: usize,
    patience: Patience,
) -> Option<Option<RowNumbersLock<'_>>> {
    if table.uses_local_buffers() {
        return Some(None);
    }
    for attempt in 0..attempts {
        if attempt > 0 {
            server::sleep(SWAP_PAUSE);
            ports::CHECK_FOR_INTERRUPTS();
        }
        if let Some(lock) = RowNumbersLock::try_exclusive(table) {
            return Some(Some(lock));
        }
    }
    if patience == Patience::Chance {
        return None;
    }
    // Somebody who holds the lock may wait for the table, which this process has locked. The wait
    // is too short for anybody to report that as a deadlock.
    let wait_max = QUEUE_MAX.min(server::deadlock_timeout() / 2);
    RowNumbersLock::exclusive_within(table, wait_max).map(Some)
}

/// Replaces the range by the part of the rows that are kept, and before it by the part of the
/// fading rows, if there are some. False: rows of the range are in use.
fn swap(
    table: OpenTable<'_>,
    content: &Content,
    range: &Range,
    fading: Option<Written>,
    kept: Written,
    patience: Patience,
) -> bool {
    let Some(_numbers) = lock_numbers(table, SWAP_ATTEMPTS, patience) else {
        return false;
    };
    let meta = &content.meta;
    let before = seal_plan::tombstones_within(&content.tombstones.borrow(), range);
    let tombstones = Tail::lock(table, meta);
    content
        .tombstones
        .borrow_mut()
        .read_on(table, meta, Some(&tombstones));
    if seal_plan::tombstones_within(&content.tombstones.borrow(), range) != before {
        return false;
    }
    // First, standbys cancel queries that do not see all of these rows yet, or still see deleted
    // ones.
    if let Some(newest) = seal_plan::newest_xid(content, range)
        && table.needs_wal()
    {
        table.log_snapshot_conflict(newest);
    }
    let next_tombstone = tombstones.next_number();
    let entry = |first_row, end_row, written: Written, flags| PartEntry {
        first_row,
        end_row,
        rows: written.rows,
        next_tombstone,
        origin: 0,
        number: 0,
        block: written.block,
        bytes: written.bytes,
        xid: 0,
        flags: FLAG_PACKED | flags | if written.is_mapped { FLAG_MAPPED } else { 0 },
    };
    let first_kept = range.first_row + fading.map_or(0, |fading| fading.rows);
    let fading = fading.map(|fading| entry(range.first_row, first_kept, fading, FLAG_FADING));
    let kept = entry(first_kept, range.end_row, kept, 0);
    let mut entries: Vec<PartEntry> = fading.into_iter().chain([kept]).collect();
    let generation = add_parts(table, meta, &mut entries, Numbers::Anew);
    drop(tombstones);
    if let Some(earlier) = content.runs.cached() {
        let rows = range.first_row..range.end_row;
        hand_over(table, earlier, meta.generation, generation, Some(rows));
    }
    true
}

/// The effect of a new part on the numbers of its rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// The rows get new numbers: the part is its own origin.
    Anew,
    /// The rows keep their numbers, and the part keeps its origin.
    AsBefore,
}

/// Adds entries of ranges that do not overlap to the chain of parts and raises the generation, by
/// one record. Returns the new generation.
pub fn add_parts(
    table: OpenTable<'_>,
    meta: &Meta,
    entries: &mut [PartEntry],
    numbers: Numbers,
) -> u64 {
    let tail = (meta.part_tail != 0).then(|| LockedPage::exclusive(table, meta.part_tail));
    let fresh = match &tail {
        Some(tail) if part::has_room(tail.bytes(), entries.len()) => None,
        _ => {
            let block = extent::allocate(table, 1).first;
            Some(LockedPage::zeroed(table, block))
        }
    };
    let meta_page = LockedPage::exclusive(table, META_BLOCK);
    // Scans that read the old state, which still exists, have snapshots no younger than `xid`. This id is
    // the id of this transaction, if it has one that snapshots take into account; otherwise the id
    // of the transaction that begins next. Snapshots ignore the id of a VACUUM.
    let own = transaction::top_xid().filter(|_| !transaction::is_vacuum());
    let xid = own.unwrap_or_else(transaction::next_xid);
    let mut change = PageChange::begin(table);
    let bytes = change.edit(&meta_page);
    let mut generation = meta.generation;
    for entry in entries.iter_mut() {
        generation = metapage::raise_generation(bytes);
        (entry.number, entry.xid) = (generation, xid);
        if numbers == Numbers::Anew {
            entry.origin = generation;
        }
    }
    if numbers == Numbers::Anew {
        metapage::count_sealing(bytes);
    }
    let push = |bytes: &mut [u8]| entries.iter().for_each(|entry| part::push(bytes, entry));
    if let Some(fresh) = &fresh {
        metapage::set_part_tail(bytes, fresh.block());
        if tail.is_none() {
            metapage::set_part_head(bytes, fresh.block());
        }
        let bytes = change.create(fresh);
        part::initialise_page(bytes);
        push(bytes);
        if let Some(tail) = &tail {
            part::set_next(change.edit(tail), fresh.block());
        }
    } else if let Some(tail) = &tail {
        push(change.edit(tail));
    }
    change.finish();
    generation
}

/// Takes a transaction id after the last part was added. The parts are settled once this
/// transaction and all older ones have ended, even if nobody else writes. It must not be taken
/// before the last part is added: in VACUUM, an own id does not bound what others may read.
pub fn let_settle() {
    transaction::current_xid();
}
