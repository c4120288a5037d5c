//! `cargo bench -p lanes-simd [-- <part of a kernel's name>]`: how fast each kernel reads its
//! lanes, in GB/s, beside the speed at which this machine reads memory in the same run, for lanes
//! in the second-level cache, in the third-level cache and in main memory. A ratio near 1 means
//! that memory is the bound.
//!
//! There is no benchmark framework, because the figure that matters is a ratio to another
//! measurement of the same run. Each figure is the median of its runs.

use lanes_simd::target::Target;
use lanes_simd::{Comparison, Number, aggregate, combine, decode, distance, group, search, select};
use std::hint::black_box;
use std::ptr::null;
use std::time::{Duration, Instant};

const SIZES: [(&str, usize); 3] = [("L2", 256 << 10), ("L3", 8 << 20), ("memory", 256 << 20)];
const GROUPS: usize = 1000;

fn main() {
    let wanted = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    println!("target {:?}", Target::supported().first());
    println!("GB/s and the ratio to a plain read; lanes of {SIZES:?} bytes\n");
    println!(
        "{:<34}{:>20}{:>20}{:>20}",
        "kernel", SIZES[0].0, SIZES[1].0, SIZES[2].0
    );
    let lanes = SIZES.map(|(_, bytes)| Lanes::new(bytes));
    let plain: Vec<f64> = lanes
        .iter()
        .map(|lanes| gigabytes(lanes.bytes, || plain_read(&lanes.f64)))
        .collect();
    println!(
        "{:<34}{:>13.1}{:>20.1}{:>20.1}",
        "plain read", plain[0], plain[1], plain[2]
    );
    for (name, run) in kernels() {
        if wanted
            .as_ref()
            .is_some_and(|wanted| !name.contains(wanted.as_str()))
        {
            continue;
        }
        print!("{name:<34}");
        for (lanes, plain) in lanes.iter().zip(&plain) {
            let bytes = run(lanes, false);
            let speed = gigabytes(bytes, || {
                run(lanes, true);
            });
            print!("{speed:>13.1} {:>5.2}x", speed / plain);
        }
        println!();
    }
}

/// Bytes per nanosecond, by the median time of the runs that fit into 150 ms.
fn gigabytes(bytes: usize, mut run: impl FnMut()) -> f64 {
    run();
    let mut times = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(150) || times.len() < 5 {
        let start = Instant::now();
        run();
        times.push(start.elapsed().as_nanos());
    }
    times.sort_unstable();
    bytes as f64 / times[times.len() / 2].max(1) as f64
}

/// Reads each word once and keeps nothing but their exclusive or.
fn plain_read(values: &[f64]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2.
        black_box(unsafe { exclusive_or_avx2(values) });
        return;
    }
    black_box(exclusive_or(values));
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn exclusive_or_avx2(values: &[f64]) -> [u64; 32] {
    exclusive_or(values)
}

#[inline(always)]
fn exclusive_or(values: &[f64]) -> [u64; 32] {
    let mut all = [0; 32];
    for chunk in values.as_chunks::<32>().0 {
        for (one, value) in all.iter_mut().zip(chunk) {
            *one ^= value.to_bits();
        }
    }
    all
}

/// Lanes of every type over as many bytes each, and room for what kernels write.
struct Lanes {
    bytes: usize,
    i16: Vec<i16>,
    i32: Vec<i32>,
    i64: Vec<i64>,
    f32: Vec<f32>,
    f64: Vec<f64>,
    codes: Vec<u32>,
    sorted: Vec<u32>,
    half: Vec<u64>,
    times: Vec<i64>,
    later: Vec<i64>,
}

impl Lanes {
    fn new(bytes: usize) -> Lanes {
        let mut state = 1_u64;
        let mut next = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let codes = bytes / 4;
        // Random steps of the same mean: how the two interleave cannot be foreseen.
        let mut times = |rows: usize, mut time: i64| -> Vec<i64> {
            (0..rows)
                .map(|_| {
                    time += (next() % 1000) as i64;
                    time
                })
                .collect()
        };
        let later = times(bytes / 16, bytes as i64 / 16 * 499);
        let times = times(bytes / 8, 0);
        Lanes {
            bytes,
            i16: (0..bytes / 2).map(|_| next() as i16).collect(),
            i32: (0..bytes / 4).map(|_| next() as i32).collect(),
            i64: (0..bytes / 8).map(|_| next() as i64).collect(),
            f32: (0..bytes / 4).map(|_| next() as f32).collect(),
            f64: (0..bytes / 8).map(|_| next() as f64).collect(),
            codes: (0..codes).map(|_| next() as u32 % GROUPS as u32).collect(),
            sorted: (0..codes)
                .map(|row| (row * GROUPS / codes) as u32)
                .collect(),
            half: (0..bytes / 8).map(|_| next() << 33 ^ next()).collect(),
            times,
            later,
        }
    }
}

/// The rows that a kernel takes at a time: a vector of a segment.
const ROWS: usize = 2048;

/// Calls `run(first row, rows)` for each vector if `go`, and returns the bytes of all rows.
fn vectors(rows: usize, row_bytes: usize, go: bool, mut run: impl FnMut(usize, usize)) -> usize {
    if go {
        for first in (0..rows).step_by(ROWS) {
            run(first, ROWS.min(rows - first));
        }
    }
    rows * row_bytes
}

type Run = Box<dyn Fn(&Lanes, bool) -> usize>;

fn kernels() -> Vec<(String, Run)> {
    let mut all: Vec<(String, Run)> = Vec::new();
    of_number(&mut all, "i16", |lanes| &lanes.i16, 100);
    of_number(&mut all, "i32", |lanes| &lanes.i32, 1 << 29);
    of_number(&mut all, "i64", |lanes| &lanes.i64, 1 << 29);
    of_number(&mut all, "u32", |lanes| &lanes.codes, 500);
    of_number(&mut all, "f32", |lanes| &lanes.f32, 1e9);
    of_number(&mut all, "f64", |lanes| &lanes.f64, 1e9);
    bitmaps(&mut all);
    floats(&mut all);
    sorted_lanes(&mut all);
    all
}

fn add(all: &mut Vec<(String, Run)>, name: &str, run: impl Fn(&Lanes, bool) -> usize + 'static) {
    all.push((name.to_owned(), Box::new(run)));
}

/// The kernels that every type has.
fn of_number<T: Number>(
    all: &mut Vec<(String, Run)>,
    name: &str,
    lane: fn(&Lanes) -> &[T],
    constant: T,
) {
    let bytes = size_of::<T>();
    add(all, &format!("{name} < constant"), move |lanes, go| {
        let mut out = [0; ROWS / 64];
        // SAFETY: `vectors` passes rows of the lane, and `out` has memory for a vector. This holds
        // for all calls below.
        vectors(lane(lanes).len(), bytes, go, |at, rows| unsafe {
            select::compare(
                lane(lanes)[at..].as_ptr(),
                rows,
                Comparison::Less,
                constant,
                black_box(out.as_mut_ptr()),
            );
        })
    });
    add(all, &format!("{name} between"), move |lanes, go| {
        let mut out = [0; ROWS / 64];
        // SAFETY: as above.
        vectors(lane(lanes).len(), bytes, go, |at, rows| unsafe {
            select::between(
                lane(lanes)[at..].as_ptr(),
                rows,
                constant,
                constant,
                black_box(out.as_mut_ptr()),
            );
        })
    });
    add(all, &format!("{name} sum"), move |lanes, go| {
        // SAFETY: as above.
        vectors(lane(lanes).len(), bytes, go, |at, rows| unsafe {
            black_box(aggregate::sum(lane(lanes)[at..].as_ptr(), rows, null()));
        })
    });
    add(
        all,
        &format!("{name} sum of half the rows"),
        move |lanes, go| {
            // SAFETY: as above; every lane has a selection bit a row, and more.
            vectors(lane(lanes).len(), bytes, go, |at, rows| unsafe {
                black_box(aggregate::sum(
                    lane(lanes)[at..].as_ptr(),
                    rows,
                    lanes.half[at / 64..].as_ptr(),
                ));
            })
        },
    );
    add(all, &format!("{name} maximum"), move |lanes, go| {
        // SAFETY: as above.
        vectors(lane(lanes).len(), bytes, go, |at, rows| unsafe {
            black_box(aggregate::maximum(lane(lanes)[at..].as_ptr(), rows, null()));
        })
    });
    for (order, groups) in [
        ("random", (|lanes| &lanes.codes) as fn(&Lanes) -> &Vec<u32>),
        ("sorted", |lanes| &lanes.sorted),
    ] {
        add(
            all,
            &format!("{name} group sum, {order}"),
            move |lanes, go| {
                let mut sums = vec![T::sum_of_none(); GROUPS];
                let mut counts = vec![0; GROUPS];
                // SAFETY: as above; groups are codes below GROUPS.
                vectors(
                    lane(lanes).len().min(groups(lanes).len()),
                    bytes + 4,
                    go,
                    |at, rows| unsafe {
                        let (groups, values) =
                            (groups(lanes)[at..].as_ptr(), lane(lanes)[at..].as_ptr());
                        group::group_sum(
                            groups,
                            values,
                            rows,
                            null(),
                            sums.as_mut_ptr(),
                            counts.as_mut_ptr(),
                        );
                    },
                )
            },
        );
        add(
            all,
            &format!("{name} group maximum, {order}"),
            move |lanes, go| {
                let mut best = vec![T::LEAST; GROUPS];
                // SAFETY: as above.
                vectors(
                    lane(lanes).len().min(groups(lanes).len()),
                    bytes + 4,
                    go,
                    |at, rows| unsafe {
                        let (groups, values) =
                            (groups(lanes)[at..].as_ptr(), lane(lanes)[at..].as_ptr());
                        group::group_maximum(groups, values, rows, null(), best.as_mut_ptr());
                    },
                )
            },
        );
    }
}

/// A sum to begin with.
trait SumOfNone: Number {
    fn sum_of_none() -> Self::Sum;
}
impl<T: Number> SumOfNone for T {
    fn sum_of_none() -> T::Sum {
        // SAFETY: no rows.
        unsafe { aggregate::sum([T::LEAST; 0].as_ptr(), 0, null()) }
    }
}

fn bitmaps(all: &mut Vec<(String, Run)>) {
    add(all, "u32 member of a set", |lanes, go| {
        let set = [0xAAAA_AAAA_AAAA_AAAA; GROUPS.div_ceil(64)];
        let mut out = [0; ROWS / 64];
        // SAFETY: as above; the set has a bit for each code.
        vectors(lanes.codes.len(), 4, go, |at, rows| unsafe {
            select::member(
                lanes.codes[at..].as_ptr(),
                rows,
                set.as_ptr(),
                black_box(out.as_mut_ptr()),
            );
        })
    });
    add(all, "count of a bitmap", |lanes, go| {
        if go {
            // SAFETY: as above.
            black_box(unsafe { combine::count_ones(lanes.half.as_ptr(), lanes.half.len() * 64) });
        }
        lanes.bytes
    });
    add(all, "count of two bitmaps", |lanes, go| {
        if go {
            let (left, right) = lanes.half.split_at(lanes.half.len() / 2);
            // SAFETY: as above.
            black_box(unsafe {
                combine::count_ones_and(left.as_ptr(), right.as_ptr(), left.len() * 64)
            });
        }
        lanes.bytes
    });
    add(all, "group count, random", |lanes, go| {
        let mut counts = vec![0; GROUPS];
        // SAFETY: as above.
        vectors(lanes.codes.len(), 4, go, |at, rows| unsafe {
            group::group_count(
                lanes.codes[at..].as_ptr(),
                rows,
                null(),
                counts.as_mut_ptr(),
            );
        })
    });
}

fn floats(all: &mut Vec<(String, Run)>) {
    add(all, "f32 sum as f64", |lanes, go| {
        // SAFETY: as above.
        vectors(lanes.f32.len(), 4, go, |at, rows| unsafe {
            black_box(aggregate::sum_wide(lanes.f32[at..].as_ptr(), rows, null()));
        })
    });
    add(all, "f64 sum of products", |lanes, go| {
        let (left, right) = lanes.f64.split_at(lanes.f64.len() / 2);
        // SAFETY: as above.
        vectors(left.len(), 16, go, |at, rows| unsafe {
            black_box(aggregate::sum_products_f64(
                left[at..].as_ptr(),
                right[at..].as_ptr(),
                rows,
                null(),
            ));
        })
    });
    add(all, "f64 magnitude", |lanes, go| {
        // SAFETY: as above.
        vectors(lanes.f64.len(), 8, go, |at, rows| unsafe {
            black_box(aggregate::magnitude_within(
                lanes.f64[at..].as_ptr(),
                rows,
                f64::MAX,
            ));
        })
    });
}

fn sorted_lanes(all: &mut Vec<(String, Run)>) {
    add(all, "i64 is sorted", |lanes, go| {
        if go {
            // SAFETY: as above.
            black_box(unsafe { search::is_sorted_i64(lanes.times.as_ptr(), lanes.times.len()) });
        }
        lanes.bytes
    });
    add(all, "i64 merge of two lanes", |lanes, go| {
        let (left, right) = (&lanes.times[lanes.times.len() / 2..], &lanes.later);
        if go {
            let mut out = vec![0; left.len()];
            // SAFETY: as above; `out` has an element for each left row.
            unsafe {
                let (left_rows, right_rows) = (left.len(), right.len());
                search::merge_positions_i64(
                    left.as_ptr(),
                    left_rows,
                    right.as_ptr(),
                    right_rows,
                    true,
                    out.as_mut_ptr(),
                );
            }
            black_box(out);
        }
        (left.len() + right.len()) * 8
    });
    add(all, "unpack of 17 bits, written bytes", |lanes, go| {
        let mut out = [0_u64; ROWS];
        // SAFETY: as above; the bits of a lane of words hold more values of 17 bits than it has
        // words.
        vectors(lanes.half.len(), 8, go, |at, rows| unsafe {
            decode::unpack_bits_u64(
                lanes.half[at / 64 * 17..].as_ptr().cast(),
                17,
                rows,
                1,
                black_box(out.as_mut_ptr()),
            );
        })
    });
    add(all, "unpack of 29 bits to 4 bytes", |lanes, go| {
        let mut out = [0_u32; ROWS];
        // SAFETY: as above.
        vectors(lanes.half.len(), 4, go, |at, rows| unsafe {
            decode::unpack_bits_u32(
                lanes.half[at / 64 * 29..].as_ptr().cast(),
                29,
                rows,
                1,
                black_box(out.as_mut_ptr()),
            );
        })
    });
    add(all, "unpack of 17 bits and sum", |lanes, go| {
        let mut out = [0_u64; ROWS];
        // SAFETY: as above.
        vectors(lanes.half.len(), 8, go, |at, rows| unsafe {
            decode::unpack_deltas_u64(
                lanes.half[at / 64 * 17..].as_ptr().cast(),
                17,
                rows,
                1,
                1,
                black_box(out.as_mut_ptr()),
            );
        })
    });
    add(all, "unpack of 17 bits to decimals", |lanes, go| {
        let mut out = [0_u64; ROWS];
        // SAFETY: as above.
        vectors(lanes.half.len(), 8, go, |at, rows| unsafe {
            decode::unpack_decimals_f64(
                lanes.half[at / 64 * 17..].as_ptr().cast(),
                17,
                rows,
                1,
                100.0,
                black_box(out.as_mut_ptr()),
            );
        })
    });
    add(all, "sum of deltas", |lanes, go| {
        let mut out = [1_u64; ROWS];
        // SAFETY: an array of as many rows.
        vectors(lanes.half.len(), 8, go, |_, rows| unsafe {
            decode::sum_deltas_u64(black_box(out.as_mut_ptr()), rows, 1);
        })
    });
    add(all, "decimals to doubles", |lanes, go| {
        let mut out = [1_u64; ROWS];
        // SAFETY: as above.
        vectors(lanes.half.len(), 8, go, |_, rows| unsafe {
            decode::decimals_to_f64(black_box(out.as_mut_ptr()), rows, 100.0);
        })
    });
    add(all, "dot product of 1024", |lanes, go| {
        let (left, right) = lanes.f32.split_at(lanes.f32.len() / 2);
        if go {
            for (left, right) in left
                .as_chunks::<1024>()
                .0
                .iter()
                .zip(right.as_chunks::<1024>().0)
            {
                // SAFETY: as above.
                black_box(unsafe { distance::dot_f32(left.as_ptr(), right.as_ptr(), 1024) });
            }
        }
        lanes.bytes
    });
}
