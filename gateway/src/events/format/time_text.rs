//! Conversion of timestamps and dates from text to what a batch contains.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime};
use lanes_wire::limits::{
    DATE_INFINITY, DATE_NEGATIVE_INFINITY, TIMESTAMP_INFINITY, TIMESTAMP_NEGATIVE_INFINITY,
};

const MICROSECONDS_A_SECOND: i64 = 1_000_000;
const SECONDS_A_DAY: i64 = 86_400;

/// Returns the microseconds since the Unix epoch of an RFC 3339 timestamp. Also accepted are a
/// space instead of the `T`, a missing offset (UTC), missing seconds, a missing time, `infinity`
/// and `-infinity`. Digits past the microsecond are dropped. Returns `None` for anything else.
pub fn timestamp(text: &str) -> Option<i64> {
    fixed_layout(text.as_bytes()).or_else(|| other_layout(text))
}

/// Returns the days since the Unix epoch of `YYYY-MM-DD`, `infinity` or `-infinity`; `None` for
/// anything else.
pub fn date(text: &str) -> Option<i32> {
    if let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *text.as_bytes() {
        let days = days([y1, y2, y3, y4], [m1, m2], [d1, d2])?;
        return i32::try_from(days).ok();
    }
    match infinity(text)? {
        true => Some(DATE_INFINITY),
        false => Some(DATE_NEGATIVE_INFINITY),
    }
}

/// Returns whether the text is `infinity` (true) or `-infinity` (false); `None` for anything else.
fn infinity(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("infinity") {
        Some(true)
    } else if text.eq_ignore_ascii_case("-infinity") {
        Some(false)
    } else {
        None
    }
}

/// Parses the layout that nearly all senders use, `YYYY-MM-DDTHH:MM:SS[.fraction][Z]`, in one pass
/// and without a table of formats.
fn fixed_layout(text: &[u8]) -> Option<i64> {
    let [
        y1,
        y2,
        y3,
        y4,
        b'-',
        m1,
        m2,
        b'-',
        d1,
        d2,
        b'T' | b't' | b' ',
        h1,
        h2,
        b':',
        i1,
        i2,
        b':',
        s1,
        s2,
        rest @ ..,
    ] = text
    else {
        return None;
    };
    let days = days([*y1, *y2, *y3, *y4], [*m1, *m2], [*d1, *d2])?;
    let (hour, minute, second) = (
        digits([*h1, *h2])?,
        digits([*i1, *i2])?,
        digits([*s1, *s2])?,
    );
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => fraction(rest)?,
        _ => (0, rest),
    };
    if !matches!(rest, [] | [b'Z' | b'z']) {
        return None;
    }
    let seconds = days * SECONDS_A_DAY + hour * 3600 + minute * 60 + second;
    Some(seconds * MICROSECONDS_A_SECOND + fraction)
}

/// Returns the microseconds of up to nine digits of a fraction, and the rest of the text.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let count = text
        .iter()
        .take(10)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if !(1..=9).contains(&count) {
        return None;
    }
    let mut microseconds = 0;
    for place in text[..count].iter().chain(b"000000").take(6) {
        microseconds = microseconds * 10 + i64::from(place - b'0');
    }
    Some((microseconds, &text[count..]))
}

fn digits<const N: usize>(text: [u8; N]) -> Option<i64> {
    let mut value = 0;
    let mut is_number = true;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        is_number &= digit <= 9;
        value = value * 10 + i64::from(digit);
    }
    is_number.then_some(value)
}

/// Returns the days since the Unix epoch of an existing day in the years 1 to 9999. PostgreSQL has
/// no year 0.
fn days(year: [u8; 4], month: [u8; 2], day: [u8; 2]) -> Option<i64> {
    let (year, month, day) = (digits(year)?, digits(month)?, digits(day)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if year == 0 || day == 0 || day > last {
        return None;
    }
    // The calendar's years begin in March, so that the leap day is the last day of its year (Howard
    // Hinnant, "chrono-Compatible Low-Level Date Algorithms").
    let year = year - i64::from(month <= 2);
    let month = (month + 9) % 12;
    let leap_days = year / 4 - year / 100 + year / 400;
    let before_month = (153 * month + 2) / 5;
    Some(year * 365 + leap_days + before_month + day - 1 - DAYS_BEFORE_EPOCH)
}

/// The days from 0000-03-01 to 1970-01-01.
const DAYS_BEFORE_EPOCH: i64 = 719_468;

/// Parses offsets, leap seconds, and incomplete times.
fn other_layout(text: &str) -> Option<i64> {
    if let Some(is_positive) = infinity(text) {
        return Some(if is_positive {
            TIMESTAMP_INFINITY
        } else {
            TIMESTAMP_NEGATIVE_INFINITY
        });
    }
    // The longest valid text is far shorter. This bounds the copy.
    if text.len() > 64 || !text.is_ascii() {
        return None;
    }
    let mut spaced = text.to_owned();
    if matches!(spaced.as_bytes().get(10), Some(b'T' | b't')) {
        spaced.replace_range(10..11, " ");
    }
    if spaced.ends_with(['Z', 'z']) {
        spaced.truncate(spaced.len() - 1);
        spaced.push_str("+00");
    }
    let with_offset = ["%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%d %H:%M%#z"]
        .iter()
        .find_map(|format| DateTime::parse_from_str(&spaced, format).ok())
        .map(|time| (time.naive_local().year(), time.naive_utc()));
    let (year, time) = with_offset.or_else(|| {
        let time = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"]
            .iter()
            .find_map(|format| NaiveDateTime::parse_from_str(&spaced, format).ok())
            .or_else(|| {
                let day = NaiveDate::parse_from_str(&spaced, "%Y-%m-%d").ok()?;
                day.and_hms_opt(0, 0, 0)
            })?;
        Some((time.year(), time))
    })?;
    if year < 1 {
        return None;
    }
    // Like PostgreSQL, count a leap second as the first second of the next minute: its nanoseconds
    // exceed a second.
    let time = time.and_utc();
    Some(time.timestamp() * MICROSECONDS_A_SECOND + i64::from(time.timestamp_subsec_nanos() / 1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_instant_in_many_layouts() {
        let expected = Some(1_767_225_600_123_456);
        for text in [
            "2026-01-01T00:00:00.123456Z",
            "2026-01-01t00:00:00.123456z",
            "2026-01-01 00:00:00.123456",
            "2026-01-01T00:00:00.123456999",
            "2026-01-01T00:00:00.1234569999Z",
            "2026-01-01T05:30:00.123456+05:30",
            "2026-01-01 05:30:00.123456+0530",
            "2025-12-31T16:00:00.123456-08",
        ] {
            assert_eq!(timestamp(text), expected, "{text}");
        }
        for text in [
            "2026-01-01",
            "2026-01-01T00:00Z",
            "2026-01-01 00:00",
            "2026-01-01 00:00:00.0",
            "2025-12-31T23:59:60Z",
        ] {
            assert_eq!(timestamp(text), Some(1_767_225_600_000_000), "{text}");
        }
    }

    #[test]
    fn infinities_are_the_extreme_values() {
        assert_eq!(timestamp("infinity"), Some(i64::MAX));
        assert_eq!(timestamp("-Infinity"), Some(i64::MIN));
        assert_eq!(date("infinity"), Some(i32::MAX));
        assert_eq!(date("-infinity"), Some(i32::MIN));
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "now",
            "2026-02-29T00:00:00Z",
            "1900-02-29 00:00:00",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:61Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00ZZ",
            "2026-01-01T00:00:00 UTC",
            "2026-01-01X00:00:00Z",
            "2026-01-0:T00:00:00Z",
            "0000-01-01T00:00:00Z",
            "0000-01-01T00:00:00+01",
            "2026-01-01T00:00:00\u{e9}",
            "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}T",
        ] {
            assert_eq!(timestamp(text), None, "{text}");
        }
        for text in ["", "2026-02-29", "2026-1-1", "2026-01-01 ", "0000-12-31"] {
            assert_eq!(date(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn days_are_those_of_the_calendar(days in -719_162_i32..2_932_897) {
            let day = DateTime::from_timestamp(i64::from(days) * SECONDS_A_DAY, 0).unwrap().date_naive();
            prop_assert_eq!(date(&day.to_string()), Some(days));
        }

        #[test]
        fn the_fixed_layout_agrees_with_the_library(
            seconds in -62_135_596_800_i64..253_402_300_800,
            nanoseconds in 0_u32..1_000_000_000,
            places in 0_usize..10,
        ) {
            let time = DateTime::from_timestamp(seconds, nanoseconds).unwrap();
            let mut text = time.format("%Y-%m-%dT%H:%M:%S%.9f").to_string();
            text.truncate(if places == 0 { 19 } else { 20 + places });
            prop_assert!(fixed_layout(text.as_bytes()).is_some());
            prop_assert_eq!(fixed_layout(text.as_bytes()), other_layout(&text));
        }
    }
}
