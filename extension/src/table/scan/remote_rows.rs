//! Segments of which some rows are in object storage.
//!
//! Runs that zones rule out are not asked for. If no remote row of the segment is wanted, its local
//! rows are read without the remote ones. Otherwise the segment is read as a whole, because the
//! arena has all rows of a segment up to some row, or none.

use lanes_columnar::arena::RunEntry;
use lanes_columnar::limits::{segment_first_row, segment_of};
use lanes_columnar::streamed::StreamMemory;
use pgrx::pg_sys;

use super::{ByZone, Range, Scan, Wanted};
use crate::gucs;
use crate::remote::recall;
use crate::storage::directory::FLAG_REMOTE;
use crate::table::reader::{Access, Content, SegmentView, ViewRequest};

impl Scan<'_> {
    /// Opens the window on a segment of which some rows are in object storage. Removes from
    /// `ranges` the rows that are left out, and those that their zones rule out; `None`: nothing
    /// remains.
    pub fn open_partly_remote(
        &self,
        content: &Content,
        segment: u32,
        ranges: &mut Vec<Range>,
        by_zone: Option<ByZone<'_>>,
        memory: &mut StreamMemory,
    ) -> Option<SegmentView> {
        if let Some(rules_out) = by_zone.map(|by_zone| by_zone.rules_out) {
            ranges.retain(|range| {
                let run = remote_run(content, range.from);
                !run.is_some_and(|run| self.rules_out_run(content, &run, rules_out))
            });
        }
        if self.leaves_remote() {
            let before = ranges.len();
            ranges.retain(|range| remote_run(content, range.from).is_none());
            if ranges.len() < before {
                recall::warn_of_rows_left_out(self.reader.table);
            }
        }
        let (from, to) = (ranges.first()?.from, ranges.last()?.to);
        let is_needed = |range: &Range| remote_run(content, range.from).is_some();
        if is_resident(content, segment, to) {
            return Some(self.view(content, from..to, Access::Resident));
        }
        if !ranges.iter().any(is_needed) {
            return Some(self.view(content, from..to, Access::LocalOnly));
        }
        self.ask_ahead(content, segment, by_zone);
        Some(self.open_within_share(content, (from, to), Wanted::Many, memory))
    }

    /// Opens a view of rows of one segment.
    pub(super) fn view(
        &self,
        content: &Content,
        rows: std::ops::Range<u64>,
        access: Access<'_>,
    ) -> SegmentView {
        let request = ViewRequest {
            reader: &self.reader,
            content,
            rows,
            access,
        };
        request.open()
    }

    /// Whether rows in object storage are left out. Statements that change, lock or rewrite rows
    /// never leave them out, because rows that such a statement does not see would be lost.
    pub fn leaves_remote(&self) -> bool {
        gucs::recall_skips()
            && !self
                .reader
                .table
                .is_locked_by_me(pg_sys::RowShareLock, true)
    }

    /// Asks for the remote segments that this scan needs next, beginning with `segment`, so that
    /// several are fetched at once.
    fn ask_ahead(&self, content: &Content, segment: u32, by_zone: Option<ByZone<'_>>) {
        /// The most segments that are asked for at a time.
        const AHEAD: usize = 8;
        /// The most runs that are examined to find them.
        const LOOKS: usize = 64;
        let first_row = segment_first_row(segment);
        let first = content.runs.first_ending_after(first_row);
        let ahead = (first..content.runs.len())
            .take(LOOKS)
            .map(|index| content.runs.get(index))
            .take_while(|run| run.first_row < self.bounds.1)
            .filter(|run| run.flags & FLAG_REMOTE != 0 && run.end_row() > self.bounds.0)
            .filter(|run| !by_zone.is_some_and(|by_zone| self.is_spared(content, run, by_zone)))
            .filter(|run| !is_resident(content, segment_of(run.first_row), run.end_row()))
            .filter(|run| !is_kept(content, run.first_row));
        for run in ahead.take(AHEAD) {
            recall::ask_ahead(self.reader.table, &content.meta, &run);
        }
    }
}

/// Whether some of the rows `[from, to)` are in object storage.
pub fn holds_remote(content: &Content, from: u64, to: u64) -> bool {
    content.parts.has_remote()
        && (content.runs.first_ending_after(from)..content.runs.len())
            .map(|index| content.runs.get(index))
            .take_while(|run| run.first_row < to)
            .any(|run| run.flags & FLAG_REMOTE != 0)
}

/// The run of a row, if it is in object storage.
fn remote_run(content: &Content, row: u64) -> Option<RunEntry> {
    let (_, run) = content.run_of(row)?;
    (run.flags & FLAG_REMOTE != 0).then_some(run)
}

/// Whether the arena keeps the image of the run that begins at a row.
fn is_kept(content: &Content, first_row: u64) -> bool {
    let cached = content.runs.cached();
    let images = cached.and_then(|cached| cached.pin_images(segment_of(first_row)));
    images.is_some_and(|images| images.of_run(first_row).is_some())
}

/// Whether the arena has the rows of a segment up to `to`.
pub fn is_resident(content: &Content, segment: u32, to: u64) -> bool {
    let cached = content.runs.cached();
    let pinned = cached.and_then(|cached| cached.pin_segment(segment));
    pinned.is_some_and(|pinned| segment_first_row(segment) + pinned.rows_resident() as u64 >= to)
}
