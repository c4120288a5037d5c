use super::*;
use proptest::prelude::*;

fn micros(micros: i64) -> Parts {
    Parts {
        months: 0,
        days: 0,
        micros,
    }
}

fn days(days: i32) -> Parts {
    Parts {
        months: 0,
        days,
        micros: 0,
    }
}

fn months(months: i32) -> Parts {
    Parts {
        months,
        days: 0,
        micros: 0,
    }
}

#[test]
fn days_of_the_calendar() {
    for (year, month, day) in [
        (2000, 1, 0),
        (2000, 3, 60),
        (1999, 12, -31),
        (1970, 1, -10_957),
        (2024, 3, 8_826),
        (1900, 3, -36_465),
        (0, 3, -EPOCH_DAYS),
        (-4713, 11, -2_451_568),
    ] {
        let index = year * 12 + month - 1;
        assert_eq!(day_of_month(index), day, "{year}-{month}");
        assert_eq!(month_of_day(day), index, "{year}-{month}");
        assert_eq!(month_of_day(day - 1), index - 1, "before {year}-{month}");
    }
}

#[test]
fn widths_that_are_none() {
    let of = |parts| Bucket::timestamps(parts, None);
    assert_eq!(of(micros(0)), Err(BucketError::WidthNotPositive));
    assert_eq!(of(micros(-1)), Err(BucketError::WidthNotPositive));
    assert_eq!(of(months(-1)), Err(BucketError::WidthNotPositive));
    assert_eq!(of(days(i32::MAX)), Err(BucketError::WidthTooWide));
    let mixed = Parts {
        months: 1,
        days: 1,
        micros: 0,
    };
    assert_eq!(of(mixed), Err(BucketError::MonthsMixed));
    // A day less an hour is 23 hours.
    let less = Parts {
        months: 0,
        days: 1,
        micros: -3_600_000_000,
    };
    assert_eq!(of(less), of(micros(23 * 3_600_000_000)));
    assert_eq!(
        Bucket::dates(micros(1), None),
        Err(BucketError::WidthNotDays)
    );
    assert_eq!(Bucket::integers(0), Err(BucketError::WidthNotPositive));
    assert_eq!(Bucket::bigints(-5), Err(BucketError::WidthNotPositive));
}

#[test]
fn origins_that_are_none() {
    assert_eq!(
        Bucket::timestamps(days(1), Some(i64::MAX)),
        Err(BucketError::OriginInfinite)
    );
    assert_eq!(
        Bucket::dates(months(1), Some(i32::MIN)),
        Err(BucketError::OriginInfinite)
    );
    assert_eq!(
        Bucket::dates(months(1), Some(1)),
        Err(BucketError::OriginNotMonthStart)
    );
    assert_eq!(
        Bucket::timestamps(months(1), Some(1)),
        Err(BucketError::OriginNotMonthStart)
    );
}

#[test]
fn starts_out_of_range() {
    let day_min = DAYS_MIN * DAY_MICROS;
    let week = Bucket::timestamps(days(7), Some(day_min + DAY_MICROS)).expect("legal");
    assert_eq!(week.floor(day_min), None);
    assert_eq!(week.floor(day_min + DAY_MICROS), Some(day_min + DAY_MICROS));
    let month = Bucket::timestamps(months(1), None).expect("legal");
    assert_eq!(month.floor(day_min), None);
    let longest = Bucket::timestamps(months(i32::MAX), None).expect("legal");
    assert_eq!(longest.floor(-1), None);
    assert_eq!(longest.floor(1), Some(0));
    let integers = Bucket::integers(10).expect("legal");
    assert_eq!(integers.floor(i32::MIN as i64), None);
    let bigints = Bucket::bigints(10).expect("legal");
    assert_eq!(bigints.floor(i64::MIN), None);
    assert_eq!(bigints.floor(i64::MAX), Some(i64::MAX - 7));
}

proptest! {
    /// Against the definition, in arithmetic that cannot overflow.
    #[test]
    fn fixed_widths(width in 1..=i64::MAX, value in i64::MIN + 1..i64::MAX, origin in i64::MIN + 1..i64::MAX) {
        let bucket = Bucket::timestamps(micros(width), Some(origin)).expect("legal");
        let into = (value as i128 - origin as i128).rem_euclid(width as i128);
        let start = i64::try_from(value as i128 - into).ok().filter(|start| *start >= DAYS_MIN * DAY_MICROS);
        prop_assert_eq!(bucket.floor(value), start);
    }

    /// A start is the first of a month, a multiple of the width from the origin, and the last such before the value.
    #[test]
    fn month_widths(width in 1..5_000i32, value in -1_000_000_000i64..1_000_000_000, origin in -60_000i64..60_000) {
        let width = width as i64;
        let bucket = Bucket {
            step: months_step(width, origin),
            start_min: i64::MIN,
        };
        let start = bucket.floor(value).expect("in range");
        let month = month_of_day(start);
        prop_assert_eq!(day_of_month(month), start);
        prop_assert_eq!((month - origin).rem_euclid(width), 0);
        prop_assert!(start <= value && value < day_of_month(month + width));
    }

    /// Months follow each other without gap, 28 to 31 days each, twelve a year.
    #[test]
    fn months_of_days(day in -1_000_000_000i64..1_000_000_000) {
        let month = month_of_day(day);
        let (first, next) = (day_of_month(month), day_of_month(month + 1));
        prop_assert!(first <= day && day < next && (28..=31).contains(&(next - first)));
    }
}

fn months_step(width: i64, origin: i64) -> Step {
    Step::Months {
        width,
        phase: origin.rem_euclid(width),
        day: 1,
    }
}
