//! Buckets of times, dates and integers: arithmetic that finds the start of the bucket that contains a value.
//!
//! A bucket is `[start, start + width)`, and one bucket starts at the origin. The default origin of
//! fixed widths is Monday 2000-01-03, so weeks begin on Mondays. The default origin of months is
//! 2000-01-01, so quarters, years and decades are those of the calendar. A start is at or before
//! its value, even before the origin (floor, not truncation).
//!
//! Values are counted as in PostgreSQL: in days or microseconds since 2000-01-01.

/// Microseconds of a day.
pub const DAY_MICROS: i64 = 86_400_000_000;
/// Monday 2000-01-03, in days.
const MONDAY_DAYS: i64 = 2;
/// The first day of PostgreSQL's timestamps and dates, 4714-11-24 BC.
const DAYS_MIN: i64 = -2_451_545;
/// 2000-01-01 in days since 0000-03-01, where the calendar's arithmetic begins.
const EPOCH_DAYS: i64 = 730_425;
/// Days of 400 years.
const ERA_DAYS: i64 = 146_097;

/// Why a bucket is illegal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketError {
    /// The width is zero or negative.
    WidthNotPositive,
    /// The width has months, and days or time.
    MonthsMixed,
    /// The width is past 2^63 microseconds.
    WidthTooWide,
    /// The buckets are of dates, and the width is not a whole number of days.
    WidthNotDays,
    /// The origin is infinite.
    OriginInfinite,
    /// The width is in months, and the origin is not the first day of a month at midnight.
    OriginNotMonthStart,
}

/// The parts of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    pub months: i32,
    pub days: i32,
    pub micros: i64,
}

impl Parts {
    /// The length in microseconds, with months of 30 days, for estimates.
    pub fn estimated_micros(&self) -> f64 {
        let days = f64::from(self.months) * 30.0 + f64::from(self.days);
        days * 86_400e6 + self.micros as f64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Buckets of `width` units. One starts at `phase`, which is in `0..width`.
    Fixed { width: i64, phase: i64 },
    /// Buckets of `width` months. One starts at month `phase` since year 0. A day has `day` units.
    Months { width: i64, phase: i64, day: i64 },
}

/// Buckets of one width and origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    step: Step,
    /// The least start.
    start_min: i64,
}

impl Bucket {
    /// Buckets of timestamps in microseconds. The caller decides of which clock.
    pub fn timestamps(width: Parts, origin: Option<i64>) -> Result<Bucket, BucketError> {
        Bucket::of_interval(width, origin, DAY_MICROS)
    }

    /// Buckets of dates, in days.
    pub fn dates(width: Parts, origin: Option<i32>) -> Result<Bucket, BucketError> {
        let origin = match origin {
            Some(i32::MIN | i32::MAX) => return Err(BucketError::OriginInfinite),
            other => other.map(i64::from),
        };
        Bucket::of_interval(width, origin, 1)
    }

    /// Buckets of bigints, one of which starts at 0.
    pub fn bigints(width: i64) -> Result<Bucket, BucketError> {
        Bucket::of_integers(width, i64::MIN)
    }

    /// Buckets of integers, one of which starts at 0.
    pub fn integers(width: i32) -> Result<Bucket, BucketError> {
        Bucket::of_integers(width as i64, i32::MIN as i64)
    }

    fn of_integers(width: i64, start_min: i64) -> Result<Bucket, BucketError> {
        if width <= 0 {
            return Err(BucketError::WidthNotPositive);
        }
        Ok(Bucket {
            step: Step::Fixed { width, phase: 0 },
            start_min,
        })
    }

    /// Buckets whose width is an interval. A day has `day` units.
    fn of_interval(width: Parts, origin: Option<i64>, day: i64) -> Result<Bucket, BucketError> {
        let step = if width.months != 0 {
            months(width, origin, day)?
        } else {
            fixed(width, origin, day)?
        };
        Ok(Bucket {
            step,
            start_min: DAYS_MIN * day,
        })
    }

    /// The start of the bucket that contains a finite value; `None` if the start is out of the type's range.
    #[inline]
    pub fn floor(&self, value: i64) -> Option<i64> {
        let start = match self.step {
            Step::Fixed { width, phase } => {
                // Two remainders are subtracted, so only the last subtraction can overflow.
                let into = value.rem_euclid(width) - phase;
                value.checked_sub(if into < 0 { into + width } else { into })
            }
            Step::Months { width, phase, day } => {
                let month = month_of_day(value.div_euclid(day));
                day_of_month(month - (month - phase).rem_euclid(width)).checked_mul(day)
            }
        };
        start.filter(|start| *start >= self.start_min)
    }

    /// The start of the bucket after the bucket that starts at `start`; `None` if it is out of range.
    pub fn next(&self, start: i64) -> Option<i64> {
        match self.step {
            Step::Fixed { width, .. } => start.checked_add(width),
            Step::Months { width, day, .. } => {
                let month = month_of_day(start.div_euclid(day));
                day_of_month(month + width).checked_mul(day)
            }
        }
    }

    /// Whether buckets of timestamps start and end at midnight.
    pub fn is_whole_days(&self) -> bool {
        match self.step {
            Step::Fixed { width, phase } => width % DAY_MICROS == 0 && phase % DAY_MICROS == 0,
            Step::Months { .. } => true,
        }
    }
}

fn months(width: Parts, origin: Option<i64>, day: i64) -> Result<Step, BucketError> {
    if width.days != 0 || width.micros != 0 {
        return Err(BucketError::MonthsMixed);
    }
    if width.months < 0 {
        return Err(BucketError::WidthNotPositive);
    }
    let origin = match origin {
        Some(i64::MIN | i64::MAX) => return Err(BucketError::OriginInfinite),
        other => other.unwrap_or(0),
    };
    let month = month_of_day(origin.div_euclid(day));
    if day_of_month(month).checked_mul(day) != Some(origin) {
        return Err(BucketError::OriginNotMonthStart);
    }
    let width = width.months as i64;
    Ok(Step::Months {
        width,
        phase: month.rem_euclid(width),
        day,
    })
}

fn fixed(width: Parts, origin: Option<i64>, day: i64) -> Result<Step, BucketError> {
    let micros = width.days as i128 * DAY_MICROS as i128 + width.micros as i128;
    if micros <= 0 {
        return Err(BucketError::WidthNotPositive);
    }
    let unit = (DAY_MICROS / day) as i128;
    if micros % unit != 0 {
        return Err(BucketError::WidthNotDays);
    }
    let width = i64::try_from(micros / unit).map_err(|_| BucketError::WidthTooWide)?;
    let origin = match origin {
        Some(i64::MIN | i64::MAX) => return Err(BucketError::OriginInfinite),
        other => other.unwrap_or(MONDAY_DAYS * day),
    };
    Ok(Step::Fixed {
        width,
        phase: origin.rem_euclid(width),
    })
}

/// The month that contains a day, counted from January of year 0 (1 BC).
///
/// Years are counted from March, so the leap day is the last day of a year, and the lengths of
/// months repeat every five months, which have 153 days. Source: E. G. Richards, "Calendars", in
/// the Explanatory Supplement to the Astronomical Almanac, 2013.
fn month_of_day(day: i64) -> i64 {
    let day = day + EPOCH_DAYS;
    let (era, of_era) = (day.div_euclid(ERA_DAYS), day.rem_euclid(ERA_DAYS));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // March is month 2 of its year; January and February are months 12 and 13.
    (era * 400 + year) * 12 + (5 * of_year + 2) / 153 + 2
}

/// The first day of a month, which is counted from January of year 0.
fn day_of_month(month: i64) -> i64 {
    let from_march = month - 2;
    let (year, of_year) = (from_march.div_euclid(12), from_march.rem_euclid(12));
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + (153 * of_year + 2) / 5 - EPOCH_DAYS
}

#[cfg(test)]
#[path = "bucket_tests.rs"]
mod tests;
