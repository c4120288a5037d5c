//! The bucket of a time, and the bucket after another, by the arithmetic of `lanes.time_bucket`.

use pgrx::pg_sys::{self, Datum, Oid};

use crate::arithmetic::bucket::{Bucket, Parts};
use crate::arithmetic::bucket_zone::floor_in_zone;
use crate::functions::time_bucket::legal;
use crate::pg::time_zone;

/// Microseconds by which clocks may be changed, at the least, the usual and the most.
const SHIFTS: [i64; 5] = [
    0,
    1_800_000_000,
    3_600_000_000,
    10_800_000_000,
    93_600_000_000,
];

/// The buckets of a query.
#[derive(Clone, Copy)]
pub struct Steps {
    bucket: Bucket,
    /// The type of the times.
    type_of: Oid,
    /// The name of the time zone, a text that lives as long, if buckets are those of its clock.
    zone: Option<Datum>,
}

/// A width.
pub enum Width {
    Interval(pg_sys::Interval),
    Integer(i64),
}

impl Steps {
    /// The buckets of times of a type. It is an ERROR if the width is illegal.
    pub fn new(width: &Width, type_of: Oid, zone: Option<Datum>) -> Steps {
        let bucket = match (width, type_of) {
            (Width::Interval(width), pg_sys::DATEOID) => Bucket::dates(parts(width), None),
            (Width::Interval(width), _) => Bucket::timestamps(parts(width), None),
            (Width::Integer(width), pg_sys::INT4OID) => Bucket::integers(*width as i32),
            (Width::Integer(width), _) => Bucket::bigints(*width),
        };
        Steps {
            bucket: legal(bucket),
            type_of,
            zone,
        }
    }

    /// The number that a time is.
    pub fn number(&self, time: Datum) -> i64 {
        match self.type_of {
            pg_sys::DATEOID | pg_sys::INT4OID => i64::from(time.value() as i32),
            _ => time.value() as i64,
        }
    }

    /// The time that a number is.
    pub fn time(&self, number: i64) -> Datum {
        match self.type_of {
            pg_sys::DATEOID | pg_sys::INT4OID => Datum::from(number as i32),
            _ => Datum::from(number),
        }
    }

    /// Whether a time is infinite.
    pub fn is_infinite(&self, number: i64) -> bool {
        match self.type_of {
            pg_sys::DATEOID => matches!(number as i32, i32::MIN | i32::MAX),
            pg_sys::INT4OID | pg_sys::INT8OID => false,
            _ => matches!(number, i64::MIN | i64::MAX),
        }
    }

    /// The start of the bucket that contains a finite time; `None` if it is out of range.
    pub fn floor(&self, number: i64) -> Option<i64> {
        match self.zone {
            None => self.bucket.floor(number),
            Some(zone) => floor_in_zone(&self.bucket, number, |instant| {
                time_zone::local(zone, instant)
            }),
        }
    }

    /// The start of the bucket after the one that starts at `start`; `None` if it is out of range.
    pub fn next(&self, start: i64) -> Option<i64> {
        let next = match self.zone {
            None => self.bucket.next(start),
            Some(zone) => self.next_in_zone(start, zone),
        };
        next.filter(|next| {
            !matches!(self.type_of, pg_sys::DATEOID | pg_sys::INT4OID)
                || i32::try_from(*next).is_ok()
        })
    }

    /// On the clock, the next bucket starts a width later. Where clocks are put back in between, that is still in the
    /// same bucket, so that later times are tried too.
    fn next_in_zone(&self, start: i64, zone: Datum) -> Option<i64> {
        let here = self.bucket.floor(time_zone::local(zone, start))?;
        let width = self.bucket.next(here)? - here;
        let mut later = SHIFTS.into_iter().filter_map(|shift| {
            let time = start.checked_add(width)?.checked_add(shift)?;
            self.floor(time).filter(|next| *next > start)
        });
        later.next()
    }
}

fn parts(interval: &pg_sys::Interval) -> Parts {
    Parts {
        months: interval.month,
        days: interval.day,
        micros: interval.time,
    }
}
