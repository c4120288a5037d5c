//! Rows in WAL records for logical decoding: which are logged, and in what form.
//!
//! Where `wal_level` is `logical`, each change of a lanes table's rows is logged once more, as the rows themselves:
//! their pages are written by generic WAL records, of which decoding knows nothing. A record is written in the
//! transaction of the change, and decoding queues its rows only if that commits. So a record needs no place among
//! those of the pages.
//!
//! | change | record |
//! |---|---|
//! | INSERT, COPY, `lanes.append` | one a run, with the run's image |
//! | INSERT … ON CONFLICT | when the row is sure to stay |
//! | UPDATE | one a row: the image of the new version, and that of the old row as the replica identity demands |
//! | DELETE | one a row, with the image of the old row as the replica identity demands |
//! | TRUNCATE | PostgreSQL's own |
//!
//! Nothing is logged of rows that only change their place (sealing, offload, VACUUM, CLUSTER, rewrites by ALTER
//! TABLE), nor of rows that retention drops. As of heap, all permanent tables are logged, published or not: any
//! slot may want them.
//!
//! The form of a record stands at the head of [`record`].

use lanes_columnar::column::Column;
use lanes_columnar::image::{self, Image};

use super::row_columns::RowColumns;
use crate::error;
use crate::pg::datum::{Outlet, RowOutlet};
use crate::pg::index_columns;
use crate::pg::row_log::{
    self, Action, Belonging, Decoding, RECORD_BYTES_MAX, RowDecoder, TupleLayout,
};
use crate::pg::slot::Slot;
use crate::pg::table::{OpenTable, ReplicaIdentity};
use crate::pg::transaction;

mod record;

use record::{Head, LoggedAttribute};

/// Registers the reader of the records. Called from `_PG_init`.
pub fn register() {
    row_log::register::<LoggedRows>();
}

/// Logs rows that transaction `xid` inserts: the image of their columns. `xid` is the current
/// transaction or a parent of it.
pub fn log_insert(table: OpenTable<'_>, xid: u32, image: &[u8]) {
    if table.is_logically_logged() {
        let attributes = record::attributes(table.descriptor());
        log(table, attributes, Action::Insert, xid, (image, &[]));
    }
}

/// Logs the row in a slot, which the current transaction has inserted.
pub fn log_inserted_slot(table: OpenTable<'_>, slot: Slot<'_>, xid: u32) {
    if table.is_logically_logged() {
        let rows = RowColumns::of_slot(table, slot);
        let image = image_of(rows.columns());
        log_insert(table, xid, &image);
    }
}

/// Logs that the current transaction updates a row: the image of its new version, and the logged
/// image of the old one.
pub fn log_update(table: OpenTable<'_>, new: &[u8], old: OldImage) {
    if let OldImage::Logged(attributes, old) = old {
        let xid = transaction::current_xid();
        log(table, attributes, Action::Update, xid, (new, &old));
    }
}

/// Logs that the current transaction deletes a row.
pub fn log_delete(table: OpenTable<'_>, old: OldImage) {
    if let OldImage::Logged(attributes, old) = old {
        let xid = transaction::current_xid();
        log(table, attributes, Action::Delete, xid, (&[], &old));
    }
}

/// The logged image of a row before its change.
pub enum OldImage {
    /// The change is not logged.
    Unlogged,
    /// The columns of the table, and the image of the row, which is empty if the new version is
    /// enough to find it. The columns are read from the catalog before pages are locked.
    Logged(Vec<LoggedAttribute>, Vec<u8>),
}

/// The logged image of a row that is deleted, or updated to the values in `new`. Changes of the
/// table are logged.
pub fn old_image(
    table: OpenTable<'_>,
    old: &RowOutlet,
    row: usize,
    new: Option<Slot<'_>>,
) -> OldImage {
    let keeps_key = |columns: &[usize]| {
        new.is_some_and(|slot| index_columns::have_equal_bytes(table, old, row, slot, columns))
    };
    let mut rows = RowColumns::of(table);
    let attributes = record::attributes(table.descriptor());
    match table.replica_identity() {
        ReplicaIdentity::Columns(columns) if !columns.is_empty() && !keeps_key(&columns) => {
            rows.push_row(old, row, |column| columns.contains(&column));
        }
        ReplicaIdentity::Full => rows.push_row(old, row, |_| true),
        ReplicaIdentity::Columns(_) | ReplicaIdentity::Nothing => {
            return OldImage::Logged(attributes, Vec::new());
        }
    }
    OldImage::Logged(attributes, image_of(rows.columns()))
}

/// The image of one row.
fn image_of(columns: &[Column]) -> Vec<u8> {
    let mut bytes = Vec::new();
    if image::encode(columns, 1, &mut bytes).is_err() {
        refuse_length();
    }
    bytes
}

fn refuse_length() -> ! {
    error::too_large(
        "the rows do not fit into one WAL record for logical decoding",
        "Insert or update smaller rows, use REPLICA IDENTITY DEFAULT, or set wal_level to replica.",
    );
}

fn log(
    table: OpenTable<'_>,
    attributes: Vec<LoggedAttribute>,
    action: Action,
    xid: u32,
    (new, old): (&[u8], &[u8]),
) {
    let head = Head {
        rows: Belonging {
            xid,
            top_xid: transaction::top_xid().unwrap_or(xid),
            file: table.locator(),
        },
        attributes,
        old_bytes: old.len(),
    }
    .to_bytes();
    if head.len() + new.len() + old.len() > RECORD_BYTES_MAX {
        refuse_length();
    }
    row_log::write(action, &[&head, new, old]);
}

/// Rows of an image, ready to become tuples.
struct DecodedRows {
    outlet: RowOutlet,
    rows: usize,
    /// The lanes of the outlet lie here.
    _columns: Vec<Column>,
}

impl DecodedRows {
    /// Decodes an image. `None`: there is none.
    fn read(bytes: &[u8], attributes: &[LoggedAttribute]) -> Result<Option<DecodedRows>, String> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let image = Image::parse(bytes).map_err(|failure| failure.to_string())?;
        if image.columns() != attributes.len() {
            return Err(format!(
                "an image has {} columns, not {}",
                image.columns(),
                attributes.len()
            ));
        }
        let mut columns = Vec::with_capacity(attributes.len());
        for (index, attribute) in attributes.iter().enumerate() {
            let number = index + 1;
            let kind = attribute
                .kind()
                .ok_or_else(|| format!("column {number} is of no known kind"))?;
            let mut column = Column::new(kind);
            image
                .decode(index, kind, None, &mut column)
                .map_err(|failure| format!("column {number}: {failure}"))?;
            columns.push(column);
        }
        let outlets: Vec<Outlet> = attributes.iter().map(|one| one.outlet()).collect();
        Ok(Some(DecodedRows {
            outlet: RowOutlet::new(&outlets, columns.iter().map(Column::lane)),
            rows: image.rows(),
            _columns: columns,
        }))
    }
}

/// The reader of the records.
struct LoggedRows;

impl RowDecoder for LoggedRows {
    fn decode(record: &[u8], decoding: &Decoding<'_>) -> Result<(), String> {
        let (head, new, old) = Head::parse(record)?;
        let Some(queue) = decoding.accept(head.rows) else {
            return Ok(());
        };
        let new = DecodedRows::read(new, &head.attributes)?;
        let old = DecodedRows::read(old, &head.attributes)?;
        if let (Some(new), Some(old)) = (&new, &old)
            && new.rows != old.rows
        {
            return Err(format!(
                "it has {} new rows and {} old ones",
                new.rows, old.rows
            ));
        }
        let mut layout = TupleLayout::new(head.attributes.iter().map(|one| one.in_tuple()));
        // A DELETE without a replica identity has no image, but is a change of one row all the
        // same.
        let rows = new.as_ref().map_or(1, |new| new.rows);
        for row in 0..rows {
            let at = |of: &Option<DecodedRows>| match of {
                Some(of) if row < of.rows => Some(row),
                _ => None,
            };
            let (old_at, new_at) = (at(&old), at(&new));
            queue.push(
                &mut layout,
                old.as_ref().map(|of| &of.outlet).zip(old_at),
                new.as_ref().map(|of| &of.outlet).zip(new_at),
            );
        }
        Ok(())
    }
}
