//! Integers as their distances from the least of them, in fewer bytes than their type has: times of
//! one run, ids and counters take half of their bytes or less, and so do the pages and the WAL of
//! the run. Packing to bits is left to sealing: this is what a run gets while its sender waits.

use crate::bits;
use crate::kind::{LaneKind, Number};

/// The encoding of the integers of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Offsets {
    /// The least of them.
    pub(super) base: i64,
    /// Bytes of a distance: 1, 2 or 4, and fewer than those of the integers.
    pub(super) width: usize,
}

trait Integer<const N: usize>: Copy + Ord {
    const LEAST: Self;
    const GREATEST: Self;
    fn of(bytes: [u8; N]) -> Self;
    fn widen(self) -> i64;
}

macro_rules! integer {
    ($type:ty, $bytes:literal) => {
        impl Integer<$bytes> for $type {
            const LEAST: Self = <$type>::MIN;
            const GREATEST: Self = <$type>::MAX;
            #[inline(always)]
            fn of(bytes: [u8; $bytes]) -> Self {
                <$type>::from_le_bytes(bytes)
            }
            #[inline(always)]
            fn widen(self) -> i64 {
                self.into()
            }
        }
    };
}
integer!(i16, 2);
integer!(i32, 4);
integer!(i64, 8);

/// The offsets that save bytes; `None` where none do, or the kind is not of integers. `valid` marks
/// the values that count: what the others become means nothing.
pub(super) fn plan(kind: LaneKind, values: &[u8], valid: Option<&[u64]>) -> Option<Offsets> {
    let LaneKind::Fixed {
        width,
        number: Number::Signed,
        ..
    } = kind
    else {
        return None;
    };
    let (least, greatest) = match width {
        2 => range::<i16, 2>(values, valid),
        4 => range::<i32, 4>(values, valid),
        _ => range::<i64, 8>(values, valid),
    }?;
    let offset_width = match greatest.wrapping_sub(least) as u64 {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => return None,
    };
    let rows = values.len() / usize::from(width);
    let saves = usize::from(width) + rows * offset_width < values.len();
    saves.then_some(Offsets {
        base: least,
        width: offset_width,
    })
}

/// The least and the greatest value that counts.
fn range<T: Integer<N>, const N: usize>(
    values: &[u8],
    valid: Option<&[u64]>,
) -> Option<(i64, i64)> {
    let values = values.as_chunks::<N>().0;
    let (least, greatest) = match valid {
        None => whole_range::<T, N>(values),
        Some(valid) => {
            let counting = values
                .iter()
                .enumerate()
                .filter(|(row, _)| bits::get(valid, *row));
            counting.fold((T::GREATEST, T::LEAST), |(least, greatest), (_, value)| {
                let value = T::of(*value);
                (least.min(value), greatest.max(value))
            })
        }
    };
    (least <= greatest).then(|| (least.widen(), greatest.widen()))
}

/// The range of integers without NULLs, compiled twice: before AVX2, integers of 64 bits can only
/// be compared one by one.
fn whole_range<T: Integer<N>, const N: usize>(values: &[[u8; N]]) -> (T, T) {
    #[inline(always)]
    fn body<T: Integer<N>, const N: usize>(values: &[[u8; N]]) -> (T, T) {
        values
            .iter()
            .fold((T::GREATEST, T::LEAST), |(least, greatest), value| {
                let value = T::of(*value);
                (least.min(value), greatest.max(value))
            })
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        #[target_feature(enable = "avx2")]
        fn with_avx2<T: Integer<N>, const N: usize>(values: &[[u8; N]]) -> (T, T) {
            body(values)
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU supports AVX2, as just tested.
            return unsafe { with_avx2(values) };
        }
    }
    body(values)
}

/// Appends the offsets of integers of `width` bytes.
pub(super) fn write(values: &[u8], width: usize, offsets: Offsets, out: &mut Vec<u8>) {
    match (width, offsets.width) {
        (2, _) => narrow::<i16, 2, 1>(values, offsets.base, out),
        (4, 1) => narrow::<i32, 4, 1>(values, offsets.base, out),
        (4, _) => narrow::<i32, 4, 2>(values, offsets.base, out),
        (_, 1) => narrow::<i64, 8, 1>(values, offsets.base, out),
        (_, 2) => narrow::<i64, 8, 2>(values, offsets.base, out),
        (_, _) => narrow::<i64, 8, 4>(values, offsets.base, out),
    }
}

fn narrow<T: Integer<N>, const N: usize, const M: usize>(
    values: &[u8],
    base: i64,
    out: &mut Vec<u8>,
) {
    let values = values.as_chunks::<N>().0;
    let start = out.len();
    out.resize(start + values.len() * M, 0);
    let offsets = out[start..].as_chunks_mut::<M>().0;
    for (offset, value) in offsets.iter_mut().zip(values) {
        let bytes = T::of(*value).widen().wrapping_sub(base).to_le_bytes();
        *offset = *bytes.first_chunk().unwrap_or(&[0; M]);
    }
}

/// Integers of `width` bytes (2, 4 or 8) from offsets of fewer bytes. Sums wrap around, which
/// happens only for damaged bytes.
pub(super) fn read(offsets: &[u8], offset_width: usize, base: i64, width: usize) -> Vec<u8> {
    match (width, offset_width) {
        (2, _) => widen::<1, 2>(offsets, base),
        (4, 1) => widen::<1, 4>(offsets, base),
        (4, _) => widen::<2, 4>(offsets, base),
        (_, 1) => widen::<1, 8>(offsets, base),
        (_, 2) => widen::<2, 8>(offsets, base),
        (_, _) => widen::<4, 8>(offsets, base),
    }
}

fn widen<const M: usize, const N: usize>(offsets: &[u8], base: i64) -> Vec<u8> {
    let offsets = offsets.as_chunks::<M>().0;
    let mut values = vec![0; offsets.len() * N];
    for (value, offset) in values.as_chunks_mut::<N>().0.iter_mut().zip(offsets) {
        let mut bytes = [0; 8];
        bytes[..M].copy_from_slice(offset);
        let sum = base.wrapping_add(i64::from_le_bytes(bytes)).to_le_bytes();
        *value = *sum.first_chunk().unwrap_or(&[0; N]);
    }
    values
}
