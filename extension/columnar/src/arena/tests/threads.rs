//! Readers that take no lock, while others extend, evict, purge and replace.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::dictionaries::Dictionaries;
use super::*;

const KINDS: [LaneKind; 5] = [INT8, LaneKind::Bool, TEXT, NUMERIC, FLOAT8];
const ROWS: usize = if cfg!(miri) { 60 } else { VECTOR_ROWS };

/// The model: what every loader loads and every reader expects.
fn table(file: u32, rows: usize) -> Vec<Vec<Value>> {
    let mut seed = u64::from(file);
    KINDS
        .iter()
        .map(|&kind| {
            // Texts repeat so much that they are coded.
            let variety = if kind == TEXT { 100 } else { 500 };
            generate(kind, rows, variety, true, &mut seed)
        })
        .collect()
}

/// Checks whatever is resident of a segment.
fn read(
    segment: &Segment<MutexLocks>,
    number: u32,
    values: &[Vec<Value>],
    dictionaries: &mut Dictionaries,
) -> usize {
    let rows = segment.rows_resident() as usize;
    assert_segment(segment, number, &KINDS, values, rows);
    dictionaries.check(segment, &KINDS);
    rows
}

#[test]
fn readers_see_every_row_whole_while_it_is_appended() {
    let rounds = if cfg!(miri) { 1 } else { 8 };
    let values = table(1, ROWS);
    let columns = build_all(&KINDS, &values, 0..ROWS);
    for round in 0..rounds {
        with_arena(2 << 20, 8, |arena| {
            let relation = arena.open(key(1), 0).unwrap();
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let mut dictionaries = Dictionaries::default();
                        let mut seen = 0;
                        while seen < ROWS {
                            let Some(segment) = relation.pin_segment(0) else {
                                thread::yield_now();
                                continue;
                            };
                            let now = read(&segment, 0, &values, &mut dictionaries);
                            assert!(now >= seen, "rows vanished");
                            seen = now;
                        }
                    });
                }
                // One or a few rows at a time, so that words of bitmaps are shared.
                let mut from = 0;
                while from < ROWS {
                    let rows = (1 + (from * 7 + round) % 40).min(ROWS - from);
                    assert!(relation.extend_segment(0, &KINDS, from as u32, &columns, from, rows));
                    from += rows;
                }
            });
        });
    }
}

#[test]
fn readers_and_loaders_share_an_arena_that_is_too_small() {
    const TABLES: u32 = 3;
    const SEGMENTS: u32 = if cfg!(miri) { 1 } else { 3 };
    let rounds = if cfg!(miri) { 6 } else { 400 };
    let rows = VECTOR_ROWS * (SEGMENTS as usize - 1) + ROWS;
    let models = (0..TABLES)
        .map(|file| table(file, rows))
        .collect::<Vec<_>>();
    let parts = models
        .iter()
        .map(|values| {
            (0..SEGMENTS as usize)
                .map(|segment| {
                    let start = segment * VECTOR_ROWS;
                    build_all(&KINDS, values, start..(start + VECTOR_ROWS).min(rows))
                })
                .collect::<Vec<_>>()
        })
        .collect::<Vec<_>>();
    let (loads, reads) = (AtomicUsize::new(0), AtomicUsize::new(0));
    with_arena(400 << 10, 8, |arena| {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let workers = (0..3_u32)
                .map(|worker| {
                    let (models, parts, loads, reads) = (&models, &parts, &loads, &reads);
                    scope.spawn(move || {
                        let mut dictionaries = Dictionaries::default();
                        let mut random = 17 + worker;
                        for _ in 0..rounds {
                            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                            let file = (random >> 8) % TABLES;
                            let number = (random >> 16) % SEGMENTS;
                            let Some(relation) = arena.open(key(file), 0) else {
                                continue;
                            };
                            let columns = &parts[file as usize][number as usize];
                            let all = columns[0].rows();
                            if relation.pin_segment(number).is_none() {
                                let half = all / 2;
                                let extend = |from: usize, rows| {
                                    relation.extend_segment(
                                        number,
                                        &KINDS,
                                        from as u32,
                                        columns,
                                        from,
                                        rows,
                                    )
                                };
                                if extend(0, half) && extend(half, all - half) {
                                    loads.fetch_add(1, Ordering::Relaxed);
                                }
                            }
                            if let Some(segment) = relation.pin_segment(number) {
                                // Its entry may be evicted or replaced meanwhile, not what is held.
                                let values = &models[file as usize];
                                let rows = read(&segment, number, values, &mut dictionaries);
                                assert!(rows == 0 || rows == all / 2 || rows == all);
                                reads.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    })
                })
                .collect::<Vec<_>>();
            let purger = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    arena.purge((1, 2, 1));
                    thread::yield_now();
                }
            });
            let results = workers
                .into_iter()
                .map(|worker| worker.join())
                .collect::<Vec<_>>();
            done.store(true, Ordering::Relaxed);
            purger.join().unwrap();
            for result in results {
                result.unwrap();
            }
        });
        let keys = (0..TABLES).map(key).collect::<Vec<_>>();
        let stats = arena.stats();
        assert!(loads.into_inner() > 0 && reads.into_inner() > 0);
        assert!(
            cfg!(miri) || stats.segment_evictions > 0,
            "too roomy a test"
        );
        assert_all_comes_back(arena, &keys);
    });
}

#[test]
fn runs_and_position_are_read_together() {
    let runs = if cfg!(miri) { 40 } else { 20_000 };
    with_arena(4 << 20, 8, |arena| {
        let relation = arena.open(key(1), 0).unwrap();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut seen = 0;
                    while seen < runs {
                        let (count, position) = relation.published();
                        assert_eq!((position.block, position.index), (count * 2, count * 3));
                        assert!(count >= seen);
                        seen = count;
                        if let Some(last) = count.checked_sub(1) {
                            let run = relation.run(last);
                            assert_eq!((run.first_row, run.xmin), (u64::from(last), last + 5));
                            assert_eq!(relation.find_run(last.into()), Some(last));
                        }
                    }
                });
            }
            for index in 0..runs {
                let entry = RunEntry {
                    first_row: index.into(),
                    rows: 1,
                    xmin: index + 5,
                    ..RunEntry::default()
                };
                let position = Position {
                    block: (index + 1) * 2,
                    index: (index + 1) * 3,
                };
                assert!(relation.publish(index, &[entry], position));
            }
        });
    });
}
