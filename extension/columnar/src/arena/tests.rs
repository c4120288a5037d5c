//! The arena against a model: tables as plain lists of values.
//!
//! What a segment says is resident must equal the model, also while it is held through evictions,
//! purges and changes of columns; a refusal must have a reason; and when all handles are gone and
//! all tables purged, every byte must be free again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::*;
use crate::column::Column;
use crate::kind::LaneKind;
use crate::lane::LaneData;
use crate::limits::{VECTOR_ROWS, segment_first_row};
use crate::test_support::{FLOAT8, INT8, NUMERIC, TEXT, Value, assert_lane, build, value};
use crate::zone_map::CodeZone;
use crate::zone_map::tests::{assert_covers, assert_zone, naive};

mod budgets;
mod decimals;
mod dictionaries;
mod images;
mod model;
mod segments;
mod threads;
mod zones;

/// Locks for threads of one process.
pub(super) struct MutexLocks {
    allocator: Mutex<()>,
    relations: [Mutex<()>; 4],
}

fn lock(mutex: &Mutex<()>) -> MutexGuard<'_, ()> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Locks for MutexLocks {
    fn with_allocator<R>(&self, f: impl FnOnce() -> R) -> R {
        let _guard = lock(&self.allocator);
        f()
    }

    fn with_relation<R>(&self, hash: u64, f: impl FnOnce() -> R) -> R {
        let _guard = lock(&self.relations[hash as usize % self.relations.len()]);
        f()
    }
}

type TestArena = Arena<MutexLocks>;

/// Runs a test on an arena of its own. The handles that the test got must be gone when it ends.
fn with_arena<T>(bytes: usize, relations_max: u32, test: impl FnOnce(&TestArena) -> T) -> T {
    // Not zero, as used memory is not, though Miri would take minutes to fill it; and off by 8
    // bytes, as shared memory may be.
    let filler = if cfg!(miri) {
        0
    } else {
        0x5555_5555_5555_5555_u64
    };
    let memory = Memory(Box::into_raw(
        vec![filler; bytes / 8 + 1].into_boxed_slice(),
    ));
    let locks = MutexLocks {
        allocator: Mutex::new(()),
        relations: Default::default(),
    };
    // SAFETY: the memory has as many bytes after the first word, and outlives the arena.
    let arena = unsafe {
        let start = memory.0.cast::<u64>().add(1).cast::<u8>();
        TestArena::initialise(start, bytes, relations_max);
        TestArena::attach(start, locks)
    };
    test(&arena)
}

/// Words that an arena lies in, as a raw pointer because the arena writes to them. They are freed
/// after a panic, too.
struct Memory(*mut [u64]);

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw`; the arena in it, declared later, is gone.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Purges everything and checks that nothing is left.
fn assert_all_comes_back(arena: &TestArena, keys: &[RelationKey]) {
    for key in keys {
        arena.purge((key.space, key.database, key.file));
    }
    arena.core.assert_invariants();
    let stats = arena.stats();
    assert_eq!(stats.bytes_used, 0, "bytes leaked");
    assert_eq!((stats.relations, stats.segments), (0, 0));
    assert_eq!(stats.bytes_largest_free + LINE_BYTES, stats.bytes_usable);
}

fn key(file: u32) -> RelationKey {
    RelationKey {
        space: 1,
        database: 2,
        file,
        storage_id: 1_000 + u64::from(file),
        shape: 7,
    }
}

/// Values of the model by a simple generator: every fifth NULL if `nulls`, of `variety` sorts.
fn generate(kind: LaneKind, rows: usize, variety: u32, nulls: bool, seed: &mut u64) -> Vec<Value> {
    let mut next = || {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as u32
    };
    (0..rows)
        .map(|_| match next() % 5 {
            0 if nulls => None,
            _ => value(kind, next() % variety),
        })
        .collect()
}

fn build_all(
    kinds: &[LaneKind],
    values: &[Vec<Value>],
    rows: std::ops::Range<usize>,
) -> Vec<Column> {
    kinds
        .iter()
        .zip(values)
        .map(|(&kind, values)| build(kind, &values[rows.clone()]))
        .collect()
}

/// Checks the first `rows` rows of a segment, and that it has these columns.
fn assert_segment(
    segment: &Segment<MutexLocks>,
    number: u32,
    kinds: &[LaneKind],
    values: &[Vec<Value>],
    rows: usize,
) {
    assert_eq!(segment.columns(), kinds.len());
    assert!(segment.rows_resident() as usize >= rows);
    let start = segment_first_row(number) as usize;
    for (column, (&kind, values)) in kinds.iter().zip(values).enumerate() {
        assert_eq!(segment.kind(column), Some(kind));
        let values = &values[start..start + rows];
        // SAFETY: the segment is pinned, and has so many rows.
        unsafe { assert_lane(segment.lane(column), kind, 0, values) };
        assert_zones(segment, column, kind, values);
    }
}

/// Checks the zones of a column over rows that are resident, with no gap among them.
fn assert_zones(segment: &Segment<MutexLocks>, column: usize, kind: LaneKind, values: &[Value]) {
    for (vector, values) in values.chunks(VECTOR_ROWS).enumerate() {
        let zone = segment.zone(column, vector).expect("rows are resident");
        let expected = naive(kind, values);
        if values.len() == VECTOR_ROWS {
            assert!(zone.exact, "the vector is full");
            assert_zone(&zone, &expected);
        } else {
            assert_covers(&zone, &expected);
        }
        assert_codes(segment, column, vector * VECTOR_ROWS, values, zone.codes);
    }
}

/// Checks the codes of a zone, which only columns with a dictionary have.
fn assert_codes(
    segment: &Segment<MutexLocks>,
    column: usize,
    first: usize,
    values: &[Value],
    found: Option<CodeZone>,
) {
    let lane = segment.lane(column);
    let LaneData::Codes { codes, .. } = lane.data else {
        return assert_eq!(found, None);
    };
    // SAFETY: the segment is pinned and has these rows.
    let codes = unsafe { std::slice::from_raw_parts(codes.add(first), values.len()) };
    let pairs = codes.iter().zip(values);
    let present: Vec<u32> = pairs
        .filter_map(|(code, value)| value.is_some().then_some(*code))
        .collect();
    let zone = found.unwrap_or(CodeZone::EMPTY);
    assert!(found.is_some() || present.is_empty());
    assert!(present.iter().all(|code| zone.may_have(*code)));
    if values.len() == VECTOR_ROWS {
        // The codes under NULLs may be included, no others.
        let all = CodeZone::of(codes);
        assert_eq!(zone.union(all), all);
    }
}
