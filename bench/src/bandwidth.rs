//! How fast one core of this machine reads memory: the yardstick for scans.
//!
//! A buffer is summed as 64-bit words, over and over, with independent sums, which compilers make vector loads of, for the widest
//! vectors that the CPU has; the median of many
//! passes counts, as it does for queries. A buffer that fits into a cache is measured as a query over resident lanes finds
//! its data: there from the last pass.

use crate::statistics::Times;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Buffers below this are measured at it: a pass has to take much longer than reading the clock.
const BYTES_MIN: usize = 64 << 10;
const PASSES_MIN: usize = 9;
const PASSES_MAX: usize = 2000;
const BUDGET: Duration = Duration::from_millis(300);
/// Words summed side by side: eight vectors of 32 bytes.
const WORDS: usize = 32;

/// Bytes a second that one core reads from a buffer of this size.
pub fn read_bandwidth(bytes: usize) -> f64 {
    let words = bytes.max(BYTES_MIN) / 8 / WORDS * WORDS;
    // Written before it is read: untouched pages would all be one page of zeros.
    let buffer: Vec<u64> = (0..words as u64).collect();
    let mut passes = Vec::new();
    let begin = Instant::now();
    black_box(sum(&buffer));
    while passes.len() < PASSES_MAX && (passes.len() < PASSES_MIN || begin.elapsed() < BUDGET) {
        let start = Instant::now();
        black_box(sum(black_box(&buffer)));
        passes.push(start.elapsed().as_secs_f64());
    }
    let seconds = Times::new(passes).map_or(f64::INFINITY, |times| times.median());
    (words * 8) as f64 / seconds
}

/// The sum with the widest vectors that this CPU has: narrower ones do not reach what a cache can deliver.
fn sum(buffer: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU has the one feature that the function asks for.
        return unsafe { sum_avx512(buffer) };
    } else if is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        return unsafe { sum_avx2(buffer) };
    }
    sum_words(buffer)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn sum_avx512(buffer: &[u64]) -> u64 {
    sum_words(buffer)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_avx2(buffer: &[u64]) -> u64 {
    sum_words(buffer)
}

/// Compiled into each of its callers, for the vectors that they may use.
#[inline(always)]
fn sum_words(buffer: &[u64]) -> u64 {
    let mut sums = [0u64; WORDS];
    for chunk in buffer.as_chunks::<WORDS>().0 {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().fold(0, |total, sum| total.wrapping_add(*sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read() {
        let words: Vec<u64> = (0..4 * WORDS as u64).collect();
        assert_eq!(sum(&words), words.iter().sum::<u64>());
        assert_eq!(sum_words(&words), sum(&words));
    }
}
