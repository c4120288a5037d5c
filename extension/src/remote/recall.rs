//! The image of a remote segment, from the cold cache or from the gateway that answers the request.

use std::cell::{Cell, RefCell};

use lanes_columnar::arena::RunEntry;
use lanes_columnar::zone_map::Bound;
use pgrx::{PgSqlErrorCode, pg_sys};

use super::cold_cache;
use super::expected::Expected;
use super::key::Key;
use super::requests::{self, Answer, Cause};
use super::scope;
use crate::pg::table::OpenTable;
use crate::pg::{ports, transaction, type_io};
use crate::storage::directory::FLAG_REMOTE;
use crate::storage::metapage::Meta;
use crate::storage::part::Parts;
use crate::storage::part_image;
use crate::table_options::time_column;
use crate::{error, gucs};

/// How long a request for a segment that a scan will need stays wanted, in microseconds.
const AHEAD_LEASE: i64 = 15_000_000;

/// Counters of images that came from object storage or the cold cache: those of segments that a
/// backend had to read because the arena did not have their rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recalled {
    pub segments: u64,
    pub bytes: u64,
    /// Those that were in the cold cache before the statement asked for them.
    pub cached: u64,
}

thread_local! {
    static RECALLED: Cell<Recalled> = const { Cell::new(Recalled { segments: 0, bytes: 0, cached: 0 }) };
    /// The image that was counted last, because an image may be decoded piece by piece.
    static COUNTED: Cell<Option<Key>> = const { Cell::new(None) };
    /// The start of the statement that was warned last.
    static WARNED: Cell<i64> = const { Cell::new(0) };
    /// The start of the statement that asked last, and the segments that it asked for ahead and has
    /// not read yet.
    static ASKED: RefCell<(i64, Vec<Key>)> = const { RefCell::new((0, Vec::new())) };
}

impl Recalled {
    /// The counters of this backend since it began.
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

/// The image of a remote segment. Waits for it, up to `lanes.recall_timeout`; an ERROR says why
/// there is none.
///
/// # Errors
/// If the segment's part is not there any more.
pub fn image(table: OpenTable<'_>, run: &RunEntry) -> Result<Vec<u8>, String> {
    let Some(meta) = Meta::load(table) else {
        error::corrupt("a table with remote parts has no metapage");
    };
    let key = key_of(&meta, run);
    let began = transaction::now();
    let timeout = gucs::recall_timeout_micros();
    let mut was_asked = forget_asked(&key);
    let mut expected: Option<Expected> = None;
    loop {
        if let Some(image) = cold_cache::read(&key, run.bytes) {
            count(&key, run.bytes, !was_asked);
            return Ok(image);
        }
        if scope::is_of_copy() {
            refuse_of_copy(table, &meta, run);
        }
        let left = began + timeout - transaction::now();
        if left <= 0 {
            let reason = format!("nobody supplied them within {} ms", timeout / 1000);
            refuse(table, &meta, run, &reason, Cause::Delivery);
        }
        was_asked = true;
        let expected = match expected {
            Some(expected) => expected,
            None => *expected.insert(expected_of(table, run)?),
        };
        let is_there = || cold_cache::has(&key);
        let answer = requests::ask(&key, &expected, began, left, is_there);
        if let Answer::Failed(reason, cause) = answer {
            refuse(table, &meta, run, &reason, cause);
        }
        ports::CHECK_FOR_INTERRUPTS();
    }
}

/// Asks for a remote segment that will be needed, without waiting.
pub fn ask_ahead(table: OpenTable<'_>, meta: &Meta, run: &RunEntry) {
    let key = key_of(meta, run);
    // A reader of a segment whose part is gone will find that out.
    if !cold_cache::has(&key)
        && let Ok(expected) = expected_of(table, run)
    {
        let now = transaction::now();
        requests::post(&key, &expected, now + AHEAD_LEASE, || cold_cache::has(&key));
        remember_asked(key);
    }
}

/// What is known about the image of a remote segment.
fn expected_of(table: OpenTable<'_>, run: &RunEntry) -> Result<Expected, String> {
    Ok(Expected {
        bytes: run.bytes,
        digest: part_image::digest_of_run(table, run)?,
    })
}

fn remember_asked(key: Key) {
    with_asked(|asked| {
        if !asked.contains(&key) {
            asked.push(key);
        }
    });
}

/// Whether this statement asked for the segment ahead. It is removed from the list.
fn forget_asked(key: &Key) -> bool {
    with_asked(|asked| {
        let place = asked.iter().position(|other| other == key);
        place.map(|place| asked.swap_remove(place)).is_some()
    })
}

/// Runs `body` with the segments that this statement has asked for ahead.
fn with_asked<T>(change: impl FnOnce(&mut Vec<Key>) -> T) -> T {
    let statement = transaction::statement_start();
    ASKED.with_borrow_mut(|(asked_by, keys)| {
        if std::mem::replace(asked_by, statement) != statement {
            keys.clear();
            COUNTED.set(None);
        }
        change(keys)
    })
}

/// Warns once a statement that remote rows are left out.
pub fn warn_of_rows_left_out(table: OpenTable<'_>) {
    let (statement, name) = { (transaction::statement_start(), table.name()) };
    if WARNED.replace(statement) != statement {
        pgrx::warning!(
            "rows of \"{name}\" that are in object storage are left out: lanes.recall is skip"
        );
    }
}

fn refuse_of_copy(table: OpenTable<'_>, meta: &Meta, run: &RunEntry) -> ! {
    let (name, rows) = { (table.name(), rows_text(table, meta, run)) };
    error::raise(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!(
            "rows of \"{name}\" {rows} are in object storage of the database that this one was copied from"
        ),
        "CREATE DATABASE with a template copies no objects. Copy by pg_dump; SET lanes.recall = skip leaves such rows \
         out.",
    )
}

fn refuse(table: OpenTable<'_>, meta: &Meta, run: &RunEntry, reason: &str, cause: Cause) -> ! {
    let (name, rows) = { (table.name(), rows_text(table, meta, run)) };
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

/// Describes the rows of a run, by their times if they have a time column.
fn rows_text(table: OpenTable<'_>, meta: &Meta, run: &RunEntry) -> String {
    if let Some(time) = time_column::of(table)
        && let Some(zone) = Parts::of(table, meta).zone(table, run.first_row, time)
        && let (Bound::Signed(oldest), Bound::Signed(newest)) = (zone.minimum, zone.maximum)
    {
        let is_zoned = table.descriptor().attribute(time).atttypid == pg_sys::TIMESTAMPTZOID;
        let text = |time| type_io::timestamp_text(is_zoned, time);
        return format!("from {} to {}", text(oldest), text(newest));
    }
    format!("{} to {}", run.first_row, run.end_row() - 1)
}
