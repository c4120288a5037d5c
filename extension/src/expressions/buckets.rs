//! Time buckets as the functions of PostgreSQL and of this extension compute them.
//!
//! The function itself is called for the first time of each bucket, so its result is exact by definition. This module
//! only knows for which range of times the result holds. Where nothing is known, the range is the one time, and the
//! function is called for each row that differs from the row before.
//!
//! | function | range |
//! |---|---|
//! | of integers, `date_bin` | one width |
//! | of a clock: a zone's, or the clock of times without a zone | [`Clock::range`] |
//!
//! On a clock, a bucket contains all times with one label (the truncated local time) between two
//! changes of the zone's offset, because the functions depend on nothing else. Times before and
//! after a change have ranges of their own, which may have the same bucket. This covers days of 23
//! and of 25 hours and midnights that a clock shows twice.

use lanes_columnar::aggregate::key::{Bucket, Buckets};
use pgrx::pg_sys::Datum;

use crate::arithmetic::bucket::{Bucket as BucketOf, Parts};
use crate::pg::exec::function_call::FunctionCall;
use crate::pg::time_zone::TimeZone;
use crate::pg::tree::Expr;

/// How far a bucket reaches from its start.
#[derive(Debug)]
pub enum Reach {
    /// This number of units.
    Width(i64),
    /// This number of units, if the first of them is in the bucket. Until 2024, `date_bin` put times before its origin
    /// into the next bucket.
    Stride(i64),
    /// As a clock shows.
    Clock(Clock),
    /// Unknown.
    Point,
}

/// Buckets on a clock.
#[derive(Debug)]
pub struct Clock {
    /// Buckets of local times.
    labels: BucketOf,
    /// The clock's zone; `None` is the clock of times without a zone.
    zone: Option<TimeZone>,
    /// The stretch of the last time.
    stretch: Option<Stretch>,
}

/// Times between two changes of a zone's offset, and the offset, all in microseconds.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: i64,
    last: i64,
    offset: i64,
}

impl Clock {
    /// Buckets on the clock of a zone; without one, on the clock of times without a zone.
    pub fn new(labels: BucketOf, zone: Option<TimeZone>) -> Clock {
        Clock {
            labels,
            zone,
            stretch: None,
        }
    }

    /// The first and the last time around a time that have its label and its offset.
    pub fn range(&mut self, time: i64) -> Option<(i64, i64)> {
        let stretch = self.stretch(time)?;
        let start = self.labels.floor(time.checked_add(stretch.offset)?)?;
        let next = self.labels.next(start)?;
        let first = start.checked_sub(stretch.offset)?;
        let last = next.checked_sub(stretch.offset)? - 1;
        let mut from = stretch.first;
        if first < from
            && let Some(earlier) = self.stretch_from(first)
            && earlier.last >= time
        {
            // The offset has not changed since the bucket's start.
            from = first;
            self.stretch = Some(earlier);
        }
        Some((first.max(from), last.min(stretch.last)))
    }

    /// A stretch that contains a time.
    fn stretch(&mut self, time: i64) -> Option<Stretch> {
        let known = self
            .stretch
            .filter(|stretch| (stretch.first..=stretch.last).contains(&time));
        if known.is_none() {
            self.stretch = self.stretch_from(time);
        }
        self.stretch
    }

    /// The part of a stretch that begins with a time.
    fn stretch_from(&self, time: i64) -> Option<Stretch> {
        let Some(zone) = self.zone else {
            return Some(Stretch {
                first: i64::MIN,
                last: i64::MAX,
                offset: 0,
            });
        };
        let offset = zone.offset_at(time.div_euclid(SECOND) + EPOCH_SECONDS)?;
        let last = match offset.changes_at {
            Some(second) => (second - EPOCH_SECONDS).checked_mul(SECOND)? - 1,
            None => i64::MAX,
        };
        Some(Stretch {
            first: time,
            last,
            offset: offset.seconds * SECOND,
        })
    }
}

const SECOND: i64 = 1_000_000;
/// Seconds from Unix's epoch to PostgreSQL's.
const EPOCH_SECONDS: i64 = 946_684_800;

/// Buckets that a function of one time computes.
pub struct FunctionBuckets {
    call: FunctionCall,
    /// Whether times are dates, which have 32 bits.
    is_narrow: bool,
    reach: Reach,
}

impl FunctionBuckets {
    /// Buckets of a call whose changing argument is the time.
    pub fn new(call: FunctionCall, is_narrow: bool, reach: Reach) -> FunctionBuckets {
        FunctionBuckets {
            call,
            is_narrow,
            reach,
        }
    }

    fn call(&mut self, time: i64) -> i64 {
        let result = self.call.call(Datum::from(time as usize));
        match self.is_narrow {
            true => i64::from(result.value() as i32),
            false => result.value() as i64,
        }
    }
}

impl Buckets for FunctionBuckets {
    fn bucket(&mut self, time: i64) -> Bucket {
        let value = self.call(time);
        let point = Bucket {
            value,
            first: time,
            last: time,
        };
        let limits = match self.is_narrow {
            true => (i64::from(i32::MIN), i64::from(i32::MAX)),
            false => (i64::MIN, i64::MAX),
        };
        // Infinities are buckets of their own.
        if time == limits.0 || time == limits.1 {
            return point;
        }
        let range = match &mut self.reach {
            Reach::Point => return point,
            Reach::Width(width) | Reach::Stride(width) => {
                value.checked_add(*width).map(|next| (value, next - 1))
            }
            Reach::Clock(clock) => clock.range(time),
        };
        match range {
            Some((first, last))
                if first <= time
                    && time <= last
                    && limits.0 < first
                    && last < limits.1
                    && (!matches!(self.reach, Reach::Stride(_)) || self.call(first) == value) =>
            {
                Bucket { value, first, last }
            }
            _ => point,
        }
    }
}

/// A key that is a time bucket.
pub struct BucketKey<'p> {
    /// The time.
    pub time: Expr<'p>,
    /// The width in microseconds, or in days if the time is a date.
    pub width: f64,
}

/// How far the buckets of `date_trunc(unit, …)` reach on the clock of a zone; without one, on the
/// clock of times without a zone.
pub fn reach_of_unit(unit: &[u8], zone: Option<TimeZone>) -> Reach {
    let Some(width) = unit_parts(unit) else {
        return Reach::Point;
    };
    match BucketOf::timestamps(width, None) {
        Ok(labels) => Reach::Clock(Clock::new(labels, zone)),
        Err(_) => Reach::Point,
    }
}

/// The width of a unit that `date_trunc` takes; `None` for units that have no width here.
pub fn unit_parts(unit: &[u8]) -> Option<Parts> {
    let unit = String::from_utf8_lossy(unit).to_lowercase();
    let (months, days, micros) = match unit.as_str() {
        "microseconds" => (0, 0, 1),
        "milliseconds" => (0, 0, 1_000),
        "second" => (0, 0, SECOND),
        "minute" => (0, 0, 60 * SECOND),
        "hour" => (0, 0, 3_600 * SECOND),
        "day" => (0, 1, 0),
        "week" => (0, 7, 0),
        "month" => (1, 0, 0),
        "quarter" => (3, 0, 0),
        "year" => (12, 0, 0),
        _ => return None,
    };
    Some(Parts {
        months,
        days,
        micros,
    })
}

/// How far the buckets of `date_bin` reach: it counts a day as 24 hours, and rejects months.
pub fn reach_of_stride(width: Parts) -> Reach {
    let days = i64::from(width.days).checked_mul(86_400 * SECOND);
    match days.and_then(|days| days.checked_add(width.micros)) {
        Some(width_all) if width_all > 0 && width.months == 0 => Reach::Stride(width_all),
        _ => Reach::Point,
    }
}
