//! Time buckets as the functions of PostgreSQL and of this extension give them.
//!
//! The function itself is called for the first time met of each bucket, so its answer is exact by definition. What is
//! ours is only how far that answer holds: a range of times for which it is known to be the same. Where nothing is
//! known (truncation to less than a day in a time zone whose offset changes), the range is the one time, and the
//! function is called for every row that differs from the one before.
//!
//! | function | range |
//! |---|---|
//! | integers | one width |
//! | a width without months, no time zone or one of fixed offset | one width |
//! | days and longer units | up to the beginning of the next, if the function says so of its last moment |

use lanes_columnar::aggregate::key::{Bucket, Buckets};
use pgrx::pg_sys;

use super::translate::function_name;

/// How far a bucket reaches from its beginning.
#[derive(Clone, Copy, Debug)]
pub enum Reach {
    /// So many units.
    Width(i64),
    /// An interval; the flag says whether times have a time zone.
    Interval(pg_sys::Interval, bool),
    /// Unknown.
    Point,
}

/// A function of one time and scalars.
pub struct FunctionBuckets {
    function: pg_sys::FmgrInfo,
    collation: pg_sys::Oid,
    arguments: Vec<pg_sys::Datum>,
    /// Which of the arguments is the time.
    time: usize,
    /// Whether times are dates: 32 bits.
    narrow: bool,
    reach: Reach,
}

impl FunctionBuckets {
    /// # Safety
    /// The function takes these arguments, none NULL, and gives what it takes at `time`; they and the current memory
    /// context outlive this value.
    pub unsafe fn new(
        function: pg_sys::Oid,
        collation: pg_sys::Oid,
        arguments: Vec<pg_sys::Datum>,
        time: usize,
        narrow: bool,
        reach: Reach,
    ) -> FunctionBuckets {
        let mut info = pg_sys::FmgrInfo::default();
        // SAFETY: the caller's promise.
        unsafe { pg_sys::fmgr_info(function, &raw mut info) };
        FunctionBuckets {
            function: info,
            collation,
            arguments,
            time,
            narrow,
            reach,
        }
    }

    fn call(&mut self, time: i64) -> i64 {
        self.arguments[self.time] = pg_sys::Datum::from(time as usize);
        let (function, collation) = (&raw mut self.function, self.collation);
        // SAFETY: `new`'s promise.
        let result = unsafe {
            match self.arguments[..] {
                [a, b] => pg_sys::FunctionCall2Coll(function, collation, a, b),
                [a, b, c] => pg_sys::FunctionCall3Coll(function, collation, a, b, c),
                _ => pgrx::error!(
                    "{} takes two or three arguments",
                    function_name((*function).fn_oid.to_u32())
                ),
            }
        };
        if self.narrow {
            i64::from(result.value() as i32)
        } else {
            result.value() as i64
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
        let limits = if self.narrow {
            (i64::from(i32::MIN), i64::from(i32::MAX))
        } else {
            (i64::MIN, i64::MAX)
        };
        // Infinities are buckets of their own.
        if time == limits.0 || time == limits.1 {
            return point;
        }
        let next = match self.reach {
            Reach::Point => return point,
            Reach::Width(width) => value.checked_add(width),
            Reach::Interval(interval, with_zone) => {
                let mut interval = interval;
                let beginning = pg_sys::Datum::from(value as usize);
                let interval = pg_sys::Datum::from(&raw mut interval);
                let add = match with_zone {
                    true => pg_sys::timestamptz_pl_interval,
                    false => pg_sys::timestamp_pl_interval,
                };
                // SAFETY: a timestamp and an interval.
                let next = unsafe {
                    pgrx::direct_function_call_as_datum(add, &[Some(beginning), Some(interval)])
                };
                next.map(|next| next.value() as i64)
                    .filter(|next| self.call(next - 1) == value)
            }
        };
        match next {
            Some(next) if value <= time && time < next && next - 1 < limits.1 => Bucket {
                value,
                first: value,
                last: next - 1,
            },
            _ => point,
        }
    }
}

/// How far the buckets of `date_trunc(unit, …)` reach.
pub fn reach_of_unit(unit: &[u8], with_zone: bool) -> Reach {
    const SECOND: i64 = 1_000_000;
    let unit = String::from_utf8_lossy(unit).to_lowercase();
    let width = match unit.as_str() {
        "microseconds" => 1,
        "milliseconds" => 1_000,
        "second" => SECOND,
        "minute" => 60 * SECOND,
        "hour" => 3_600 * SECOND,
        "day" => 86_400 * SECOND,
        "week" => 7 * 86_400 * SECOND,
        _ => 0,
    };
    if width > 0 && (!with_zone || zone_is_fixed()) {
        return Reach::Width(width);
    }
    let interval = |month, day| {
        let interval = pg_sys::Interval {
            time: 0,
            day,
            month,
        };
        Reach::Interval(interval, with_zone)
    };
    match unit.as_str() {
        "day" => interval(0, 1),
        "week" => interval(0, 7),
        "month" => interval(1, 0),
        "quarter" => interval(3, 0),
        "year" => interval(12, 0),
        _ => Reach::Point,
    }
}

/// How far the buckets of a width reach, of a function that takes no time zone.
pub fn reach_of_width(width: &pg_sys::Interval) -> Reach {
    if width.month != 0 {
        return Reach::Point;
    }
    let days = i64::from(width.day).checked_mul(86_400_000_000);
    match days.and_then(|days| days.checked_add(width.time)) {
        Some(width) if width > 0 => Reach::Width(width),
        _ => Reach::Point,
    }
}

/// Whether the session's time zone has one offset for all times.
fn zone_is_fixed() -> bool {
    let mut offset = 0;
    // SAFETY: the session's time zone is always set.
    unsafe { pg_sys::pg_get_timezone_offset(pg_sys::session_timezone, &raw mut offset) }
}
