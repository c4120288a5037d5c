//! Times and lengths of time, as PromQL counts them: in milliseconds, since 1970.

use pgrx::prelude::*;

use crate::error;

/// Milliseconds from 1970 to 2000, where PostgreSQL's times begin.
const EPOCH_MILLIS: i64 = 946_684_800_000;

/// The time that PostgreSQL stores as a number of microseconds, rounded down.
pub fn millis_of(stored: i64) -> i64 {
    stored.div_euclid(1000) + EPOCH_MILLIS
}

/// Turns times that PostgreSQL stores into milliseconds, each rounded down.
pub fn to_millis(times: &mut [i64]) {
    for time in times {
        *time = millis_of(*time);
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

/// The length of an interval in milliseconds. A day has 24 hours. It is an error if the interval has months or is
/// shorter than a millisecond.
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
    fn times_are_rounded_down() {
        let mut times = [0, 999, 1000, -1, -1000, -1001];
        to_millis(&mut times);
        assert_eq!(times.map(|time| time - EPOCH_MILLIS), [0, 0, 1, -1, -1, -2]);
    }
}
