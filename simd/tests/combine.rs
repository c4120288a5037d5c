//! The algebra of bitmaps, on every target.

mod support;

use lanes_simd::{combine, naive};
use support::{Fenced, Random, dirty_words, on_every_target, row_counts};

type Combine = unsafe fn(*const u64, *const u64, usize, *mut u64);
type Twin = fn(bool, bool) -> bool;

unsafe fn not_left(left: *const u64, _right: *const u64, rows: usize, out: *mut u64) {
    // SAFETY: this function's contract.
    unsafe { combine::not(left, rows, out) }
}

#[test]
fn bitmaps_combine() {
    let operations: [(Combine, Twin); 4] = [
        (combine::and, |left, right| left && right),
        (combine::and_not, |left, right| left && !right),
        (combine::or, |left, right| left || right),
        (not_left, |left, _| !left),
    ];
    on_every_target(|target| {
        let mut random = Random(3);
        for rows in row_counts() {
            for (index, (kernel, twin)) in operations.iter().enumerate() {
                let left = Fenced::new(&random.words(rows));
                let right = Fenced::new(&random.words(rows));
                let expected = naive::bitmap(rows, |row| {
                    twin(
                        naive::bit(left.values(), row),
                        naive::bit(right.values(), row),
                    )
                });
                let mut out = dirty_words(rows);
                // SAFETY: bitmaps of as many rows.
                unsafe { kernel(left.ptr(), right.ptr(), rows, out.mut_ptr()) };
                assert_eq!(out.values(), expected, "{target:?} {rows} {index}");
                let mut left = left;
                // SAFETY: the output may be an input.
                unsafe { kernel(left.ptr(), right.ptr(), rows, left.mut_ptr()) };
                assert_eq!(
                    left.values(),
                    expected,
                    "{target:?} {rows} {index} in place"
                );
            }
        }
    });
}

#[test]
fn rows_are_counted() {
    on_every_target(|target| {
        let mut random = Random(4);
        for rows in row_counts() {
            let left = Fenced::new(&random.words(rows));
            let right = Fenced::new(&random.words(rows));
            // SAFETY: bitmaps of as many rows.
            let counts = unsafe {
                (
                    combine::count_ones(left.ptr(), rows),
                    combine::count_ones_and(left.ptr(), right.ptr(), rows),
                )
            };
            let both: Vec<u64> = left
                .values()
                .iter()
                .zip(right.values())
                .map(|(left, right)| left & right)
                .collect();
            assert_eq!(
                counts,
                (
                    naive::count(rows, Some(left.values())),
                    naive::count(rows, Some(&both))
                ),
                "{target:?} {rows}"
            );
        }
    });
}

#[test]
fn first_and_last_rows_are_found() {
    let mut random = Random(5);
    for rows in row_counts() {
        for selection in random.selections(rows).into_iter().flatten() {
            let words = Fenced::new(&selection);
            // SAFETY: a bitmap of as many rows.
            let found = unsafe {
                (
                    combine::first_set(words.ptr(), rows),
                    combine::last_set(words.ptr(), rows),
                )
            };
            let mut set = (0..rows).filter(|&row| naive::bit(&selection, row));
            assert_eq!(found, (set.clone().next(), set.next_back()), "{rows}");
        }
    }
}
