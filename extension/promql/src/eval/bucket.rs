//! Quantiles and fractions of the buckets of a classic histogram.

/// A bucket: how many observations are at most its upper bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bucket {
    pub(super) upper: f64,
    pub(super) count: f64,
}

/// Differences between neighbours, relative to their sum, that rounding has made.
const ROUNDING: f64 = 1e-12;

/// What had to be changed so that counts grow with the bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Forced {
    pub(super) least_bucket: f64,
    pub(super) greatest_bucket: f64,
    pub(super) difference: f64,
}

/// Merges buckets of one bound; they have to be sorted.
fn coalesce(buckets: &mut Vec<Bucket>) {
    buckets.dedup_by(|next, held| {
        let is_same = next.upper == held.upper;
        if is_same {
            held.count += next.count;
        }
        is_same
    });
}

/// Whether two counts differ by rounding only.
fn is_almost_equal(a: f64, b: f64) -> bool {
    if a.is_nan() && b.is_nan() || a == b {
        return true;
    }
    let (sum, difference) = (a.abs() + b.abs(), (a - b).abs());
    if a == 0.0 || b == 0.0 || sum < f64::MIN_POSITIVE {
        return difference < ROUNDING * f64::MIN_POSITIVE;
    }
    difference / sum.min(f64::MAX) < ROUNDING
}

/// Makes counts grow with the bounds: falls are removed, differences by rounding are ignored.
fn make_monotonic(buckets: &mut [Bucket]) -> Option<Forced> {
    let mut forced: Option<Forced> = None;
    let mut before = buckets[0].count;
    for bucket in &mut buckets[1..] {
        if bucket.count == before {
            continue;
        }
        if is_almost_equal(before, bucket.count) {
            bucket.count = before;
        } else if bucket.count < before {
            let held = forced.get_or_insert(Forced {
                least_bucket: f64::INFINITY,
                greatest_bucket: f64::NEG_INFINITY,
                difference: 0.0,
            });
            held.least_bucket = held.least_bucket.min(bucket.upper);
            held.greatest_bucket = held.greatest_bucket.max(bucket.upper);
            held.difference = held.difference.max(before - bucket.count);
            bucket.count = before;
        } else {
            before = bucket.count;
        }
    }
    forced
}

/// The quantile of sorted buckets, interpolated within a bucket.
pub(super) fn quantile(quantile: f64, buckets: &mut Vec<Bucket>) -> (f64, Option<Forced>) {
    if quantile.is_nan() {
        return (f64::NAN, None);
    }
    if quantile < 0.0 {
        return (f64::NEG_INFINITY, None);
    }
    if quantile > 1.0 {
        return (f64::INFINITY, None);
    }
    if buckets
        .last()
        .is_none_or(|last| last.upper != f64::INFINITY)
    {
        return (f64::NAN, None);
    }
    coalesce(buckets);
    let forced = make_monotonic(buckets);
    let last = buckets.len() - 1;
    let observations = buckets[last].count;
    if last == 0 || observations == 0.0 {
        return (f64::NAN, forced);
    }
    let mut rank = quantile * observations;
    // Counts may be NaN, which reach no rank: the search by halves goes on behind them, as in Go.
    let reaches = |bucket: &Bucket| bucket.count >= rank;
    let place = buckets[..last].partition_point(|bucket| !reaches(bucket));
    if place == last {
        return (buckets[last - 1].upper, forced);
    }
    if place == 0 && buckets[0].upper <= 0.0 {
        return (buckets[0].upper, forced);
    }
    let (mut start, mut count) = (0.0, buckets[place].count);
    if place > 0 {
        start = buckets[place - 1].upper;
        count -= buckets[place - 1].count;
        rank -= buckets[place - 1].count;
    }
    (
        start + (buckets[place].upper - start) * (rank / count),
        forced,
    )
}

/// The share of observations between two bounds, interpolated within buckets.
pub(super) fn fraction(lower: f64, upper: f64, buckets: &mut Vec<Bucket>) -> f64 {
    if buckets
        .last()
        .is_none_or(|last| last.upper != f64::INFINITY)
    {
        return f64::NAN;
    }
    coalesce(buckets);
    let total = buckets[buckets.len() - 1].count;
    if total == 0.0 || lower.is_nan() || upper.is_nan() {
        return f64::NAN;
    }
    if lower >= upper {
        return 0.0;
    }
    let (lower_rank, upper_rank) = (rank_of(lower, buckets), rank_of(upper, buckets));
    let capped = |rank: Option<f64>| match rank {
        Some(rank) if rank > total => total,
        Some(rank) => rank,
        None => total,
    };
    (capped(upper_rank) - capped(lower_rank)) / total
}

/// How many observations are below a value; `None` if it is beyond all buckets.
fn rank_of(value: f64, buckets: &[Bucket]) -> Option<f64> {
    let mut rank = 0.0;
    // Bounds above zero mean that there are no negative observations.
    let mut start = if buckets[0].upper <= 0.0 {
        f64::NEG_INFINITY
    } else {
        0.0
    };
    for bucket in buckets {
        if start >= value {
            return Some(rank);
        }
        if start < value && bucket.upper > value {
            if start == f64::NEG_INFINITY {
                return Some(bucket.count);
            }
            let width = bucket.upper - start;
            return Some(rank + (bucket.count - rank) * (value - start) / width);
        }
        rank = bucket.count;
        start = bucket.upper;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Bucket, fraction, quantile};

    fn buckets(pairs: &[(f64, f64)]) -> Vec<Bucket> {
        pairs
            .iter()
            .map(|(upper, count)| Bucket {
                upper: *upper,
                count: *count,
            })
            .collect()
    }

    #[test]
    fn quantiles_are_interpolated_within_a_bucket() {
        let of = |q, pairs: &[(f64, f64)]| quantile(q, &mut buckets(pairs)).0;
        let plain = [(1.0, 2.0), (2.0, 6.0), (f64::INFINITY, 8.0)];
        assert_eq!(of(0.5, &plain), 1.5);
        assert_eq!(of(1.0, &plain), 2.0);
        assert_eq!(of(0.125, &plain), 0.5);
        assert!(of(0.5, &plain[..2]).is_nan());
        let falling = [(1.0, 4.0), (2.0, 2.0), (f64::INFINITY, 8.0)];
        let forced = quantile(0.5, &mut buckets(&falling)).1.unwrap();
        assert_eq!((forced.least_bucket, forced.difference), (2.0, 2.0));
    }

    #[test]
    fn fractions_are_interpolated_within_buckets() {
        let plain = [(1.0, 2.0), (2.0, 6.0), (f64::INFINITY, 8.0)];
        let of = |lower, upper| fraction(lower, upper, &mut buckets(&plain));
        assert_eq!(of(0.0, 1.0), 0.25);
        assert_eq!(of(0.5, 1.5), 0.375);
        assert_eq!(of(f64::NEG_INFINITY, f64::INFINITY), 1.0);
        assert_eq!(of(2.0, 1.0), 0.0);
    }
}
