//! Decoding rows from pages or from object storage, for one backend.

use std::cell::RefCell;
use std::ops::Range;

use lanes_columnar::arena::RunEntry;
use lanes_columnar::column::Column;
use lanes_columnar::error::Error;
use lanes_columnar::image::Image;
use lanes_columnar::limits::VECTOR_ROWS;

use super::runs::Runs;
use super::shape::TableShape;
use super::visibility::{XidStatus, xid_status};
use crate::error;
use crate::pg::page::LockedPage;
use crate::pg::table::OpenTable;
use crate::remote::recall;
use crate::storage::directory::{
    self, DirectoryPage, FLAG_DEAD, FLAG_FROZEN, FLAG_INLINE, FLAG_PACKED, FLAG_REMOTE, FLAG_SEALED,
};
use crate::storage::part_image::ImagePlace;
use crate::storage::{data_page, part_image};

/// How rows in object storage are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Remote {
    /// The caller waits for them.
    Recall,
    /// They become NULLs, because nobody will read them.
    Leave,
}

/// Decodes rows of one run and appends them to `columns`. Of a sealed run any rows can be decoded,
/// of an open run only all. The rows of a dead run are NULLs, because nobody sees them.
fn decode_run(
    table: OpenTable<'_>,
    shape: &TableShape,
    run: &RunEntry,
    rows: Range<usize>,
    remote: Remote,
    columns: &mut [Column],
) {
    let before = columns.first().map_or(0, Column::rows);
    {
        if run.flags & FLAG_DEAD == 0 && (run.flags & FLAG_REMOTE == 0 || remote == Remote::Recall)
        {
            let decoded = try_decode_run(table, shape, run, rows.clone(), columns);
            let Err(failure) = decoded else {
                return;
            };
            // VACUUM may have marked the run dead and reused its blocks since the caller read its
            // entry. If the transaction that inserted it was rolled back, so were columns that it
            // had added, and others may have taken their places. In either case nobody sees the
            // rows.
            if !is_rolled_back(run) && !directory::is_dead_by_now(table, run) {
                error::corrupt(&failure_of(run, &failure));
            }
        }
    }
    for column in columns {
        column.truncate(before);
        column.push_repeated(None, rows.len());
    }
}

/// Whether the transaction that inserted a run's rows was rolled back.
fn is_rolled_back(run: &RunEntry) -> bool {
    run.flags & (FLAG_SEALED | FLAG_FROZEN) == 0 && xid_status(run.xmin) == XidStatus::Aborted
}

/// The message about a run that cannot be read.
pub fn failure_of(run: &RunEntry, failure: &dyn std::fmt::Display) -> String {
    format!("the run at row {}: {failure}", run.first_row)
}

/// Appends a run's image to `bytes`, which is empty. If the image is in object storage, the caller
/// waits for it.
pub fn read_image(table: OpenTable<'_>, run: &RunEntry, bytes: &mut Vec<u8>) -> Result<(), String> {
    {
        if run.flags & FLAG_REMOTE != 0 {
            *bytes = recall::image(table, run)?;
        } else if run.flags & FLAG_PACKED != 0 {
            part_image::read_image_of_run(table, run, bytes)?;
        } else if run.flags & FLAG_INLINE != 0 {
            let page = LockedPage::share(table, run.block);
            let view = DirectoryPage::try_parse(page.bytes())
                .ok_or("its directory page is another by now")?;
            bytes.extend_from_slice(view.inline_image(run));
        } else {
            let length = run.bytes as usize;
            data_page::read(table, run.block, 0..length, bytes)?;
        }
    }
    Ok(())
}

/// Decodes all rows of a run. The result has no columns if nobody sees the rows and they cannot be decoded.
///
/// # Errors
/// Why the rows cannot be decoded.
pub fn try_decode(
    table: OpenTable<'_>,
    shape: &TableShape,
    run: &RunEntry,
) -> Result<Vec<Column>, String> {
    let mut columns = shape.columns();
    let decoded = try_decode_run(table, shape, run, 0..run.rows as usize, &mut columns);
    match decoded {
        Ok(()) => Ok(columns),
        Err(_) if is_rolled_back(run) || directory::is_dead_by_now(table, run) => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}

fn try_decode_run(
    table: OpenTable<'_>,
    shape: &TableShape,
    run: &RunEntry,
    rows: Range<usize>,
    columns: &mut [Column],
) -> Result<(), String> {
    let mut bytes = Vec::with_capacity(run.bytes as usize);
    read_image(table, run, &mut bytes)?;
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

/// Rows decoded from images: their columns, and the number of their first row.
pub struct DecodedRows {
    pub first_row: u64,
    pub columns: Vec<Column>,
}

/// The most bytes of decoded rows that a backend keeps for the next look-up.
const KEPT_BYTES_MAX: usize = 32 * 1024 * 1024;

impl DecodedRows {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, Column::rows)
    }

    /// Whether the rows are worth keeping for the next look-up.
    pub fn is_small(&self) -> bool {
        self.columns.iter().map(Column::byte_len).sum::<usize>() <= KEPT_BYTES_MAX
    }
}

thread_local! {
    /// Memory for images of which single rows are read. Most of its bytes are of earlier images.
    static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The most bytes of such memory that a backend keeps.
const ROOM_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Decodes one row of a sealed run, and reads only the bytes of the run's image that the row needs. `kept` is the image
/// if the arena keeps it. The checksum of an image on pages is not verified. Returns `None` if the row cannot be
/// decoded so. The caller then reads the whole image, which reports damage.
pub fn decode_sealed_row(
    table: OpenTable<'_>,
    shape: &TableShape,
    run: &RunEntry,
    row: u64,
    kept: Option<&[u8]>,
) -> Option<DecodedRows> {
    let place = (row - run.first_row) as usize;
    let of_image = |image: &[u8]| {
        let image = Image::reparse(image).ok()?;
        if image.rows() != run.rows as usize {
            return None;
        }
        let mut columns = shape.columns();
        for (index, column) in columns.iter_mut().enumerate() {
            let (kind, missing) = (shape.kinds[index], shape.missing[index].as_deref());
            let decoded = image.decode_range(index, kind, missing, place..place + 1, column);
            decoded.ok()?;
        }
        Some(DecodedRows {
            first_row: row,
            columns,
        })
    };
    if let Some(image) = kept {
        return of_image(image);
    }
    if run.flags & (FLAG_REMOTE | FLAG_DEAD | FLAG_PACKED) != FLAG_PACKED {
        return None;
    }
    let stored = ImagePlace::of_run(table, run).ok()?;
    let bytes = run.bytes as usize;
    ROOM.with_borrow_mut(|room| {
        if room.len() < bytes {
            room.resize(bytes, 0);
        }
        let image = &mut room[..bytes];
        let rows = place..place + 1;
        let fetched = Image::fetch(image, &shape.kinds, rows, &mut |image, range| {
            let read = stored.copy(table, range.clone(), &mut image[range]);
            read.map_err(|_| Error::Malformed("its pages are of another run by now"))
        });
        let decoded = fetched.ok().and_then(|()| of_image(image));
        // The pages of a dead part are used again. No checksum shows that some bytes are of another image, so the part
        // must still have been alive after the last page was read.
        let decoded = decoded.filter(|_| !directory::is_dead_by_now(table, run));
        if room.len() > ROOM_BYTES_MAX {
            *room = Vec::new();
        }
        decoded
    })
}

/// Decodes the runs that overlap the rows `[from, to)`. The result covers all of these rows. Rows
/// that no run holds any more, and rows of dead runs, are NULLs.
pub fn decode_rows(
    table: OpenTable<'_>,
    shape: &TableShape,
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
    // Of a sealed run, only the vectors that contain wanted rows are decoded. They are decoded
    // whole: reading the image costs more than decoding the rows around one that is fetched by its
    // number, and the next row that is fetched often lies among them.
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
        decode_run(table, shape, &run, rows, remote, &mut columns);
        next = end;
    }
    pad(&mut columns, to.saturating_sub(next));
    DecodedRows { first_row, columns }
}
