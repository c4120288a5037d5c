//! Zones: a few words that summarise the values of some rows, so that a scan need not read the
//! rows.
//!
//! | kind | minimum, maximum | sum | the rest |
//! |---|---|---|---|
//! | signed numbers | `Bound::Signed`, widened to 64 bits | of all values, exact | `sorted` |
//! | floats | `Bound::Float`, widened to 64 bits | 0 | `sorted`, `has_nan`, `has_infinite` |
//! | [16 bytes](crate::bytes16) | `Bound::Signed`, the least and the greatest prefix | 0 | |
//! | bools | unknown | the number of TRUE values | |
//! | items of an arena's or a sealed lane's dictionary | unknown | 0 | `codes` |
//! | all others | unknown | 0 | |
//!
//! Every zone has the number of rows that are not NULL. The order is PostgreSQL's: NaN is greater
//! than all other floats and equal to itself, and -0 equals +0. A bound of zero may have either
//! sign, whatever sign PostgreSQL would return.
//!
//! Rows without values do not count: a zone of NULLs alone has a minimum above its maximum, so no
//! comparison seems possible. [`Zone::union`] combines the zones of parts to the zone of the whole.
//!
//! To answer a query from a zone, and not merely to skip rows by it, three conditions must hold:
//! the zone is [exact](Zone::exact), all of its rows are visible, and no row is missing, since rows
//! that no run contains count as NULL. The zones that are stored with a sealed run are not exact,
//! because rows may have been deleted since. If no row of the run was deleted, its zones are
//! complete ([`SealedSegment::zones`](crate::part::SealedSegment::zones)).

use std::cmp::Ordering;
use std::ops::Range;

use crate::bits;
use crate::column::Column;
use crate::kind::{LaneKind, Number};
use crate::lane::{Lane, LaneData};
use crate::limits::VECTOR_ROWS;

mod codes;
mod measure;
mod prefixes;
#[cfg(test)]
pub(crate) mod tests;

pub use codes::CodeZone;
pub(crate) use prefixes::bounds as prefix_bounds;

/// Words of a bitmap over one vector.
const VECTOR_WORDS: usize = bits::words(VECTOR_ROWS);

/// The least or the greatest value of some rows.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// Values of this kind have no bounds here.
    Unknown,
    /// A bound of integers of any width, or a [prefix](crate::bytes16::Bytes16::prefix) of 16
    /// bytes.
    Signed(i64),
    /// A bound of floats of any width. A NaN stands for every NaN.
    Float(f64),
}

impl Bound {
    /// How two bounds compare in PostgreSQL's order; `None` unless both are known and of one sort.
    #[inline]
    pub fn compare(self, other: Bound) -> Option<Ordering> {
        match (self, other) {
            (Bound::Signed(a), Bound::Signed(b)) => Some(a.cmp(&b)),
            (Bound::Float(a), Bound::Float(b)) => Some(
                a.partial_cmp(&b)
                    .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())),
            ),
            _ => None,
        }
    }

    /// The integer of a signed bound.
    #[inline]
    pub fn signed(self) -> Option<i64> {
        match self {
            Bound::Signed(value) => Some(value),
            Bound::Unknown | Bound::Float(_) => None,
        }
    }

    /// The float of a float bound.
    #[inline]
    pub fn float(self) -> Option<f64> {
        match self {
            Bound::Float(value) => Some(value),
            Bound::Unknown | Bound::Signed(_) => None,
        }
    }

    fn is_known(self) -> bool {
        !matches!(self, Bound::Unknown)
    }

    /// The word that stands for the bound where its kind is known.
    pub(crate) fn word(self) -> u64 {
        match self {
            Bound::Unknown => 0,
            Bound::Signed(value) => value as u64,
            Bound::Float(value) => value.to_bits(),
        }
    }

    /// The bound that a word stands for in a column of this kind.
    pub(crate) fn of_word(kind: LaneKind, word: u64) -> Self {
        match number_of(kind) {
            Number::Opaque => Bound::Unknown,
            Number::Signed | Number::Bytes16 => Bound::Signed(word as i64),
            Number::Float => Bound::Float(f64::from_bits(word)),
        }
    }
}

/// The zone of some rows of one column; see the head of this file.
#[derive(Clone, Copy, Debug)]
pub struct Zone {
    /// No value is less.
    pub minimum: Bound,
    /// No value is greater.
    pub maximum: Bound,
    /// Rows that are not NULL.
    pub non_null: u32,
    /// The sum of signed numbers, or the number of TRUE bools, over all rows of the zone; 0 unless
    /// `has_sum`.
    pub sum: i128,
    /// Whether the sum is known: of signed numbers, of bools, and where all rows are NULL.
    pub has_sum: bool,
    /// Whether these are numbers without a NULL that never decrease from row to row. It may be
    /// false of rows that are sorted, never true of rows that are not.
    pub sorted: bool,
    /// Whether there is a NaN.
    pub has_nan: bool,
    /// Whether there is a positive or negative infinity.
    pub has_infinite: bool,
    /// The codes of the rows that are not NULL, in the lane's own dictionary, if they are known.
    pub codes: Option<CodeZone>,
    /// Whether the zone is about exactly the requested rows. Otherwise it may include more rows:
    /// the bounds, `sorted` and the flags hold for the requested rows but need not be tight,
    /// `non_null` is no less than their number, and `sum` may include other rows. In a zone that is
    /// stored with a sealed run, `sum` is over all rows that were sealed.
    pub exact: bool,
}

impl Zone {
    /// The zone of no rows.
    pub fn empty(kind: LaneKind) -> Self {
        let (minimum, maximum) = match number_of(kind) {
            Number::Opaque => (Bound::Unknown, Bound::Unknown),
            Number::Signed | Number::Bytes16 => (Bound::Signed(i64::MAX), Bound::Signed(i64::MIN)),
            Number::Float => (Bound::Float(f64::NAN), Bound::Float(f64::NEG_INFINITY)),
        };
        Zone {
            minimum,
            maximum,
            non_null: 0,
            sum: 0,
            has_sum: true,
            sorted: minimum.is_known(),
            has_nan: false,
            has_infinite: false,
            codes: None,
            exact: true,
        }
    }

    /// The zone of these rows followed by the rows of `later`, both of one column.
    #[inline]
    pub fn union(self, later: Zone) -> Zone {
        let is_ascending = self.non_null == 0
            || later.non_null == 0
            || matches!(
                self.maximum.compare(later.minimum),
                Some(Ordering::Less | Ordering::Equal)
            );
        Zone {
            minimum: match self.minimum.compare(later.minimum) {
                Some(Ordering::Greater) => later.minimum,
                _ => self.minimum,
            },
            maximum: match self.maximum.compare(later.maximum) {
                Some(Ordering::Less) => later.maximum,
                _ => self.maximum,
            },
            non_null: self.non_null + later.non_null,
            sum: match self.has_sum && later.has_sum {
                true => self.sum.wrapping_add(later.sum),
                false => 0,
            },
            has_sum: self.has_sum && later.has_sum,
            sorted: self.sorted && later.sorted && is_ascending,
            has_nan: self.has_nan || later.has_nan,
            has_infinite: self.has_infinite || later.has_infinite,
            codes: match (self.non_null, later.non_null) {
                (0, _) => later.codes,
                (_, 0) => self.codes,
                _ => self.codes.zip(later.codes).map(|(a, b)| a.union(b)),
            },
            exact: self.exact && later.exact,
        }
    }

    /// The zone of these rows and then some that are NULL, if `rows` is not 0.
    #[inline]
    pub(crate) fn and_nulls(self, rows: usize) -> Zone {
        Zone {
            sorted: self.sorted && rows == 0,
            ..self
        }
    }
}

/// The number type of a column's values.
fn number_of(kind: LaneKind) -> Number {
    match kind {
        LaneKind::Fixed { number, .. } => number,
        LaneKind::Absent | LaneKind::Bool | LaneKind::Varlena { .. } => Number::Opaque,
    }
}

/// Whether columns of this kind have sums.
pub(crate) fn has_sums(kind: LaneKind) -> bool {
    kind == LaneKind::Bool || number_of(kind) == Number::Signed
}

/// The zone of rows of a lane, by one pass over their values.
///
/// # Safety
/// The lane's owner is of this kind, is alive and unchanged, and has these rows.
pub unsafe fn compute(lane: &Lane, kind: LaneKind, rows: Range<usize>) -> Zone {
    let mut zone = Zone::empty(kind);
    let mut first = rows.start;
    while first < rows.end {
        let count = (rows.end - first).min(VECTOR_ROWS);
        // SAFETY: some of the caller's rows.
        zone = zone.union(unsafe { compute_vector(lane, kind, first, count) });
        first += count;
    }
    zone
}

/// The zone of rows of a column, by one pass over their values.
///
/// # Panics
/// If the column has fewer rows.
pub fn of_column(column: &Column, rows: Range<usize>) -> Zone {
    assert!(rows.end <= column.rows(), "{rows:?} of {}", column.rows());
    // SAFETY: the column is borrowed, so it stays and does not change, and it has these rows.
    unsafe { compute(&column.lane(), column.kind(), rows) }
}

/// The zone of at most [`VECTOR_ROWS`] rows, like [`compute`].
unsafe fn compute_vector(lane: &Lane, kind: LaneKind, first: usize, rows: usize) -> Zone {
    let empty = Zone::empty(kind);
    let mut valid = [0; VECTOR_WORDS];
    let valid = &mut valid[..bits::words(rows)];
    let non_null = match (lane.data, lane.validity.is_null()) {
        (LaneData::Null, true) => 0,
        (_, true) => rows,
        // SAFETY: a validity bitmap covers every row of its owner.
        (_, false) => unsafe { read_bits(lane.validity, first, rows, valid) },
    };
    if non_null == 0 {
        return empty.and_nulls(rows);
    }
    let zone = Zone {
        non_null: non_null as u32,
        has_sum: false,
        ..empty
    };
    let valid = (non_null < rows).then_some(&*valid);
    match (lane.data, kind) {
        (LaneData::Bool(words), _) => {
            let mut values = [0; VECTOR_WORDS];
            // SAFETY: a bitmap covers every row of its owner.
            let mut trues = unsafe { read_bits(words, first, rows, &mut values) };
            if let Some(valid) = valid {
                let both = values.iter().zip(valid);
                trues = both.map(|(a, b)| (a & b).count_ones() as usize).sum();
            }
            Zone {
                sum: trues as i128,
                has_sum: true,
                ..zone
            }
        }
        (LaneData::Fixed { values, .. }, LaneKind::Fixed { width, number, .. }) => {
            // SAFETY: numbers are stored without padding, at a multiple of their width, and the
            // caller's rows exist. Values of 16 bytes, which need no alignment, are not read as
            // numbers.
            unsafe {
                let values = values.add(first * usize::from(width));
                match (number, width) {
                    (Number::Signed, 2) => measure::signed(slice::<i16>(values, rows), valid, zone),
                    (Number::Signed, 4) => measure::signed(slice::<i32>(values, rows), valid, zone),
                    (Number::Signed, 8) => measure::signed(slice::<i64>(values, rows), valid, zone),
                    (Number::Float, 4) => measure::floats(slice::<f32>(values, rows), valid, zone),
                    (Number::Float, 8) => measure::floats(slice::<f64>(values, rows), valid, zone),
                    (Number::Bytes16, _) => prefixes::bytes16(values, rows, valid, zone),
                    _ => zone,
                }
            }
        }
        _ => zone,
    }
}

/// # Safety
/// `count` values of the type lie there, aligned, and do not change for so long.
unsafe fn slice<'a, T>(values: *const u8, count: usize) -> &'a [T] {
    // SAFETY: this function's contract.
    unsafe { std::slice::from_raw_parts(values.cast(), count) }
}

/// Copies `count` bits from bit `first` of a bitmap that a writer may be extending, and answers how
/// many are set. `into` has as many words as they take; bits past them are 0.
///
/// # Safety
/// `words` is aligned and readable up to the word of the last of these bits.
unsafe fn read_bits(words: *const u64, first: usize, count: usize, into: &mut [u64]) -> usize {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    let load = |index: usize| {
        // SAFETY: the caller vouches for the word; it is only ever written by whole atomic stores.
        unsafe { AtomicU64::from_ptr(words.add(index).cast_mut()) }.load(Relaxed)
    };
    let (start, shift) = (first / 64, first % 64);
    let mut ones = 0;
    for (index, word) in into.iter_mut().enumerate().take(bits::words(count)) {
        let left = (count - index * 64).min(64);
        *word = load(start + index) >> shift;
        if shift + left > 64 {
            *word |= load(start + index + 1) << (64 - shift);
        }
        *word &= bits::low_bits(left);
        ones += word.count_ones() as usize;
    }
    ones
}
