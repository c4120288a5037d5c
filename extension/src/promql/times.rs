//! Times and lengths of time, as PromQL counts them: in milliseconds, since 1970.

use pgrx::prelude::*;

use crate::error;

/// Milliseconds from 1970 to 2000, where PostgreSQL's times begin.
const EPOCH_MILLIS: i64 = 946_684_800_000;

/// The time that PostgreSQL stores as a number of microseconds, rounded down.
pub fn millis_of(stored: i64) -> i64 {
    stored.div_euclid(1000) + EPOCH_MILLIS
}

/// Appends times that PostgreSQL stores, each rounded down to milliseconds.
pub fn append_millis(to: &mut Vec<i64>, stored: &[i64]) {
    /// 125 times this number is 1 in arithmetic modulo 2^64.
    const INVERSE_OF_125: i64 = 0x1cac_0831_26e9_78d5;
    /// A quotient of a time is below this size; what comes out for a number that is no multiple of 125 is not.
    const QUOTIENT_MAX: i64 = 1 << 55;
    // Times of Prometheus are whole milliseconds. A multiple of 1000 is divided by a shift and a multiplication, which
    // takes half as long as a division that rounds.
    let first = to.len();
    let mut inexact = 0;
    to.extend(stored.iter().map(|stored| {
        let quotient = (stored >> 3).wrapping_mul(INVERSE_OF_125);
        inexact |= (stored & 7) | i64::from(quotient.unsigned_abs() >= QUOTIENT_MAX as u64);
        quotient.wrapping_add(EPOCH_MILLIS)
    }));
    if inexact != 0 {
        to.truncate(first);
        to.extend(stored.iter().map(|stored| millis_of(*stored)));
    }
}

/// The number that PostgreSQL stores for a time in milliseconds. Times before or after all of PostgreSQL's become
/// infinities.
pub fn stored_of(millis: i64) -> i64 {
    millis.saturating_sub(EPOCH_MILLIS).saturating_mul(1000)
}

/// The value of an argument in milliseconds. It is an error if the time is infinite.
pub fn millis_of_argument(time: TimestampWithTimeZone, argument: &str) -> i64 {
    let stored: pg_sys::TimestampTz = time.into();
    if time.is_infinity() || time.is_neg_infinity() {
        error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("{argument} must be finite"),
            "Use a time such as now() - interval '1 hour'.",
        );
    }
    millis_of(stored)
}

/// The time of a result's row.
pub fn timestamp_of(millis: i64) -> TimestampWithTimeZone {
    TimestampWithTimeZone::try_from(stored_of(millis)).unwrap_or_else(|_| {
        error::raise(
            PgSqlErrorCode::ERRCODE_DATETIME_FIELD_OVERFLOW,
            "timestamp out of range",
            "PostgreSQL has times from 4713 BC to 294276 AD.",
        )
    })
}

/// The length of an interval in milliseconds. A day has 24 hours. It is an error if the interval has months or is shorter
/// than a millisecond.
pub fn length_of(interval: Interval, argument: &str) -> i64 {
    let refuse = |fault: &str| -> ! {
        error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("{argument} {fault}"),
            "Use an interval of days, hours, minutes, seconds or milliseconds, such as '1 minute'.",
        )
    };
    if interval.months() != 0 {
        refuse("must not have months or years, whose length varies");
    }
    let days = i64::from(interval.days()).saturating_mul(86_400_000);
    let length = days.saturating_add(interval.micros().div_euclid(1000));
    if length < 1 {
        refuse("must be at least a millisecond");
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_down_whether_they_are_whole_or_not() {
        let whole: Vec<i64> = (-2000..2000).map(|millis| millis * 777_000).collect();
        let far = [i64::MIN, i64::MIN + 808, i64::MAX, i64::MAX - 807, 0];
        let odd: Vec<i64> = (-2000..2000).map(|step| step * 777_001 + 13).collect();
        let eighths: Vec<i64> = (-2000..2000).map(|step| step * 8).collect();
        for stored in [&whole[..], &far, &odd, &eighths, &far[..1]] {
            let mut found = vec![7];
            append_millis(&mut found, stored);
            let expected = stored.iter().map(|stored| millis_of(*stored));
            assert_eq!(found[1..], expected.collect::<Vec<i64>>());
            assert_eq!(found[0], 7);
        }
    }
}
