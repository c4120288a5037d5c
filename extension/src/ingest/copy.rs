//! Through COPY: the batch is told row by row, in COPY's binary format, to Postgres's own `CopyFrom`, which routes
//! partitions, fires triggers and checks constraints. What it then calls is `multi_insert`, about a thousand rows at a time.
//!
//! The callback that COPY reads from has no argument of its own, so the batch under way is named by a thread-local. Appends may
//! nest (a trigger may append too): each puts back what it found.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::panic::AssertUnwindSafe;
use std::ptr;

use lanes_wire::{BatchView, ColumnView, Values};
use pgrx::memcxt::PgMemoryContexts;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::{CaughtError, ErrorReport};
use pgrx::prelude::*;
use pgrx::{PgLogLevel, PgSqlErrorCode};

use super::convert::{self, Conversion};
use super::refusal::Refusal;
use super::target::{Source, Target};
use crate::pg::{ports, text};

/// Signature, flags, length of the header extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const NULL_LENGTH: i32 = -1;

thread_local! {
    static CURRENT: Cell<*mut Teller<'static>> = const { Cell::new(ptr::null_mut()) };
}

/// Makes a teller the one that COPY reads from, for as long as the value lives.
struct Turn {
    before: *mut Teller<'static>,
}

impl Turn {
    fn begin(teller: *mut Teller<'_>) -> Turn {
        Turn {
            before: CURRENT.replace(teller.cast()),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// Appends the batch; returns the rows that came through.
pub fn append(target: &Target, batch: &BatchView<'_>, sources: &[Source]) -> Result<u64, Refusal> {
    let relation = target.relation();
    let mut teller = Teller {
        writers: batch
            .columns()
            .iter()
            .zip(sources)
            .map(|(column, source)| {
                // SAFETY: the index is one of the open table's attributes.
                let attribute =
                    unsafe { ports::TupleDescAttr((*relation).rd_att, source.attribute) };
                FieldWriter::new(column, source.conversion, attribute)
            })
            .collect(),
        rows: batch.rows(),
        next_row: 0,
        pending: HEADER.to_vec(),
        told: 0,
        writing: None,
        has_refused: false,
        scratch: PgMemoryContexts::new("lanes.append values"),
    };
    let turn = Turn::begin(&raw mut teller);
    // SAFETY: the relation is open and locked as for INSERT; lists and nodes are made in the current memory context; the teller lives
    // until COPY ends, and after an ERROR nobody reads from it.
    let copy = || unsafe {
        let mut names: *mut pg_sys::List = ptr::null_mut();
        for column in batch.columns() {
            names = pg_sys::lappend(names, string_node(column.name()).cast());
        }
        let format = pg_sys::makeDefElem(text("format"), string_node("binary").cast(), -1);
        let options = pg_sys::lappend(ptr::null_mut(), format.cast());
        let parse_state = pg_sys::make_parsestate(ptr::null_mut());
        pg_sys::addRangeTableEntryForRelation(
            parse_state,
            relation,
            pg_sys::RowExclusiveLock as i32,
            ptr::null_mut(),
            false,
            false,
        );
        let copy = pg_sys::BeginCopyFrom(
            parse_state,
            relation,
            ptr::null_mut(),
            ptr::null(),
            false,
            Some(tell),
            names,
            options,
        );
        let rows = pg_sys::CopyFrom(copy);
        pg_sys::EndCopyFrom(copy);
        pg_sys::free_parsestate(parse_state);
        rows
    };
    // Rows of a table with indexes, and of partitions, are inserted after others were read; triggers may fail by
    // themselves.
    // SAFETY: the relation is open.
    let is_row_by_row = unsafe {
        let class = (*relation).rd_rel;
        let is_plain = (*class).relkind as u8 == pg_sys::RELKIND_RELATION;
        is_plain && !(*class).relhasindex && !(*class).relhastriggers
    };
    let rows = PgTryBuilder::new(AssertUnwindSafe(copy))
        .catch_others(move |error| raise_at_place(error, is_row_by_row))
        .execute();
    drop(turn);
    Ok(rows)
}

/// PostgreSQL's `ERRCODE_TO_CATEGORY`: the first two of five characters of six bits.
fn category(code: PgSqlErrorCode) -> i32 {
    code as i32 & 0xfff
}

/// Raises an ERROR of COPY again, with the row and column of the batch that it is about, where these are known: what
/// PostgreSQL finds wrong with a value names neither, and its context is lost on the way through Rust.
fn raise_at_place(error: CaughtError, is_row_by_row: bool) -> u64 {
    // SAFETY: the turn of `append` is on, and its teller alive.
    let teller = unsafe { &*CURRENT.get() };
    let report = match &error {
        CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => report,
        CaughtError::RustPanic { .. } => error.rethrow(),
    };
    let place = match teller.writing {
        Some(index) => {
            let column = teller.writers[index].view.name();
            Some(format!("row {}, column \"{column}\"", teller.next_row + 1))
        }
        None if is_row_by_row && teller.next_row > 0 => Some(format!("row {}", teller.next_row)),
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
        Some(place) if is_of_data && !teller.has_refused => {
            let mut told = ErrorReport::new(code, format!("{place}: {}", report.message()), "");
            if let Some(detail) = report.detail() {
                told = told.set_detail(detail);
            }
            if let Some(hint) = report.hint() {
                told = told.set_hint(hint);
            }
            told.report(PgLogLevel::ERROR);
            unreachable!("an ERROR does not return")
        }
        _ => error.rethrow(),
    }
}

/// A copy of `value` in the current memory context.
fn text(value: &str) -> *mut std::ffi::c_char {
    // SAFETY: pstrdup's length twin copies `len` bytes and adds the NUL.
    unsafe { pg_sys::pnstrdup(value.as_ptr().cast(), value.len()) }
}

fn string_node(value: &str) -> *mut pg_sys::String {
    // SAFETY: the node keeps the copy.
    unsafe { pg_sys::makeString(text(value)) }
}

/// COPY asks for at least `minimum` and at most `maximum` bytes; 0 is the end.
#[pg_guard]
unsafe extern "C-unwind" fn tell(buffer: *mut c_void, _minimum: c_int, maximum: c_int) -> c_int {
    // SAFETY: COPY calls this only while `append` waits for it, so a turn is on and its teller alive; the buffer has `maximum` bytes.
    unsafe {
        let teller = &mut *CURRENT.get();
        let buffer = std::slice::from_raw_parts_mut(buffer.cast::<u8>(), maximum as usize);
        match teller.tell(buffer) {
            Ok(bytes) => bytes as c_int,
            Err(refusal) => {
                teller.has_refused = true;
                refusal.report()
            }
        }
    }
}

/// The batch as a stream of COPY's binary format, made one row at a time: memory stays that of the longest row, and COPY has read no
/// further than the row whose error it reports.
struct Teller<'a> {
    writers: Vec<FieldWriter<'a>>,
    rows: usize,
    next_row: usize,
    /// Bytes of the row under way, of which `told` have been handed out.
    pending: Vec<u8>,
    told: usize,
    /// The column whose value is being written.
    writing: Option<usize>,
    /// Whether the batch was refused, by an ERROR that names its place.
    has_refused: bool,
    /// What type functions leave behind; emptied after each row that used it.
    scratch: PgMemoryContexts,
}

impl Teller<'_> {
    fn tell(&mut self, buffer: &mut [u8]) -> Result<usize, Refusal> {
        if self.told == self.pending.len() {
            self.pending.clear();
            self.told = 0;
            if self.next_row == self.rows {
                return Ok(0);
            }
            self.pending
                .extend_from_slice(&(self.writers.len() as i16).to_be_bytes());
            for (index, writer) in self.writers.iter().enumerate() {
                self.writing = Some(index);
                writer.write(self.next_row, &mut self.pending, &mut self.scratch)?;
            }
            self.writing = None;
            self.next_row += 1;
        }
        let rest = &self.pending[self.told..];
        let bytes = rest.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&rest[..bytes]);
        self.told += bytes;
        Ok(bytes)
    }
}

/// Functions of a type that is read from text.
struct TextType {
    input: pg_sys::Oid,
    parameter: pg_sys::Oid,
    modifier: i32,
    send: pg_sys::Oid,
}

struct FieldWriter<'a> {
    view: &'a ColumnView<'a>,
    conversion: Conversion,
    /// For [`Conversion::Input`], and text of a bounded length.
    text_type: Option<TextType>,
}

impl<'a> FieldWriter<'a> {
    fn new(
        view: &'a ColumnView<'a>,
        conversion: Conversion,
        attribute: &pg_sys::FormData_pg_attribute,
    ) -> Self {
        // Text of a bounded length too: its input function is told of its column, and COPY's own check is not.
        let is_bounded = conversion == Conversion::Text && attribute.atttypmod >= 0;
        let text_type = (conversion == Conversion::Input || is_bounded).then(|| {
            let (mut input, mut parameter, mut send) =
                (pg_sys::InvalidOid, pg_sys::InvalidOid, pg_sys::InvalidOid);
            let mut is_varlena = false;
            // SAFETY: catalog look-ups of the attribute's type; a type without such functions raises an ERROR.
            unsafe {
                pg_sys::getTypeInputInfo(attribute.atttypid, &mut input, &mut parameter);
                pg_sys::getTypeBinaryOutputInfo(attribute.atttypid, &mut send, &mut is_varlena);
            }
            TextType {
                input,
                parameter,
                modifier: attribute.atttypmod,
                send,
            }
        });
        FieldWriter {
            view,
            conversion,
            text_type,
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
                put_input(
                    out,
                    convert::integer(self.view, row).to_string().as_bytes(),
                    text_type,
                    scratch,
                );
            }
            (Values::Fixed { width, bytes }, None) => put(out, &bytes[row * width..][..*width]),
            (_, Some(text_type)) => {
                let item = self.view.item(row).unwrap_or_default();
                put_input(out, &text::server_text(item), text_type, scratch);
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

/// Reads text as the type does, and writes the value as the type sends it.
fn put_input(out: &mut Vec<u8>, item: &[u8], text_type: &TextType, scratch: &mut PgMemoryContexts) {
    // SAFETY: input functions take a NUL-terminated string (verified text holds no NUL); send functions give a bytea. Both are copied
    // before the memory context that holds them is emptied.
    unsafe {
        scratch.switch_to(|_| {
            let string = pg_sys::pnstrdup(item.as_ptr().cast(), item.len());
            let value = pg_sys::OidInputFunctionCall(
                text_type.input,
                string,
                text_type.parameter,
                text_type.modifier,
            );
            let sent = pg_sys::OidSendFunctionCall(text_type.send, value);
            put(out, pgrx::varlena::varlena_to_byte_slice(sent.cast()));
        });
        scratch.reset();
    }
}
