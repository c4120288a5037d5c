//! COPY into a table, from bytes that this library makes.
//!
//! The callback that COPY reads from has no argument of its own, so a thread-local names the source of the COPY that is
//! running. COPYs may nest, as a trigger may start another one: each puts back what it found.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::table::OpenTable;

/// Bytes of a COPY.
pub trait CopySource {
    /// Writes the next bytes to `buffer` and returns how many; 0 at the end.
    fn read(&mut self, buffer: &mut [u8]) -> usize;
}

type Source = *mut (dyn CopySource + 'static);

thread_local! {
    static SOURCE: Cell<Option<Source>> = const { Cell::new(None) };
}

/// Names the source that COPY reads from, for as long as the value lives.
struct Reading {
    before: Option<Source>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        SOURCE.set(self.before);
    }
}

/// Inserts into columns of a table what a source has in COPY's binary format; returns the rows that came through. The
/// table is locked as for INSERT.
pub fn copy_binary(
    table: OpenTable<'_>,
    columns: impl Iterator<Item = impl AsRef<str>>,
    source: &mut dyn CopySource,
) -> u64 {
    let source: *mut (dyn CopySource + '_) = source;
    // SAFETY: only the lifetime changes. The source outlives this call, and `Reading` ends its use
    // before the call does.
    let source: Source = unsafe { std::mem::transmute(source) };
    let _reading = Reading {
        before: SOURCE.replace(Some(source)),
    };
    // SAFETY: the table is open; lists and nodes are made in the current memory context and live until COPY ends.
    unsafe {
        let mut names: *mut pg_sys::List = ptr::null_mut();
        for column in columns {
            names = pg_sys::lappend(names, string_node(column.as_ref()).cast());
        }
        let format = pg_sys::makeDefElem(text("format"), string_node("binary").cast(), -1);
        let options = pg_sys::lappend(ptr::null_mut(), format.cast());
        let parse_state = pg_sys::make_parsestate(ptr::null_mut());
        pg_sys::addRangeTableEntryForRelation(
            parse_state,
            table.as_ptr(),
            pg_sys::RowExclusiveLock as i32,
            ptr::null_mut(),
            false,
            false,
        );
        let copy = pg_sys::BeginCopyFrom(
            parse_state,
            table.as_ptr(),
            ptr::null_mut(),
            ptr::null(),
            false,
            Some(read),
            names,
            options,
        );
        let rows = pg_sys::CopyFrom(copy);
        pg_sys::EndCopyFrom(copy);
        pg_sys::free_parsestate(parse_state);
        rows
    }
}

/// COPY requests at least `minimum` and at most `maximum` bytes; 0 is the end.
#[pg_guard]
unsafe extern "C-unwind" fn read(buffer: *mut c_void, _minimum: c_int, maximum: c_int) -> c_int {
    let Some(source) = SOURCE.get() else {
        return 0;
    };
    // SAFETY: COPY calls this only while `copy_binary` runs, so the source is alive; the buffer has `maximum` bytes.
    let bytes = unsafe {
        let buffer = std::slice::from_raw_parts_mut(buffer.cast::<u8>(), maximum as usize);
        (*source).read(buffer)
    };
    bytes as c_int
}

/// A copy of `value` in the current memory context.
fn text(value: &str) -> *mut c_char {
    // SAFETY: the function copies so many bytes and adds the NUL.
    unsafe { pg_sys::pnstrdup(value.as_ptr().cast(), value.len()) }
}

fn string_node(value: &str) -> *mut pg_sys::String {
    // SAFETY: the node keeps the copy.
    unsafe { pg_sys::makeString(text(value)) }
}
