//! The memory read bandwidth of one core, the yardstick for scans.
//!
//! A buffer is summed as 64-bit words, repeatedly and with independent sums, which compilers turn
//! into vector loads of the widest vectors of the CPU. The result is the median of many passes, as
//! for queries. A buffer that fits into a cache is measured in the state in which a query over
//! resident lanes finds its data: cached by the previous pass.

use crate::statistics::Times;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The smallest measured buffer: a pass has to take much longer than reading the clock.
const BYTES_MIN: usize = 64 << 10;
const PASSES_MIN: usize = 9;
const PASSES_MAX: usize = 2000;
const BUDGET: Duration = Duration::from_millis(300);
/// The number of words summed side by side: eight vectors of 32 bytes.
const WORDS: usize = 32;

/// Returns the bytes per second that one core reads from a buffer of this size.
pub fn read_bandwidth(bytes: usize) -> f64 {
    let words = bytes.max(BYTES_MIN) / 8 / WORDS * WORDS;
    // The buffer is written first: untouched pages would all be the same page of zeros.
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

/// Sums with the widest vectors of this CPU. Narrower ones do not reach the bandwidth of a cache.
fn sum(buffer: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: `is_x86_feature_detected` has found the one feature that the function requires.
        return unsafe { sum_avx512(buffer) };
    } else if is_x86_feature_detected!("avx2") {
        // SAFETY: `is_x86_feature_detected` has found the one feature that the function requires.
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

/// Sums the words. The function is inlined into each caller and compiled for the caller's vectors.
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
    fn the_sum_contains_every_word() {
        let words: Vec<u64> = (0..4 * WORDS as u64).collect();
        assert_eq!(sum(&words), words.iter().sum::<u64>());
        assert_eq!(sum_words(&words), sum(&words));
    }
}
