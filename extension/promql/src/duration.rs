//! Durations as Prometheus writes them: `1h30m`, `5m`, `100ms`.

use crate::quote::quote;

/// Nanoseconds of a millisecond.
pub const NANOS_PER_MILLI: i64 = 1_000_000;

/// Units from the largest to the smallest, with their nanoseconds.
const UNITS: [(&str, u64); 7] = [
    ("y", 365 * 86_400_000_000_000),
    ("w", 7 * 86_400_000_000_000),
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
];

/// Reads a duration and returns its nanoseconds.
///
/// # Errors
/// Prometheus's words for why the text is no duration.
pub fn parse(text: &str) -> Result<i64, String> {
    if text == "0" {
        return Ok(0);
    }
    if text.is_empty() {
        return Err("empty duration string".to_owned());
    }
    let invalid = || format!("not a valid duration string: {}", quote(text));
    let mut rest = text;
    let mut nanos: u64 = 0;
    let mut units_left = 0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let count: u64 = rest[..digits].parse().map_err(|_| invalid())?;
        rest = &rest[digits..];
        let unit_len = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let unit = &rest[..unit_len];
        rest = &rest[unit_len..];
        if unit.is_empty() {
            return Err(invalid());
        }
        let place = UNITS.iter().position(|(name, _)| *name == unit);
        let place = place
            .ok_or_else(|| format!("unknown unit {} in duration {}", quote(unit), quote(text)))?;
        if place < units_left {
            return Err(invalid());
        }
        units_left = place + 1;
        nanos = count
            .checked_mul(UNITS[place].1)
            .and_then(|part| nanos.checked_add(part))
            .filter(|nanos| *nanos <= i64::MAX as u64)
            .ok_or("duration out of range")?;
    }
    Ok(nanos as i64)
}

/// Prints nanoseconds as a duration, to the millisecond.
pub fn format(nanos: i64) -> String {
    let millis = nanos / NANOS_PER_MILLI;
    if millis == 0 {
        return "0s".to_owned();
    }
    let mut left = millis.unsigned_abs();
    let mut text = String::from(if millis < 0 { "-" } else { "" });
    for (name, unit_nanos) in UNITS {
        let unit = unit_nanos / NANOS_PER_MILLI as u64;
        // Years and weeks are used only where nothing remains: 90d is easier to read than 12w6d.
        if matches!(name, "y" | "w") && !left.is_multiple_of(unit) {
            continue;
        }
        if left / unit > 0 {
            text.push_str(&format!("{}{name}", left / unit));
            left %= unit;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{format, parse};

    #[test]
    fn durations_are_read_and_printed() {
        for text in ["5m", "1h30m", "1d", "2w", "1y", "1m500ms", "0s"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
        assert_eq!(format(parse("60s").unwrap()), "1m");
        assert_eq!(parse("2w1d"), Ok(1_296_000_000_000_000));
        for text in ["", "5", "1s1m", "5x", "300000y"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
