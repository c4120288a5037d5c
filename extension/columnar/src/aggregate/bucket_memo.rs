//! Buckets met before, and the ids of their groups.
//!
//! Rows sorted by series and time leave a bucket and come back to it with each series. Asking the function again costs about as
//! much as a hundred rows of one bucket do, so a few hundred buckets are remembered: where a bucket is looked for follows from
//! its distance from the first one in widths of that, so neighbours never displace each other. Months and the like, whose
//! widths differ, may be looked for in several places; what is found is right in any case, as its bounds are compared. The
//! place after the last one is looked at first, since that spares a division.

use super::key::Bucket;

/// Places; a power of two.
const PLACES: usize = 1024;

/// Some of the buckets that rows fell into, with the ids of their groups.
#[derive(Default)]
pub(super) struct BucketMemo {
    /// The first time of the first bucket, and how long that is.
    origin: i64,
    width: i64,
    /// The place of the one that was found last.
    last: usize,
    /// Empty before the first bucket.
    known: Vec<Option<(Bucket, u32)>>,
}

impl BucketMemo {
    /// The bucket of a time, and its group, if it is remembered.
    #[inline]
    pub(super) fn get(&mut self, time: i64) -> Option<(Bucket, u32)> {
        let next = (self.last + 1) % PLACES;
        let found = self.at(next, time).map(|found| (next, found));
        let (place, found) = found.or_else(|| {
            let place = self.place(time);
            Some((place, self.at(place, time)?))
        })?;
        self.last = place;
        Some(found)
    }

    /// What is at a place, if it is the bucket of a time.
    #[inline]
    fn at(&self, place: usize, time: i64) -> Option<(Bucket, u32)> {
        let known = self.known.get(place)?.as_ref();
        let known = known.filter(|(bucket, _)| bucket.first <= time && time <= bucket.last);
        known.copied()
    }

    /// Remembers the bucket of a time.
    pub(super) fn put(&mut self, time: i64, bucket: Bucket, id: u32) {
        if self.known.is_empty() {
            self.origin = bucket.first;
            self.width = bucket
                .last
                .saturating_sub(bucket.first)
                .saturating_add(1)
                .max(1);
            self.known = vec![None; PLACES];
        }
        let place = self.place(time);
        self.last = place;
        self.known[place] = Some((bucket, id));
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.known.capacity() * size_of::<Option<(Bucket, u32)>>()
    }

    #[inline]
    fn place(&self, time: i64) -> usize {
        let distance = time.wrapping_sub(self.origin);
        distance.div_euclid(self.width.max(1)) as usize % PLACES
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
        for number in [7, -3, 8, 7 + PLACES as i64, -1_000_000] {
            let kept = bucket(number, 60);
            memo.put(kept.last, kept, number as u32);
            assert_eq!(memo.get(kept.first), Some((kept, number as u32)));
            assert_eq!(memo.get(kept.last), Some((kept, number as u32)));
            assert_eq!(memo.get(kept.last + 60), None);
        }
        // Displaced by the one as many widths later as there are places.
        assert_eq!(memo.get(7 * 60), None);
        assert_eq!(memo.get(8 * 60), Some((bucket(8, 60), 8)));
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
