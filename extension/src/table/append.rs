//! Appending a run: encode the image, write its data pages, add its directory entry, tell the
//! arena.

use lanes_columnar::arena::{Position, RunEntry};
use lanes_columnar::column::Column;
use lanes_columnar::kind::LaneKind;
use lanes_columnar::limits::{segment_first_row, segment_of, segment_rows_max};

use super::kept::{self, End};
use crate::error;
use crate::pg::byte_change::ByteChange;
use crate::pg::lock::SpaceLock;
use crate::pg::page::{LockedPage, PageChange};
use crate::pg::table::OpenTable;
use crate::storage::directory::{self, DirectoryPage, INLINE_BYTES_MAX};
use crate::storage::metapage::{self, META_BLOCK};
use crate::storage::{data_page, extent};

/// The most rows that a run can have. Callers split longer input.
pub const RUN_ROWS_MAX: usize = 65_536;

/// A run that is complete except for its directory entry. It owns its blocks, if it has any, until
/// it is published. If it is dropped instead, the next VACUUM frees them.
pub struct PreparedRun<'a> {
    table: OpenTable<'a>,
    kinds: &'a [LaneKind],
    columns: &'a [Column],
    rows: usize,
    image: Vec<u8>,
    first_block: u32,
    /// Held while blocks are in use that no entry names yet.
    space: Option<SpaceLock<'a>>,
}

impl<'a> PreparedRun<'a> {
    /// Encodes the columns and writes data pages for them, unless they will lie inline.
    pub fn write(
        table: OpenTable<'a>,
        kinds: &'a [LaneKind],
        columns: &'a [Column],
        rows: usize,
    ) -> PreparedRun<'a> {
        let mut prepared = PreparedRun::encode(table, kinds, columns, rows);
        prepared.write_pages();
        prepared
    }

    /// Encodes the columns.
    pub fn encode(
        table: OpenTable<'a>,
        kinds: &'a [LaneKind],
        columns: &'a [Column],
        rows: usize,
    ) -> PreparedRun<'a> {
        debug_assert!(rows > 0 && rows <= RUN_ROWS_MAX);
        let mut image = Vec::new();
        if let Err(failure) = lanes_columnar::image::encode(columns, rows, &mut image) {
            error::too_large(
                &format!("the rows do not fit into one run: {failure}"),
                "Insert fewer or smaller rows at a time.",
            );
        }
        PreparedRun {
            table,
            kinds,
            columns,
            rows,
            image,
            first_block: 0,
            space: None,
        }
    }

    /// The encoded columns.
    pub fn image(&self) -> &[u8] {
        &self.image
    }

    /// Whether nothing has to be written before it can be published.
    pub fn is_ready(&self) -> bool {
        self.first_block != 0 || self.image.len() <= INLINE_BYTES_MAX
    }

    /// Writes the run's data pages, if it needs any and has none.
    pub fn write_pages(&mut self) {
        if !self.is_ready() {
            // The table gets its first pages before those of a run.
            kept::end(self.table);
            self.space = Some(SpaceLock::share(self.table));
            let blocks = extent::allocate(self.table, data_page::blocks_for(self.image.len()));
            data_page::write(self.table, blocks, &self.image);
            self.first_block = blocks.first;
        }
    }

    /// Gives the rows their numbers and makes them part of the table, as work of transaction
    /// `xmin`. Returns the number of the first row; the others follow. `flags` are the flags of the
    /// entry, such as frozen.
    pub fn publish(self, xmin: u32, cmin: u32, flags: u32) -> u64 {
        debug_assert!(self.is_ready());
        let (end, tail) = lock_directory_tail(self.table, self.inline_bytes());
        // The last page of the directory is locked here. A serializable reader either has locked
        // the table already, and this check finds its lock, or reads the directory later and finds
        // the entry.
        self.table.check_conflict_in(None);
        let page = DirectoryPage::parse(tail.bytes());
        let (first_row, index) = (page.next_row(), page.count() as u32);
        let inline = (self.first_block == 0).then_some(self.image.as_slice());
        let entry = RunEntry {
            first_row,
            rows: self.rows as u32,
            xmin,
            cmin,
            flags,
            block: if inline.is_some() {
                tail.block()
            } else {
                self.first_block
            },
            bytes: self.image.len() as u32,
            place: 0,
            extra: 0,
        };
        let mut change = ByteChange::begin(self.table, &tail);
        let mut entry = directory::push_entry(&mut change, &tail, entry, inline);
        change.finish();
        entry.extra = tail.block();
        self.publish_to_arena(
            end,
            &entry,
            Position {
                block: tail.block(),
                index,
            },
        );
        first_row
    }

    fn inline_bytes(&self) -> usize {
        if self.first_block == 0 {
            self.image.len()
        } else {
            0
        }
    }

    /// Adds the run to the arena's list, if the list has all runs before it. Otherwise the next
    /// scan completes the list.
    fn publish_to_arena(&self, end: End, entry: &RunEntry, at: Position) {
        let End { meta, cached } = end;
        let Some(cached) = cached else {
            return;
        };
        // The table was sealed in the meantime, so this writer's view of it is out of date.
        if cached.generation() != meta.generation {
            return kept::note_end(self.table, None);
        }
        let (runs, position) = cached.published();
        let adjoins = runs > 0 && cached.run(runs - 1).end_row() == entry.first_row;
        let follows = if meta.part_head != 0 {
            // Whatever the position is, segments of parts may have to be listed before this run.
            adjoins && (position == at || at.index == 0)
        } else {
            position == at
                || (runs == 0
                    && position.block == 0
                    && at.block == meta.directory_head
                    && at.index == 0)
                // The page before was the last one until this append added a page.
                || (at.index == 0 && adjoins)
        };
        let next = Position {
            block: at.block,
            index: at.index + 1,
        };
        if !follows {
            return;
        }
        if segment_of(entry.first_row) == segment_of(entry.end_row() - 1) {
            cached.publish_with_rows(runs, entry, next, self.kinds, self.columns);
            return;
        }
        if !cached.publish(runs, &[*entry], next) {
            return;
        }
        let (mut row, end) = (entry.first_row, entry.first_row + entry.rows as u64);
        while row < end {
            let segment = segment_of(row);
            let from = (row - segment_first_row(segment)) as u32;
            let here = (end - row).min((segment_rows_max(segment) - from) as u64) as usize;
            cached.extend_segment(
                segment,
                self.kinds,
                from,
                self.columns,
                (row - entry.first_row) as usize,
                here,
            );
            row += here as u64;
        }
    }
}

/// Locks the last directory page. If the entry does not fit there, a page is added first.
fn lock_directory_tail(table: OpenTable<'_>, inline_bytes: usize) -> (End, LockedPage) {
    let mut end = kept::end(table);
    let known = end.meta.directory_tail;
    let mut page = LockedPage::exclusive(table, known);
    // A page that leaves the chain keeps its link, and pages are moved only under a lock that
    // conflicts with the lock of this transaction. So a directory page without a link is the last
    // page of the chain.
    if DirectoryPage::try_parse(page.bytes()).is_none_or(|view| view.next().is_some()) {
        drop(page);
        end = kept::renew_end(table);
        page = LockedPage::exclusive(table, end.meta.directory_tail);
    }
    while let Some(next) = DirectoryPage::parse(page.bytes()).next() {
        drop(page);
        page = LockedPage::exclusive(table, next);
    }
    if !DirectoryPage::parse(page.bytes()).has_room(inline_bytes) {
        page = add_directory_page(table, &page);
    }
    if page.block() != known {
        end.meta.directory_tail = page.block();
        kept::note_end(table, Some(end.clone()));
    }
    (end, page)
}

/// Adds a page after the last page of the directory, which is locked. Returns the new page, which
/// is locked too.
fn add_directory_page(table: OpenTable<'_>, last: &LockedPage) -> LockedPage {
    let next_row = DirectoryPage::parse(last.bytes()).next_row();
    let fresh_block = extent::allocate(table, 1).first;
    let fresh = LockedPage::zeroed(table, fresh_block);
    let meta_page = LockedPage::exclusive(table, META_BLOCK);
    let mut change = PageChange::begin(table);
    directory::set_next(change.edit(last), fresh_block);
    directory::initialise_page(change.create(&fresh), next_row);
    metapage::set_directory_tail(change.edit(&meta_page), fresh_block);
    change.finish();
    fresh
}
