//! The route through COPY: PostgreSQL's own `CopyFrom` reads the batch in COPY's binary format,
//! routes partitions, fires triggers and checks constraints. It then calls `multi_insert`, for
//! about a thousand rows at a time.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;

use lanes_wire::{BatchView, ColumnView, Values};
use pgrx::memcxt::PgMemoryContexts;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::{CaughtError, ErrorReport};
use pgrx::prelude::*;
use pgrx::{PgLogLevel, PgSqlErrorCode};

use super::convert::{self, Conversion};
use super::refusal::Refusal;
use super::target::{AppendTarget, Source};
use crate::pg::copy::{CopySource, copy_binary};
use crate::pg::descriptor::Attribute;
use crate::pg::text;
use crate::pg::type_io::TextType;

/// Signature, flags, length of the header extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const NULL_LENGTH: i32 = -1;

/// How far COPY has read the batch.
#[derive(Default)]
struct Progress {
    /// The row that COPY reads next.
    next_row: Cell<usize>,
    /// The column whose value is being written.
    writing: Cell<Option<usize>>,
    /// Whether the batch was refused, by an ERROR that names its place.
    has_refused: Cell<bool>,
}

/// Appends the batch. Returns the number of inserted rows.
pub fn append(
    target: &AppendTarget,
    batch: &BatchView<'_>,
    sources: &[Source],
) -> Result<u64, Refusal> {
    let table = target.table();
    let descriptor = table.descriptor();
    let writers = batch.columns().iter().zip(sources);
    let writers = writers.map(|(column, source)| {
        let attribute = descriptor.attribute(source.attribute);
        FieldWriter::new(column, source.conversion, attribute)
    });
    let progress = Progress::default();
    let mut stream = CopyStream {
        writers: writers.collect(),
        rows: batch.rows(),
        progress: &progress,
        pending: HEADER.to_vec(),
        sent: 0,
        scratch: PgMemoryContexts::new("lanes.append values"),
    };
    // Rows of a table with indexes, and of partitions, are inserted after later rows were read, and
    // triggers may raise errors of their own.
    let is_row_by_row = table.relkind() == pg_sys::RELKIND_RELATION
        && !table.has_indexes()
        && !table.has_triggers();
    let names = batch.columns().iter().map(|column| column.name());
    let copy = AssertUnwindSafe(|| copy_binary(table, names, &mut stream));
    let place = AssertUnwindSafe((&progress, batch));
    let rows = PgTryBuilder::new(copy)
        .catch_others(move |error| {
            let (progress, batch) = *place;
            raise_at_place(error, progress, batch, is_row_by_row)
        })
        .execute();
    Ok(rows)
}

/// PostgreSQL's `ERRCODE_TO_CATEGORY`: the first two of five characters of six bits.
fn category(code: PgSqlErrorCode) -> i32 {
    code as i32 & 0xfff
}

/// Raises an ERROR of COPY again, with the row and column of the batch that it is about, if they
/// are known. PostgreSQL's message about a value names neither, and the context of the message is
/// lost on the way through Rust.
fn raise_at_place(
    error: CaughtError,
    progress: &Progress,
    batch: &BatchView<'_>,
    is_row_by_row: bool,
) -> u64 {
    let next_row = progress.next_row.get();
    let report = match &error {
        CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => report,
        CaughtError::RustPanic { .. } => error.rethrow(),
    };
    let place = match progress.writing.get() {
        Some(index) => {
            let column = batch.columns()[index].name();
            Some(format!("row {}, column \"{column}\"", next_row + 1))
        }
        None if is_row_by_row && next_row > 0 => Some(format!("row {}", next_row)),
        None => None,
    };
    let code = report.sql_error_code();
    let is_of_data = [
        PgSqlErrorCode::ERRCODE_DATA_EXCEPTION,
        PgSqlErrorCode::ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION,
        PgSqlErrorCode::ERRCODE_WITH_CHECK_OPTION_VIOLATION,
    ]
    .into_iter()
    .any(|class| category(class) == category(code));
    match place {
        Some(place) if is_of_data && !progress.has_refused.get() => {
            let mut placed = ErrorReport::new(code, format!("{place}: {}", report.message()), "");
            if let Some(detail) = report.detail() {
                placed = placed.set_detail(detail);
            }
            if let Some(hint) = report.hint() {
                placed = placed.set_hint(hint);
            }
            placed.report(PgLogLevel::ERROR);
            unreachable!("an ERROR does not return")
        }
        _ => error.rethrow(),
    }
}

/// The batch as a stream of COPY's binary format, made one row at a time. So it takes the memory of
/// the longest row, and COPY has read no further than the row whose error it reports.
struct CopyStream<'a> {
    writers: Vec<FieldWriter<'a>>,
    rows: usize,
    progress: &'a Progress,
    /// Bytes of the current row, of which `sent` have been handed out.
    pending: Vec<u8>,
    sent: usize,
    /// Memory of type functions; reset after each value that used it.
    scratch: PgMemoryContexts,
}

impl CopySource for CopyStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> usize {
        if let Err(refusal) = self.write_row() {
            self.progress.has_refused.set(true);
            refusal.report()
        }
        let rest = &self.pending[self.sent..];
        let bytes = rest.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&rest[..bytes]);
        self.sent += bytes;
        bytes
    }
}

impl CopyStream<'_> {
    /// Writes the next row, if there is one and the row before was read.
    fn write_row(&mut self) -> Result<(), Refusal> {
        if self.sent < self.pending.len() {
            return Ok(());
        }
        self.pending.clear();
        self.sent = 0;
        let row = self.progress.next_row.get();
        if row == self.rows {
            return Ok(());
        }
        self.pending
            .extend_from_slice(&(self.writers.len() as i16).to_be_bytes());
        for (index, writer) in self.writers.iter().enumerate() {
            self.progress.writing.set(Some(index));
            writer.write(row, &mut self.pending, &mut self.scratch)?;
        }
        self.progress.writing.set(None);
        self.progress.next_row.set(row + 1);
        Ok(())
    }
}

/// Writes the values of a column of the batch as fields of COPY's format.
struct FieldWriter<'a> {
    view: &'a ColumnView<'a>,
    conversion: Conversion,
    /// For [`Conversion::Input`], and text of a bounded length.
    text_type: Option<TextType>,
}

impl<'a> FieldWriter<'a> {
    fn new(view: &'a ColumnView<'a>, conversion: Conversion, attribute: &Attribute) -> Self {
        // Text of a bounded length goes through its input function too, whose ERROR names the column.
        let is_bounded = conversion == Conversion::Text && attribute.atttypmod >= 0;
        let is_by_input = conversion == Conversion::Input || is_bounded;
        FieldWriter {
            view,
            conversion,
            text_type: is_by_input.then(|| TextType::of(attribute)),
        }
    }

    /// Writes the field of a row: its length, then the bytes that the type's receive function reads.
    fn write(
        &self,
        row: usize,
        out: &mut Vec<u8>,
        scratch: &mut PgMemoryContexts,
    ) -> Result<(), Refusal> {
        if self.view.is_null(row) {
            out.extend_from_slice(&NULL_LENGTH.to_be_bytes());
            return Ok(());
        }
        if let Some(width) = self.conversion.width() {
            let value = convert::fixed(self.view, self.conversion, row)?;
            put(out, &value.to_be_bytes()[8 - width..]);
            return Ok(());
        }
        match (self.view.values(), &self.text_type) {
            (Values::Bool(bits), _) => put(out, &[u8::from(bits.get(row))]),
            (Values::Fixed { .. }, Some(text_type)) => {
                // Integers into numeric, in digits.
                let digits = convert::integer(self.view, row).to_string();
                text_type.resend(digits.as_bytes(), scratch, |field| put(out, field));
            }
            (Values::Fixed { width, bytes }, None) => put(out, &bytes[row * width..][..*width]),
            (_, Some(text_type)) => {
                let item = self.view.item(row).unwrap_or_default();
                let item = text::server_text(item);
                text_type.resend(&item, scratch, |field| put(out, field));
            }
            (_, None) => {
                let item = self.view.item(row).unwrap_or_default();
                match self.conversion {
                    Conversion::Text => put(out, &text::client_text(item)),
                    _ => put(out, item),
                }
            }
        }
        Ok(())
    }
}

fn put(out: &mut Vec<u8>, field: &[u8]) {
    out.extend_from_slice(&(field.len() as i32).to_be_bytes());
    out.extend_from_slice(field);
}
