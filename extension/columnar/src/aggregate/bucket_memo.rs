//! A memo of buckets, with the ids of their groups.
//!
//! Rows sorted by series and time leave a bucket and return to it with each series. Calling the
//! bucket function costs about as much as a hundred rows of one bucket, so buckets are remembered.
//!
//! The place of a bucket follows from its distance from the first bucket, in widths of the first
//! bucket. So neighbours never displace each other. If others do, the number of places grows.
//! Months and similar buckets have different widths, so one of them may have several places. What
//! is found is right in any case, because its bounds are compared.

use super::key::Bucket;

/// The number of places at first, and at most. Both are powers of two.
const PLACES_MIN: usize = 1 << 10;
const PLACES_MAX: usize = 1 << 16;

/// A bucket and its group. An empty place has a bucket that contains no time.
#[derive(Clone, Copy)]
struct Known {
    bucket: Bucket,
    id: u32,
}

impl Known {
    const NONE: Known = Known {
        bucket: Bucket {
            value: 0,
            first: 1,
            last: 0,
        },
        id: 0,
    };

    #[inline]
    fn has(&self, time: i64) -> bool {
        self.bucket.first <= time && time <= self.bucket.last
    }
}

/// Some of the buckets of earlier rows, with the ids of their groups.
pub(super) struct BucketMemo {
    /// The first time of the first bucket, its width, and one divided by the width.
    origin: i64,
    width: i64,
    inverse: f64,
    /// One place before the first bucket, then a power of two of places.
    known: Vec<Known>,
}

impl Default for BucketMemo {
    fn default() -> Self {
        BucketMemo {
            origin: 0,
            width: 1,
            inverse: 1.0,
            known: vec![Known::NONE],
        }
    }
}

impl BucketMemo {
    /// The bucket of a time, and its group, if it is remembered.
    #[inline]
    pub(super) fn get(&self, time: i64) -> Option<(Bucket, u32)> {
        let known = &self.known[self.place(time)];
        known.has(time).then_some((known.bucket, known.id))
    }

    /// Remembers the bucket of a time.
    pub(super) fn put(&mut self, time: i64, bucket: Bucket, id: u32) {
        if self.known.len() == 1 {
            self.origin = bucket.first;
            let width = bucket.last.saturating_sub(bucket.first);
            self.width = width.saturating_add(1).max(1);
            self.inverse = 1.0 / self.width as f64;
            self.known = vec![Known::NONE; PLACES_MIN];
        }
        let displaced = self.known[self.place(time)].bucket;
        let is_taken = displaced.first <= displaced.last && displaced != bucket;
        if is_taken && self.known.len() < PLACES_MAX {
            let places = vec![Known::NONE; 4 * self.known.len()];
            for known in std::mem::replace(&mut self.known, places) {
                let place = self.place(known.bucket.first);
                if known.has(known.bucket.first) {
                    self.known[place] = known;
                }
            }
        }
        let place = self.place(time);
        self.known[place] = Known { bucket, id };
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.known.capacity() * size_of::<Known>()
    }

    /// The distance of a time from the origin, in widths, without a division. For very distant
    /// times it may be another number, but each time always has the same.
    #[inline]
    fn place(&self, time: i64) -> usize {
        let distance = time.wrapping_sub(self.origin);
        let number = (distance as f64 * self.inverse) as i64;
        let rest = distance.wrapping_sub(number.wrapping_mul(self.width));
        let number = number
            .wrapping_add(i64::from(rest >= self.width))
            .wrapping_sub(i64::from(rest < 0));
        number as usize & (self.known.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(number: i64, width: i64) -> Bucket {
        Bucket {
            value: number,
            first: number * width,
            last: number * width + width - 1,
        }
    }

    #[test]
    fn what_is_found_is_the_bucket_of_the_time() {
        let mut memo = BucketMemo::default();
        assert_eq!(memo.get(0), None);
        for number in [7, -3, 8, 7 + PLACES_MAX as i64, -1_000_000] {
            let kept = bucket(number, 60);
            memo.put(kept.last, kept, number as u32);
            assert_eq!(memo.get(kept.first), Some((kept, number as u32)));
            assert_eq!(memo.get(kept.last), Some((kept, number as u32)));
            assert_eq!(memo.get(kept.last + 60), None);
        }
        // Displaced by the bucket that lies as many widths later as there may be places.
        assert_eq!(memo.get(7 * 60), None);
        assert_eq!(memo.get(8 * 60), Some((bucket(8, 60), 8)));
    }

    #[test]
    fn there_are_places_for_as_many_buckets_as_a_day_has_minutes() {
        let mut memo = BucketMemo::default();
        for number in 0..1440 {
            let kept = bucket(number, 60_000_000);
            memo.put(kept.first + 7, kept, number as u32);
        }
        for number in 0..1440 {
            let kept = bucket(number, 60_000_000);
            for time in [kept.first, kept.first + 1, kept.last] {
                assert_eq!(memo.get(time), Some((kept, number as u32)));
            }
        }
        assert_eq!(memo.get(-1), None);
        assert_eq!(memo.get(1440 * 60_000_000), None);
    }

    #[test]
    fn buckets_without_an_end_are_remembered_too() {
        let mut memo = BucketMemo::default();
        let all = Bucket {
            value: 1,
            first: i64::MIN,
            last: i64::MAX,
        };
        memo.put(i64::MAX, all, 4);
        assert_eq!(memo.get(i64::MAX), Some((all, 4)));
        let one = Bucket {
            value: 2,
            first: i64::MAX,
            last: i64::MAX,
        };
        let mut memo = BucketMemo::default();
        memo.put(i64::MAX, one, 5);
        assert_eq!(memo.get(i64::MAX), Some((one, 5)));
        assert_eq!(memo.get(i64::MIN), None);
    }
}
