//! Getting a remote segment's image: from the cold cache, or from whoever answers the request for it.

use std::cell::{Cell, RefCell};
use std::ffi::CStr;

use lanes_columnar::arena::RunEntry;
use lanes_columnar::zone_map::Bound;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::cold_cache;
use super::expected::Expected;
use super::key::Key;
use super::requests::{self, Answer, Cause};
use crate::pg::ports;
use crate::storage::directory::FLAG_REMOTE;
use crate::storage::metapage::Meta;
use crate::storage::part::Parts;
use crate::storage::part_image;
use crate::{error, gucs, maintenance};

/// How long a segment that a scan is going to need is asked for. Microseconds.
const AHEAD_LEASE: i64 = 15_000_000;

/// What came from object storage or the cold cache: segments whose images a backend had to read because the arena did
/// not have their rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recalled {
    pub segments: u64,
    pub bytes: u64,
    /// Those of them that were in the cold cache before the statement asked for them.
    pub cached: u64,
}

thread_local! {
    static RECALLED: Cell<Recalled> = const { Cell::new(Recalled { segments: 0, bytes: 0, cached: 0 }) };
    /// Counted last: an image may be decoded piece by piece.
    static COUNTED: Cell<Option<Key>> = const { Cell::new(None) };
    /// Start of the statement that was warned last.
    static WARNED: Cell<i64> = const { Cell::new(0) };
    /// Start of the statement that asked last, and what it asked for ahead and has not read yet.
    static ASKED: RefCell<(i64, Vec<Key>)> = const { RefCell::new((0, Vec::new())) };
}

impl Recalled {
    /// What this backend has read since it began.
    pub fn so_far() -> Recalled {
        RECALLED.get()
    }

    /// Adds what was read since `before`.
    pub fn add_since(&mut self, before: Recalled) {
        let now = Recalled::so_far();
        self.segments += now.segments - before.segments;
        self.bytes += now.bytes - before.bytes;
        self.cached += now.cached - before.cached;
    }
}

fn count(key: &Key, bytes: u32, is_cached: bool) {
    if COUNTED.replace(Some(*key)) != Some(*key) {
        let so_far = RECALLED.get();
        RECALLED.set(Recalled {
            segments: so_far.segments + 1,
            bytes: so_far.bytes + u64::from(bytes),
            cached: so_far.cached + u64::from(is_cached),
        });
    }
}

fn key_of(meta: &Meta, run: &RunEntry) -> Key {
    debug_assert!(run.flags & FLAG_REMOTE != 0);
    Key::of(meta.storage_id, run.block, run.first_row)
}

/// The image of a remote segment. Waits for it, up to `lanes.recall_timeout`; an ERROR says why there is none.
///
/// # Errors
/// If the segment's part is not there any more.
///
/// # Safety
/// `relation` is the open lanes table that the run belongs to. No lightweight lock is held.
pub unsafe fn image(relation: pg_sys::Relation, run: &RunEntry) -> Result<Vec<u8>, String> {
    // SAFETY: the caller's promise; a table with parts has a metapage.
    let Some(meta) = (unsafe { Meta::load(relation) }) else {
        error::corrupt("a table with remote parts has no metapage");
    };
    let key = key_of(&meta, run);
    // SAFETY: reads the clock.
    let began = unsafe { pg_sys::GetCurrentTimestamp() };
    let timeout = gucs::recall_timeout_micros();
    let mut was_asked = forget_asked(&key);
    let mut expected: Option<Expected> = None;
    loop {
        if let Some(image) = cold_cache::read(&key, run.bytes) {
            count(&key, run.bytes, !was_asked);
            return Ok(image);
        }
        // SAFETY: reads the clock.
        let left = began + timeout - unsafe { pg_sys::GetCurrentTimestamp() };
        if left <= 0 {
            let reason = format!("nobody supplied them within {} ms", timeout / 1000);
            // SAFETY: the caller's promise.
            unsafe { refuse(relation, &meta, run, &reason, Cause::Delivery) };
        }
        was_asked = true;
        let expected = match expected {
            Some(expected) => expected,
            // SAFETY: the caller's promise.
            None => *expected.insert(unsafe { expected_of(relation, run) }?),
        };
        let is_there = || cold_cache::has(&key);
        let answer = requests::ask(&key, &expected, began, left, is_there);
        if let Answer::Failed(reason, cause) = answer {
            // SAFETY: the caller's promise.
            unsafe { refuse(relation, &meta, run, &reason, cause) };
        }
        ports::CHECK_FOR_INTERRUPTS();
    }
}

/// Asks for a remote segment that is going to be needed, without waiting.
///
/// # Safety
/// `relation` is the open lanes table that the run belongs to. No lightweight lock is held.
pub unsafe fn ask_ahead(relation: pg_sys::Relation, meta: &Meta, run: &RunEntry) {
    let key = key_of(meta, run);
    // Whoever reads a segment whose part is gone finds that out.
    if !cold_cache::has(&key)
        // SAFETY: the caller's promise.
        && let Ok(expected) = unsafe { expected_of(relation, run) }
    {
        // SAFETY: reads the clock.
        let now = unsafe { pg_sys::GetCurrentTimestamp() };
        requests::post(&key, &expected, now + AHEAD_LEASE);
        remember_asked(key);
    }
}

/// What a remote segment's image must be.
unsafe fn expected_of(relation: pg_sys::Relation, run: &RunEntry) -> Result<Expected, String> {
    Ok(Expected {
        bytes: run.bytes,
        // SAFETY: the callers promised an open table.
        digest: unsafe { part_image::digest_of_run(relation, run) }?,
    })
}

fn remember_asked(key: Key) {
    with_asked(|asked| {
        if !asked.contains(&key) {
            asked.push(key);
        }
    });
}

/// Whether this statement asked for it ahead; not any more.
fn forget_asked(key: &Key) -> bool {
    with_asked(|asked| {
        let place = asked.iter().position(|other| other == key);
        place.map(|place| asked.swap_remove(place)).is_some()
    })
}

/// With what this statement has asked for ahead.
fn with_asked<T>(change: impl FnOnce(&mut Vec<Key>) -> T) -> T {
    // SAFETY: a plain read.
    let statement = unsafe { pg_sys::GetCurrentStatementStartTimestamp() };
    ASKED.with_borrow_mut(|(asked_by, keys)| {
        if std::mem::replace(asked_by, statement) != statement {
            keys.clear();
            COUNTED.set(None);
        }
        change(keys)
    })
}

/// Says that remote rows are left out, once a statement.
///
/// # Safety
/// `relation` is open.
pub unsafe fn warn_of_rows_left_out(relation: pg_sys::Relation) {
    // SAFETY: the caller's promise; a plain read.
    let (statement, name) = unsafe {
        (
            pg_sys::GetCurrentStatementStartTimestamp(),
            ports::RelationGetRelationName(relation),
        )
    };
    if WARNED.replace(statement) != statement {
        pgrx::warning!(
            "rows of \"{name}\" that are in object storage are left out: lanes.recall is skip"
        );
    }
}

unsafe fn refuse(
    relation: pg_sys::Relation,
    meta: &Meta,
    run: &RunEntry,
    reason: &str,
    cause: Cause,
) -> ! {
    // SAFETY: `image`'s caller promised an open table.
    let (name, rows) = unsafe {
        (
            ports::RelationGetRelationName(relation),
            rows_text(relation, meta, run),
        )
    };
    let (code, hint) = match cause {
        Cause::Delivery => (
            PgSqlErrorCode::ERRCODE_IO_ERROR,
            "Start a lanes-gateway with [objects] for this database, or raise lanes.recall_timeout; \
             SET lanes.recall = skip leaves such rows out.",
        ),
        Cause::Image => (
            PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
            "Find out who or what changed the object in the store, and put a copy of the right one back; \
             SET lanes.recall = skip leaves such rows out.",
        ),
    };
    error::raise(
        code,
        format!(
            "rows of \"{name}\" {rows} are in object storage and could not be recalled: {reason}"
        ),
        hint,
    )
}

/// Which rows, by their times where they have some.
unsafe fn rows_text(relation: pg_sys::Relation, meta: &Meta, run: &RunEntry) -> String {
    // SAFETY: `image`'s caller promised an open table; the output function is the type's.
    unsafe {
        if let Some(time) = maintenance::upkeep::time_column(relation)
            && let Some(zone) = Parts::of(relation, meta).zone(relation, run.first_row, time)
            && let (Bound::Signed(oldest), Bound::Signed(newest)) = (zone.minimum, zone.maximum)
        {
            let kind = ports::TupleDescAttr((*relation).rd_att, time).atttypid;
            return format!(
                "from {} to {}",
                time_text(kind, oldest),
                time_text(kind, newest)
            );
        }
    }
    format!("{} to {}", run.first_row, run.end_row() - 1)
}

unsafe fn time_text(kind: pg_sys::Oid, time: i64) -> String {
    let (mut function, mut is_varlena) = (pg_sys::InvalidOid, false);
    // SAFETY: `kind` is a timestamp type; the text is a C string in the current context.
    unsafe {
        pg_sys::getTypeOutputInfo(kind, &mut function, &mut is_varlena);
        let text = pg_sys::OidOutputFunctionCall(function, pg_sys::Datum::from(time));
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}
