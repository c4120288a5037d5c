//! Keys that are time buckets.
//!
//! Unless its zone shows that all rows of a vector lie in one bucket, the vector is cut into
//! stretches of one bucket each. Series that were sampled together have the same times one after
//! the other, so the stretches of one series are used again for the others: see
//! [`super::repeated_times`].

use lanes_simd::stretches;

use super::key::{Bucket, Ids, Key, KeyReader};
use super::key_values::KeyValues;
use super::repeated_times::SeriesPart;
use crate::vector::frame::{Bounds, Frame};
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::value::Operand;

impl KeyReader {
    pub(super) fn assign_bucket<T: Number>(
        &mut self,
        values: &mut KeyValues,
        operand: Operand,
        selection: &Selection,
        bounds: Bounds,
        frame: &Frame<'_>,
    ) -> Ids<'_> {
        let valid = operand.valid(selection);
        if bounds.known
            && valid == *selection
            && let Some(row) = selection.next(0)
        {
            // The whole vector lies in one bucket, so its other times need not be read. The bucket
            // function is not called for a bound: perhaps no row that counts has it, and the
            // function may fail for it.
            // SAFETY: the operand has a `T` for each row of the vector.
            let time = unsafe { operand.get::<T>(row) }.to_scalar().0 as i64;
            let bucket = self.bucket_of(time);
            if bucket.has_all(bounds) {
                return Ids::One(self.bucket_id(values, bucket));
            }
        }
        if let Operand::Each { values: times, .. } = operand
            && valid == *selection
            && T::TYPE == NumberType::I64
            // SAFETY: as above.
            && unsafe {
                self.cut_buckets(values, times.cast(), frame.rows, selection, bounds.sorted)
            }
        {
            return self.stretches.ids();
        }
        self.assign_null(values, &selection.and_not(&valid));
        // Consecutive rows mostly lie in one bucket.
        let (mut first, mut last, mut id) = (1, 0, 0);
        valid.for_each_of(frame.rows, |row| {
            // SAFETY: the operand has a `T` for each row of the vector.
            let time = unsafe { operand.get::<T>(row) }.to_scalar().0 as i64;
            if time < first || last < time {
                let bucket = self.bucket_of(time);
                id = self.bucket_id(values, bucket);
                (first, last) = (bucket.first, bucket.last);
            }
            self.ids[row] = id;
        });
        Ids::Each(&*self.ids)
    }

    /// Cuts a vector into stretches of one bucket each; false: they are too short to pay. If the
    /// times are sorted, few of them are read.
    ///
    /// # Safety
    /// There are so many times.
    unsafe fn cut_buckets(
        &mut self,
        values: &mut KeyValues,
        times: *const i64,
        rows: usize,
        selection: &Selection,
        sorted: bool,
    ) -> bool {
        self.stretches.clear();
        // SAFETY: the caller's promise.
        let times = unsafe { std::slice::from_raw_parts(times, rows) };
        let may_repeat = !sorted && selection.is_full(rows);
        let mut part = SeriesPart::default();
        let mut from = 0;
        while let Some(row) = selection.next(from) {
            if !self.stretches.do_pay(row) {
                return false;
            }
            if may_repeat && (row == 0 || times[row] < times[row - 1]) {
                self.repeated
                    .remember(&part, &times[..row], &self.stretches);
                part = self.repeated.begin(row, times, &self.stretches);
            }
            let (group, to) = match self.repeated.next_stretch(&mut part) {
                Some(next) => next,
                None => {
                    let rest = &times[row..];
                    let bucket = self.bucket_of(rest[0]);
                    let count = if sorted {
                        count_within(rest, bucket.last, self.stretch_rows)
                    } else {
                        // SAFETY: the times of a slice.
                        unsafe {
                            let (first, last) = (bucket.first, bucket.last);
                            stretches::count_within(rest.as_ptr(), rest.len(), first, last)
                        }
                    };
                    debug_assert!(count > 0 && bucket.first <= bucket.last);
                    part.cut_rows += count;
                    (self.bucket_id(values, bucket), row + count)
                }
            };
            self.stretches.push(row, group);
            self.stretch_rows = to - row;
            from = to;
        }
        if may_repeat {
            self.repeated.remember(&part, times, &self.stretches);
        }
        self.stretches.end(rows);
        true
    }

    /// The bucket of a time.
    #[inline]
    pub(super) fn bucket_of(&mut self, time: i64) -> Bucket {
        if let Some((bucket, _)) = self.bucket
            && bucket.first <= time
            && time <= bucket.last
        {
            return bucket;
        }
        if let Some((bucket, id)) = self.buckets.get(time) {
            self.bucket = Some((bucket, Some(id)));
            return bucket;
        }
        let Key::Bucket(_, buckets) = &mut self.key else {
            unreachable!("only buckets ask for buckets");
        };
        let bucket = buckets.bucket(time);
        self.bucket = Some((bucket, None));
        self.asked = time;
        bucket
    }

    /// The id of the bucket that was last looked up. The bucket becomes a group only now.
    #[inline]
    fn bucket_id(&mut self, values: &mut KeyValues, bucket: Bucket) -> u32 {
        if let Some((_, Some(id))) = self.bucket {
            return id;
        }
        let id = values.number(bucket.value as u64, Scalar(bucket.value as u64));
        self.bucket = Some((bucket, Some(id)));
        self.buckets.put(self.asked, bucket, id);
        id
    }
}

/// The number of sorted times that are no later than `last`, found in doubling steps from a guess.
/// A search of all of them would read far more memory.
fn count_within(times: &[i64], last: i64, guess: usize) -> usize {
    let guess = guess.min(times.len());
    let (mut low, mut high, mut step) = (guess, guess, 1);
    if guess > 0 && times[guess - 1] > last {
        while low > 0 && times[low - 1] > last {
            high = low - 1;
            low = low.saturating_sub(step);
            step *= 2;
        }
    } else {
        while high < times.len() && times[high] <= last {
            low = high + 1;
            high = (high + step).min(times.len());
            step *= 2;
        }
    }
    low + times[low..high].partition_point(|time| *time <= last)
}

#[cfg(test)]
mod tests {
    use super::count_within;

    #[test]
    fn any_guess_finds_what_a_search_finds() {
        let times: Vec<i64> = [0, 0, 1, 3, 3, 3, 4, 9, 9, 12, 13, 14, 20, 21, 22, 30, 31].into();
        for length in 0..=times.len() {
            let times = &times[..length];
            for last in -1..33 {
                let expected = times.iter().filter(|time| **time <= last).count();
                for guess in 0..20 {
                    assert_eq!(count_within(times, last, guess), expected, "{last} {guess}");
                }
            }
        }
    }
}
