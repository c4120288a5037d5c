//! Times, durations and limits, as Prometheus reads them and words their faults.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use lanes_promql::duration;
use lanes_promql::quote::quote;

use super::failure::Failure;
use super::form::Form;

/// Nanoseconds of a second.
const NANOS: f64 = 1e9;

/// The texts that clients send for the first and the last time of Go.
const FIRST_TIME: &str = "-292273086-05-16T16:47:06Z";
const LAST_TIME: &str = "292277025-08-18T07:12:54.999999999Z";

/// The times that PostgreSQL has, in milliseconds since 1970: from 4713 BC to 294276 AD.
const POSTGRES_MILLIS: std::ops::Range<i64> = -210_866_803_200_000..9_224_318_016_000_000;

/// A time in milliseconds since 1970, rounded down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub i64);

impl Time {
    /// The first time of PostgreSQL.
    pub const FIRST: Self = Self(POSTGRES_MILLIS.start);
    /// The last time of PostgreSQL.
    pub const LAST: Self = Self(POSTGRES_MILLIS.end - 1);

    /// Returns the time as a parameter of a statement; `None` if PostgreSQL has no such time.
    pub fn system_time(self) -> Option<SystemTime> {
        if !POSTGRES_MILLIS.contains(&self.0) {
            return None;
        }
        let distance = Duration::from_millis(self.0.unsigned_abs());
        match self.0 < 0 {
            true => UNIX_EPOCH.checked_sub(distance),
            false => UNIX_EPOCH.checked_add(distance),
        }
    }
}

/// Parses a number of seconds since 1970, or a time of RFC 3339.
///
/// # Errors
/// Returns Prometheus's words for a text that is no time.
pub fn time(text: &str) -> Result<Time, String> {
    let wrong = || format!("cannot parse {} to a valid timestamp", quote(text));
    if let Ok(seconds) = text.parse::<f64>() {
        // Numbers are rounded to milliseconds. Beyond the least and the greatest they saturate.
        return match seconds.is_finite() {
            true => Ok(Time((seconds * 1000.0).round() as i64)),
            false => Err(wrong()),
        };
    }
    match text {
        FIRST_TIME => return Ok(Time(i64::MIN)),
        LAST_TIME => return Ok(Time(i64::MAX)),
        _ => {}
    }
    let time = DateTime::parse_from_rfc3339(text).map_err(|_| wrong())?;
    Ok(Time(time.timestamp_millis()))
}

/// Parses a duration: seconds, or Prometheus's `1h30m`. Returns nanoseconds.
///
/// # Errors
/// Returns Prometheus's words for a text that is no duration.
pub fn nanos(text: &str) -> Result<i64, String> {
    let wrong = || format!("cannot parse {} to a valid duration", quote(text));
    if let Ok(seconds) = text.parse::<f64>() {
        let nanos = seconds * NANOS;
        return match nanos {
            nanos if nanos.is_nan() => Err(wrong()),
            nanos if nanos.abs() > i64::MAX as f64 => {
                Err(format!("{}. It overflows int64", wrong()))
            }
            nanos => Ok(nanos as i64),
        };
    }
    duration::parse(text).map_err(|_| wrong())
}

/// Reads the parameter `limit`; 0 means no limit.
///
/// # Errors
/// Returns a failure if it is not a number, or negative.
pub fn limit(form: &Form) -> Result<usize, Failure> {
    let text = form.get("limit");
    if text.is_empty() {
        return Ok(0);
    }
    let wrong = |reason: String| Failure::invalid("limit", reason);
    match text.parse::<i64>() {
        Ok(limit) => {
            usize::try_from(limit).map_err(|_| wrong("limit must be non-negative".to_owned()))
        }
        Err(error) => {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            let fault = match error.kind() {
                NegOverflow | PosOverflow => "value out of range",
                _ => "invalid syntax",
            };
            Err(wrong(format!(
                "strconv.Atoi: parsing {}: {fault}",
                quote(text)
            )))
        }
    }
}

/// Reads a parameter that is a time and may be missing.
///
/// # Errors
/// Returns a failure if it is no time.
pub fn optional_time(form: &Form, name: &str) -> Result<Option<Time>, Failure> {
    match form.get(name) {
        "" => Ok(None),
        text => time(text).map(Some).map_err(|reason| {
            Failure::invalid(name, format!("invalid time value for '{name}': {reason}"))
        }),
    }
}

/// Returns the first time from `start` on and the time before which all samples up to `end` are, in
/// milliseconds since 1970: a sample counts in the millisecond in which it is. `None` if `end` is
/// before `start`, or PostgreSQL has no time between them.
pub fn first_and_until(start: i64, end: i64) -> Option<(SystemTime, SystemTime)> {
    let first = start.max(Time::FIRST.0);
    let until = end.min(Time::LAST.0 - 1).saturating_add(1);
    let is_any = first < until;
    is_any.then(|| Time(first).system_time().zip(Time(until).system_time()))?
}

/// Reads the parameter `timeout`, which can shorten the longest time of a query, but not prolong it.
///
/// # Errors
/// Returns a failure if it is no duration, or leaves no time.
pub fn timeout(form: &Form, longest: Duration) -> Result<Duration, Failure> {
    let text = form.get("timeout");
    if text.is_empty() {
        return Ok(longest);
    }
    let nanos = nanos(text).map_err(|reason| Failure::invalid("timeout", reason))?;
    match u64::try_from(nanos) {
        Ok(nanos) if nanos > 0 => Ok(longest.min(Duration::from_nanos(nanos))),
        _ => Err(Failure::timeout()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(pairs: &str) -> Form {
        Form::parse(b"", pairs)
    }

    #[test]
    fn times_are_seconds_or_rfc_3339() {
        for (text, millis) in [
            ("0", 0),
            ("1543578564.7055", 1_543_578_564_706),
            ("-1.5", -1500),
            ("1e3", 1_000_000),
            ("2015-06-03T13:21:58.555Z", 1_433_337_718_555),
            ("2015-06-03T14:21:58.555999999+01:00", 1_433_337_718_555),
            ("1969-12-31T23:59:59.9999Z", -1),
            (FIRST_TIME, i64::MIN),
            (LAST_TIME, i64::MAX),
        ] {
            assert_eq!(time(text), Ok(Time(millis)), "{text}");
        }
        for text in [
            "",
            "abc",
            "30s",
            "2015-06-03",
            "NaN",
            "Inf",
            "2015-06-03T13:21:58",
        ] {
            let expected = format!("cannot parse \"{text}\" to a valid timestamp");
            assert_eq!(time(text), Err(expected));
        }
    }

    #[test]
    fn times_beyond_those_of_postgresql_are_known() {
        for time in [
            i64::MIN,
            i64::MAX,
            -210_866_803_200_001,
            9_224_318_016_000_000,
        ] {
            assert_eq!(Time(time).system_time(), None, "{time}");
        }
        for time in [0, -1, -210_866_803_200_000, 9_224_318_015_999_999] {
            assert!(Time(time).system_time().is_some(), "{time}");
        }
    }

    #[test]
    fn durations_are_seconds_or_have_units() {
        for (text, expected) in [
            ("15", 15_000_000_000),
            ("0.25", 250_000_000),
            ("1h30m", 5_400_000_000_000),
            ("-5", -5_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(nanos(text), Ok(expected), "{text}");
        }
        for text in ["", "foo", "15x", "-5s", "NaN"] {
            let expected = format!("cannot parse \"{text}\" to a valid duration");
            assert_eq!(nanos(text), Err(expected));
        }
        assert_eq!(
            nanos("1e10"),
            Err("cannot parse \"1e10\" to a valid duration. It overflows int64".to_owned())
        );
    }

    #[test]
    fn limits_are_worded_as_in_prometheus() {
        assert_eq!(limit(&form("")), Ok(0));
        assert_eq!(limit(&form("limit=7")), Ok(7));
        for (text, fault) in [
            ("x", "strconv.Atoi: parsing \"x\": invalid syntax"),
            ("-1", "limit must be non-negative"),
            (
                "9223372036854775808",
                "strconv.Atoi: parsing \"9223372036854775808\": value out of range",
            ),
        ] {
            let expected = Failure::invalid("limit", fault.to_owned());
            assert_eq!(limit(&form(&format!("limit={text}"))), Err(expected));
        }
    }

    #[test]
    fn the_millisecond_of_the_end_is_included() {
        let at = |millis| UNIX_EPOCH + Duration::from_millis(millis);
        assert_eq!(first_and_until(10, 20), Some((at(10), at(21))));
        assert_eq!(first_and_until(7, 7), Some((at(7), at(8))));
        let all = (Time::FIRST.system_time(), Time::LAST.system_time());
        assert_eq!(first_and_until(i64::MIN, i64::MAX), all.0.zip(all.1));
        for (start, end) in [(5, 4), (i64::MAX, i64::MAX), (i64::MIN, i64::MIN)] {
            assert_eq!(first_and_until(start, end), None);
        }
    }

    #[test]
    fn timeouts_only_shorten() {
        let longest = Duration::from_secs(10);
        assert_eq!(timeout(&form(""), longest), Ok(longest));
        assert_eq!(timeout(&form("timeout=1m"), longest), Ok(longest));
        let shorter = Duration::from_millis(50);
        assert_eq!(timeout(&form("timeout=0.05"), longest), Ok(shorter));
        assert_eq!(
            timeout(&form("timeout=-1"), longest),
            Err(Failure::timeout())
        );
    }
}
