//! Bounds of frames by the distance of order keys: `RANGE BETWEEN '1 hour' PRECEDING AND CURRENT ROW`.
//!
//! ```text
//! keys of a partition    3   5   5   9   12 │ NULL NULL
//! current row                        ^
//! 4 PRECEDING                ^ the first key that is not less than 9 - 4
//! ```
//! The keys of a partition never fall, and neither do the bounds, so each bound moves over the partition once. The
//! frame of a row whose key is NULL has the rows whose key is NULL. Other frames have none of these, unless the frame
//! is open at the end where the NULLs are. PostgreSQL defines it so.

use std::ops::Range;

use super::arrange::{Arrangement, SortKey};
use crate::vector::{Evaluation, EvaluationError};

/// How far keys may be apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Distance {
    /// The distance, in the order of the rows: negative for `PRECEDING`.
    pub by: i64,
    /// What keys are.
    pub of: Measure,
}

/// What keys of a window's order are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Integers. A bound that is no integer of 64 bits is beyond all keys.
    Integers,
    /// Times in microseconds since 2000. A bound that PostgreSQL does not have is an error.
    Timestamps,
    /// Days since 2000. The bound is a time in PostgreSQL.
    Dates,
}

/// The finite times that PostgreSQL has, in microseconds since 2000.
const TIMESTAMPS: Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;
/// The days of these times, since 2000.
const DATES: Range<i64> = -2_451_545..106_751_983;

impl Measure {
    /// The number of a measure, for a plan.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The measure of a number.
    pub fn of_number(number: i32) -> Measure {
        match number {
            0 => Measure::Integers,
            1 => Measure::Timestamps,
            _ => Measure::Dates,
        }
    }

    /// The finite keys, if there are infinite ones too: the least and the greatest of their type.
    fn finite(self) -> Option<(Range<i64>, [i64; 2])> {
        match self {
            Measure::Integers => None,
            Measure::Timestamps => Some((TIMESTAMPS, [i64::MIN, i64::MAX])),
            Measure::Dates => Some((DATES, [i32::MIN.into(), i32::MAX.into()])),
        }
    }
}

/// Finds bounds by distance, partition by partition.
pub struct Reach<'a> {
    order: &'a Arrangement,
    /// The only order key; `None` where no bound is a distance.
    key: Option<&'a SortKey>,
    /// The positions of the partition whose key is not NULL.
    known: Range<usize>,
    /// The partition of `known`, and how far both bounds have moved in it.
    partition: Range<usize>,
    first: usize,
    end: usize,
}

impl<'a> Reach<'a> {
    /// No partition yet.
    pub fn new(order: &'a Arrangement, key: Option<&'a SortKey>) -> Reach<'a> {
        Reach {
            order,
            key,
            known: 0..0,
            partition: usize::MAX..usize::MAX,
            first: 0,
            end: 0,
        }
    }

    /// The first position of the frame of some peers.
    ///
    /// # Errors
    /// The bound is no time.
    pub fn first(
        &mut self,
        partition: &Range<usize>,
        peers: &Range<usize>,
        distance: Distance,
    ) -> Evaluation<usize> {
        self.enter(partition);
        let moved = self.moved(self.first, peers, distance, |key, bound| key < bound)?;
        self.first = moved.unwrap_or(self.first);
        Ok(moved.unwrap_or(peers.start))
    }

    /// The position after the frame of some peers.
    ///
    /// # Errors
    /// The bound is no time.
    pub fn end(
        &mut self,
        partition: &Range<usize>,
        peers: &Range<usize>,
        distance: Distance,
    ) -> Evaluation<usize> {
        self.enter(partition);
        let moved = self.moved(self.end, peers, distance, |key, bound| key <= bound)?;
        self.end = moved.unwrap_or(self.end);
        Ok(moved.unwrap_or(peers.end))
    }

    /// A position behind `from`: the first whose key does not pass a comparison with the bound of some peers. `None` if
    /// the peers' key is NULL.
    fn moved(
        &self,
        from: usize,
        peers: &Range<usize>,
        distance: Distance,
        passes: impl Fn(i128, i128) -> bool,
    ) -> Evaluation<Option<usize>> {
        // As in PostgreSQL, the bound does not matter where no row is left to be compared.
        if self.is_known(peers) && from == self.known.end {
            return Ok(Some(from));
        }
        let Some((key, bound)) = self.bound(peers, distance)? else {
            return Ok(None);
        };
        let is_passed = |position: &usize| {
            let of_row = key_at(self.order, key, *position);
            of_row.is_some_and(|of_row| passes(of_row.into(), bound))
        };
        let passed = (from..self.known.end).take_while(is_passed).count();
        Ok(Some(from + passed))
    }

    /// The order key, and the bound of keys, which may be beyond all of them; `None` if the peers' key is NULL.
    fn bound(
        &self,
        peers: &Range<usize>,
        distance: Distance,
    ) -> Evaluation<Option<(&'a SortKey, i128)>> {
        let Some(key) = self.key else {
            return Ok(None);
        };
        let Some(of_row) = key_at(self.order, key, peers.start) else {
            return Ok(None);
        };
        // Keys are in the wanted order, so a distance is the same in both directions.
        let moved = i128::from(of_row) + i128::from(distance.by);
        if let Some((finite, infinite)) = distance.of.finite() {
            let value = key.value(of_row);
            if infinite.contains(&value) {
                return Ok(Some((key, of_row.into())));
            }
            let by = if key.is_descending {
                -distance.by
            } else {
                distance.by
            };
            let is_time = value
                .checked_add(by)
                .is_some_and(|moved| finite.contains(&moved));
            if !is_time {
                return Err(EvaluationError::TimestampOutOfRange);
            }
        }
        Ok(Some((key, moved)))
    }

    /// Whether the key of peers is not NULL.
    fn is_known(&self, peers: &Range<usize>) -> bool {
        self.known.contains(&peers.start)
    }

    /// Begins a partition, unless the bounds are in it.
    fn enter(&mut self, partition: &Range<usize>) {
        let Some(key) = self.key.filter(|_| self.partition != *partition) else {
            return;
        };
        let is_null = |position: &usize| key_at(self.order, key, *position).is_none();
        let nulls = match key.nulls_first {
            true => partition.clone().take_while(is_null).count(),
            false => partition.clone().rev().take_while(is_null).count(),
        };
        self.known = match key.nulls_first {
            true => partition.start + nulls..partition.end,
            false => partition.start..partition.end - nulls,
        };
        self.partition = partition.clone();
        (self.first, self.end) = (self.known.start, self.known.start);
    }
}

/// The key at a position; `None` is NULL.
#[inline]
fn key_at(order: &Arrangement, key: &SortKey, position: usize) -> Option<u64> {
    let row = order.rows[position] as usize;
    key.keys.get(row).map(|key| key.0)
}
