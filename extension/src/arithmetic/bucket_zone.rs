//! Buckets on the wall clock of a time zone, whose offset from UTC changes. The zone is a function,
//! so this is arithmetic.
//!
//! The bucket is found on the local clock. Its start is then converted to an instant, which is never after the value:
//!
//! | the local start | is the instant |
//! |---|---|
//! | shown once | when it is shown |
//! | shown twice, buckets of whole days | when it is first shown |
//! | shown twice, shorter buckets | when it is shown with the value's own offset, if it is, so repeated hours are apart |
//! | never shown (clocks were put forward over it) | when the clocks were put forward |
//!
//! Clocks are assumed not to change twice within two days.

use super::bucket::{Bucket, DAY_MICROS};

/// The start of the bucket that contains the finite instant `value`; `None` if it is out of range. `local` is the local
/// time at an instant, both in microseconds.
pub fn floor_in_zone(
    bucket: &Bucket,
    value: i64,
    mut local: impl FnMut(i64) -> i64,
) -> Option<i64> {
    let here = local(value);
    let start = bucket.floor(here)?;
    let same_offset = value.checked_sub(here - start)?;
    if !bucket.is_whole_days() && local(same_offset) == start {
        return Some(same_offset);
    }
    Some(first_shown(start, same_offset, &mut local))
}

/// The first instant within a day of `near` whose local time is at or after `start`.
fn first_shown(start: i64, near: i64, mut local: impl FnMut(i64) -> i64) -> i64 {
    let mut offset = |instant: i64| local(instant) - instant;
    let offset_before = offset(near - DAY_MICROS);
    let offset_after = offset(near + DAY_MICROS);
    let (with_before, with_after) = (start - offset_before, start - offset_after);
    if offset_before == offset_after || local(with_before) == start {
        return with_before;
    }
    if local(with_after) == start {
        return with_after;
    }
    // Clocks were put forward past `start`, after `with_after` and at `with_before` at the latest.
    let (mut earlier, mut at_or_later) = (with_after, with_before);
    while at_or_later - earlier > 1 {
        let middle = earlier + (at_or_later - earlier) / 2;
        if local(middle) < start {
            earlier = middle;
        } else {
            at_or_later = middle;
        }
    }
    at_or_later
}

#[cfg(test)]
mod tests {
    use super::super::bucket::Parts;
    use super::*;
    use proptest::prelude::*;

    const HOUR: i64 = DAY_MICROS / 24;

    fn bucket(days: i32, micros: i64) -> Bucket {
        let width = Parts {
            months: 0,
            days,
            micros,
        };
        Bucket::timestamps(width, Some(0)).expect("a legal width")
    }

    /// A zone whose offset changes once, at `change`.
    fn zone(change: i64, before: i64, after: i64) -> impl Fn(i64) -> i64 {
        move |instant| instant + if instant < change { before } else { after }
    }

    #[test]
    fn a_day_of_23_hours_and_one_of_25() {
        let day = bucket(1, 0);
        // Put forward at 01:00 UTC of day 0.
        let spring = zone(HOUR, HOUR, 2 * HOUR);
        assert_eq!(floor_in_zone(&day, 12 * HOUR, &spring), Some(-HOUR));
        assert_eq!(floor_in_zone(&day, 22 * HOUR, &spring), Some(22 * HOUR));
        let autumn = zone(HOUR, 2 * HOUR, HOUR);
        assert_eq!(floor_in_zone(&day, 12 * HOUR, &autumn), Some(-2 * HOUR));
        assert_eq!(floor_in_zone(&day, 22 * HOUR, &autumn), Some(-2 * HOUR));
        assert_eq!(floor_in_zone(&day, 23 * HOUR, &autumn), Some(23 * HOUR));
    }

    #[test]
    fn repeated_hours_stay_apart() {
        // At 01:00 UTC the local clock goes from 03:00 back to 02:00.
        let autumn = zone(HOUR, 2 * HOUR, HOUR);
        let hour = bucket(0, HOUR);
        assert_eq!(floor_in_zone(&hour, HOUR / 2, &autumn), Some(0));
        assert_eq!(floor_in_zone(&hour, HOUR + HOUR / 2, &autumn), Some(HOUR));
        // A bucket over the change starts when it is first shown.
        let six = bucket(0, 6 * HOUR);
        assert_eq!(floor_in_zone(&six, 2 * HOUR + 1, &autumn), Some(-2 * HOUR));
    }

    #[test]
    fn a_midnight_shown_twice_and_one_never_shown() {
        let day = bucket(1, 0);
        // The local clock goes from 01:00 back to 00:00 of day 0.
        let twice = zone(0, HOUR, 0);
        assert_eq!(floor_in_zone(&day, -HOUR / 2, &twice), Some(-HOUR));
        assert_eq!(floor_in_zone(&day, HOUR / 2, &twice), Some(-HOUR));
        // The local clock goes from 23:30 to 00:30 of day 0.
        let never = zone(0, -HOUR / 2, HOUR / 2);
        assert_eq!(floor_in_zone(&day, HOUR / 4, &never), Some(0));
        assert_eq!(
            floor_in_zone(&day, -HOUR / 4, &never),
            Some(-DAY_MICROS + HOUR / 2)
        );
    }

    proptest! {
        /// A start is not after its value, is the start of its own bucket, and shows the local
        /// start or the first moment after it.
        #[test]
        fn starts_are_fixed_points(
            change in -3 * DAY_MICROS..3 * DAY_MICROS,
            before in -14 * HOUR..14 * HOUR,
            shift in -2 * HOUR..2 * HOUR,
            value in -5 * DAY_MICROS..5 * DAY_MICROS,
            width in prop_oneof![1..DAY_MICROS, Just(DAY_MICROS), Just(3 * DAY_MICROS), Just(HOUR)],
        ) {
            let local = zone(change, before, before + shift);
            let bucket = bucket(0, width);
            let start = floor_in_zone(&bucket, value, &local).expect("in range");
            prop_assert!(start <= value);
            let label = bucket.floor(local(value)).expect("in range");
            prop_assert!(local(start) == label || (start == change && local(start) > label && local(start - 1) < label));
            if local(start) == label {
                prop_assert_eq!(floor_in_zone(&bucket, start, &local), Some(start));
            }
        }
    }
}
