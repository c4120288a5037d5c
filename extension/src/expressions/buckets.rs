//! Time buckets as the functions of PostgreSQL and of this extension give them.
//!
//! The function itself is called for the first time met of each bucket, so its answer is exact by definition. What is
//! ours is only how far that answer holds: a range of times for which it is known to be the same. Where nothing is
//! known, the range is the one time, and the function is called for every row that differs from the one before.
//!
//! | function | range |
//! |---|---|
//! | of integers, `date_bin` | one width |
//! | of a clock: a zone's, or the one that times without a zone show | [`Clock::range`] |
//!
//! On a clock a bucket is all times of one label (the truncated local time) between two changes of the zone's offset: the
//! functions look at nothing else. So times before and after a change have ranges of their own, of which some have the same
//! bucket: days of 23 and of 25 hours, and midnights shown twice.

use lanes_columnar::aggregate::key::{Bucket, Buckets};
use pgrx::pg_sys;

use super::call_memory::CallMemory;
use crate::functions::bucket::{Bucket as BucketOf, Parts};
use crate::pg::names::function_name;

/// How far a bucket reaches from its beginning.
#[derive(Debug)]
pub enum Reach {
    /// So many units.
    Width(i64),
    /// So many units, if its first is one of them: `date_bin` took those before its origin for the next ones until 2024.
    Stride(i64),
    /// As a clock shows.
    Clock(Clock),
    /// Unknown.
    Point,
}

/// Buckets on a clock.
#[derive(Debug)]
pub struct Clock {
    /// Of local times.
    labels: BucketOf,
    /// Of the clock; null is that of the times themselves.
    zone: *const pg_sys::pg_tz,
    /// What is known of the zone.
    stretch: Option<Stretch>,
}

/// Times between two changes of a zone's offset, both in microseconds.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: i64,
    last: i64,
    offset: i64,
}

impl Clock {
    /// Labels on the clock of times without a zone.
    pub fn plain(labels: BucketOf) -> Clock {
        Clock::in_zone(labels, std::ptr::null())
    }

    /// Labels on the clock of a zone, which lives as long as the process.
    pub fn in_zone(labels: BucketOf, zone: *const pg_sys::pg_tz) -> Clock {
        Clock {
            labels,
            zone,
            stretch: None,
        }
    }

    /// Times around this one, first and last, that have one label and one offset.
    fn range(&mut self, time: i64) -> Option<(i64, i64)> {
        let stretch = self.stretch(time)?;
        let start = self.labels.floor(time.checked_add(stretch.offset)?)?;
        let next = self.labels.next(start)?;
        let first = start.checked_sub(stretch.offset)?;
        let last = next.checked_sub(stretch.offset)? - 1;
        let mut from = stretch.first;
        if first < from
            && let Some(earlier) = self.ask(first)
            && earlier.last >= time
        {
            // No change since the bucket's beginning.
            from = first;
            self.stretch = Some(earlier);
        }
        Some((first.max(from), last.min(stretch.last)))
    }

    fn stretch(&mut self, time: i64) -> Option<Stretch> {
        let known = self
            .stretch
            .filter(|stretch| (stretch.first..=stretch.last).contains(&time));
        if known.is_none() {
            self.stretch = self.ask(time);
        }
        self.stretch
    }

    /// From this time on.
    fn ask(&self, time: i64) -> Option<Stretch> {
        let mut stretch = Stretch {
            first: time,
            last: i64::MAX,
            offset: 0,
        };
        if self.zone.is_null() {
            stretch.first = i64::MIN;
            return Some(stretch);
        }
        let second = time.div_euclid(SECOND) + EPOCH_SECONDS;
        let (mut before, mut after, mut boundary) = (0, 0, 0);
        let (mut summer, mut summer_after) = (0, 0);
        // SAFETY: a zone, and places for what is told of it.
        let found = unsafe {
            pg_sys::pg_next_dst_boundary(
                &raw const second,
                &raw mut before,
                &raw mut summer,
                &raw mut boundary,
                &raw mut after,
                &raw mut summer_after,
                self.zone,
            )
        };
        stretch.offset = before * SECOND;
        match found {
            0 => Some(stretch),
            1 => {
                stretch.last = (boundary - EPOCH_SECONDS).checked_mul(SECOND)? - 1;
                Some(stretch)
            }
            _ => None,
        }
    }
}

const SECOND: i64 = 1_000_000;
/// From Unix's epoch to that of PostgreSQL.
const EPOCH_SECONDS: i64 = 946_684_800;

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
    memory: CallMemory,
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
        memory: CallMemory,
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
            memory,
        }
    }

    fn call(&mut self, time: i64) -> i64 {
        self.arguments[self.time] = pg_sys::Datum::from(time as usize);
        let (function, collation) = (&raw mut self.function, self.collation);
        let arguments = &self.arguments;
        // SAFETY: `new`'s promise.
        let result = unsafe {
            self.memory.call(|| match arguments[..] {
                [a, b] => pg_sys::FunctionCall2Coll(function, collation, a, b),
                [a, b, c] => pg_sys::FunctionCall3Coll(function, collation, a, b, c),
                _ => pgrx::error!(
                    "{} takes two or three arguments",
                    function_name((*function).fn_oid.to_u32())
                ),
            })
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

/// How far the buckets of `date_trunc(unit, …)` reach, on the clock of a zone if there is one.
pub fn reach_of_unit(unit: &[u8], zone: *const pg_sys::pg_tz) -> Reach {
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
        _ => return Reach::Point,
    };
    let width = Parts {
        months,
        days,
        micros,
    };
    match BucketOf::timestamps(width, None) {
        Ok(labels) => Reach::Clock(Clock::in_zone(labels, zone)),
        Err(_) => Reach::Point,
    }
}

/// How far the buckets of `date_bin` reach: it takes a day for 24 hours, and no months.
pub fn reach_of_stride(width: Parts) -> Reach {
    let days = i64::from(width.days).checked_mul(86_400 * SECOND);
    match days.and_then(|days| days.checked_add(width.micros)) {
        Some(width_all) if width_all > 0 && width.months == 0 => Reach::Stride(width_all),
        _ => Reach::Point,
    }
}

/// The zone of a name, if it can mean nothing else: names without a slash may be abbreviations.
///
/// # Safety
/// Runs inside a transaction.
pub unsafe fn zone_of(name: &[u8]) -> *const pg_sys::pg_tz {
    if !name.contains(&b'/') && name != b"UTC" {
        return std::ptr::null();
    }
    let Ok(name) = std::ffi::CString::new(name) else {
        return std::ptr::null();
    };
    if name.as_bytes().len() >= pg_sys::TZ_STRLEN_MAX as usize {
        return std::ptr::null();
    }
    // SAFETY: the caller's promise; gives null for an unknown zone.
    unsafe { pg_sys::pg_tzset(name.as_ptr()) }
}
