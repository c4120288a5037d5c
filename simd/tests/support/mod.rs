//! Lanes between fences, values that bite, and every instruction set of this CPU.

#![allow(dead_code, clippy::allow_attributes)]

use lanes_simd::target::Target;
use std::sync::{Mutex, PoisonError};

/// The row counts of every test: all short tails, one and two words with theirs, and around a
/// vector of 2048.
pub fn row_counts() -> impl Iterator<Item = usize> {
    (0..=130).chain(2047..=2049)
}

static TARGET: Mutex<()> = Mutex::new(());

/// Runs the test on each target; no other test of the process meanwhile.
pub fn on_every_target(test: impl Fn(Target)) {
    let _only = TARGET.lock().unwrap_or_else(PoisonError::into_inner);
    let targets = Target::supported();
    assert!(!targets.is_empty());
    for target in targets {
        target.use_only();
        test(target);
    }
    Target::use_best();
}

/// Elements that end where readable memory ends: reading one element more is a segmentation fault.
/// Their start is aligned to the element and to nothing else, differently for each row count.
pub struct Fenced<T> {
    base: *mut libc::c_void,
    bytes: usize,
    first: *mut T,
    rows: usize,
}

impl<T: Copy> Fenced<T> {
    pub fn new(values: &[T]) -> Fenced<T> {
        let page = 4096;
        let bytes = size_of_val(values).next_multiple_of(page) + page;
        // SAFETY: an anonymous mapping of our own; the last page is made unreadable, the elements
        // are copied to the end of the one before it, which is large enough.
        unsafe {
            let base = libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(base, libc::MAP_FAILED);
            let fence = base.cast::<u8>().add(bytes - page);
            assert_eq!(libc::mprotect(fence.cast(), page, libc::PROT_NONE), 0);
            let first = fence.sub(size_of_val(values)).cast::<T>();
            std::ptr::copy_nonoverlapping(values.as_ptr(), first, values.len());
            Fenced {
                base,
                bytes,
                first,
                rows: values.len(),
            }
        }
    }

    pub fn filled(value: T, rows: usize) -> Fenced<T> {
        Fenced::new(&vec![value; rows])
    }

    pub fn ptr(&self) -> *const T {
        self.first
    }

    pub fn mut_ptr(&mut self) -> *mut T {
        self.first
    }

    pub fn values(&self) -> &[T] {
        // SAFETY: copied there by `new`, aligned to the element because a page is and the size is a
        // multiple.
        unsafe { std::slice::from_raw_parts(self.first, self.rows) }
    }
}

impl<T> Drop for Fenced<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`.
        unsafe { libc::munmap(self.base, self.bytes) };
    }
}

/// A bitmap to write, whose words are not zero yet.
pub fn dirty_words(rows: usize) -> Fenced<u64> {
    Fenced::filled(0xDEAD_BEEF_DEAD_BEEF, rows.div_ceil(64))
}

/// Reproducible random numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn words(&mut self, rows: usize) -> Vec<u64> {
        (0..rows.div_ceil(64)).map(|_| self.next()).collect()
    }

    pub fn lane<T: Sample>(&mut self, rows: usize) -> Vec<T> {
        let specials = self.below(3) != 0;
        (0..rows)
            .map(|_| {
                if specials {
                    T::sample(self)
                } else {
                    T::ordinary(self)
                }
            })
            .collect()
    }

    /// None, all, half, few, nearly all, and no rows; bits past the last row are anything.
    pub fn selections(&mut self, rows: usize) -> Vec<Option<Vec<u64>>> {
        let words = rows.div_ceil(64);
        let few = (0..words).map(|_| 1 << self.below(64)).collect();
        let nearly = (0..words)
            .map(|_| {
                if self.below(2) == 0 {
                    u64::MAX
                } else {
                    !(1 << self.below(64))
                }
            })
            .collect();
        let existing = (0..words).map(|_| 0).collect::<Vec<u64>>();
        let past = match rows % 64 {
            0 => existing.clone(),
            tail => existing
                .iter()
                .enumerate()
                .map(|(i, _)| if i + 1 == words { u64::MAX << tail } else { 0 })
                .collect(),
        };
        vec![
            None,
            Some(vec![u64::MAX; words]),
            Some(self.words(rows)),
            Some(few),
            Some(nearly),
            Some(past),
        ]
    }
}

/// A selection as the kernels take it.
pub fn fenced_selection(selection: &Option<Vec<u64>>) -> Option<Fenced<u64>> {
    selection.as_deref().map(Fenced::new)
}

/// The pointer, or null for all rows.
pub fn pointer(selection: &Option<Fenced<u64>>) -> *const u64 {
    selection.as_ref().map_or(std::ptr::null(), Fenced::ptr)
}

/// Values worth testing: special ones, few distinct ones, and any bits.
pub trait Sample: Sized + Copy {
    fn sample(random: &mut Random) -> Self;
    fn ordinary(random: &mut Random) -> Self;
    /// The bits, by which values are distinguished.
    fn bits(self) -> u64;
    /// The bits, with one value for all NaNs.
    fn shown(self) -> u64 {
        self.bits()
    }
}

macro_rules! sample_integer {
    ($($type:ident)*) => { $(
        impl Sample for $type {
            fn sample(random: &mut Random) -> $type {
                let specials = [$type::MIN, $type::MAX, 0, 1, $type::MIN + 1, $type::MAX - 1, (0 as $type).wrapping_sub(1)];
                match random.below(3) {
                    0 => specials[random.below(specials.len() as u64) as usize],
                    1 => random.below(5) as $type,
                    _ => random.next() as $type,
                }
            }
            fn ordinary(random: &mut Random) -> $type {
                (random.below(2000) as $type).wrapping_sub(1000)
            }
            fn bits(self) -> u64 {
                self as u64
            }
        }
    )* };
}
sample_integer!(i16 i32 i64 u32);

macro_rules! sample_float {
    ($type:ident, $bits:ident) => {
        impl Sample for $type {
            fn sample(random: &mut Random) -> $type {
                let specials = [
                    $type::NAN,
                    -$type::NAN,
                    $type::from_bits($type::NAN.to_bits() | 5),
                    $type::INFINITY,
                    $type::NEG_INFINITY,
                    0.0,
                    -0.0,
                    $type::MAX,
                    $type::MIN,
                    $type::MIN_POSITIVE,
                    $type::from_bits(1),
                    1.0,
                ];
                match random.below(3) {
                    0 => specials[random.below(specials.len() as u64) as usize],
                    1 => random.below(5) as $type - 2.0,
                    _ => $type::from_bits(random.next() as $bits),
                }
            }
            fn ordinary(random: &mut Random) -> $type {
                (random.below(2_000_000) as $type - 1e6) * 0.001
            }
            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }
            fn shown(self) -> u64 {
                if self.is_nan() { u64::MAX } else { self.bits() }
            }
        }
    };
}
sample_float!(f32, u32);
sample_float!(f64, u64);
