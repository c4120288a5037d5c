//! Parsing of sizes and durations.

use std::time::Duration;

/// Parses a number of bytes: `10`, `10KiB`, `2MiB`, `1GiB`.
///
/// # Errors
/// Returns what is wrong with the text.
pub fn size(text: &str) -> Result<usize, String> {
    let (number, unit) = split(text, "size, such as 64MiB")?;
    let factor: usize = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        other => return Err(format!("unit {other:?} is none of B, KiB, MiB and GiB")),
    };
    usize::try_from(number)
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(|| "too large".to_owned())
}

/// Parses a duration: `5ms`, `2s`, `1m`, `24h`, `7d`, or `0`.
///
/// # Errors
/// Returns what is wrong with the text.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text, "duration, such as 30s")?;
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "" if number == 0 => 1,
        "" => return Err("the unit (ms, s, m, h or d) is missing".to_owned()),
        other => return Err(format!("unit {other:?} is none of ms, s, m, h and d")),
    };
    // The limit keeps deadlines and the server's milliseconds from overflowing.
    const MILLISECONDS_MAX: u64 = 365 * 86_400_000;
    match number.checked_mul(milliseconds) {
        Some(total) if total <= MILLISECONDS_MAX => Ok(Duration::from_millis(total)),
        _ => Err("longer than a year".to_owned()),
    }
}

/// Parses a number of digits only.
///
/// # Errors
/// Returns what is wrong with the text.
pub fn count(text: &str) -> Result<usize, String> {
    const KIND: &str = "integer, such as 4";
    match split(text, KIND)? {
        (number, "") => usize::try_from(number).map_err(|_| "too large".to_owned()),
        _ => Err(format!("{text:?} is not a valid {KIND}")),
    }
}

/// Returns the leading digits and the rest. `kind` describes the expected value if there are no
/// digits, or if they have a fraction.
fn split<'t>(text: &'t str, kind: &str) -> Result<(u64, &'t str), String> {
    let text = text.trim();
    let digits_end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    if digits.is_empty() || unit.starts_with('.') {
        return Err(format!("{text:?} is not a valid {kind}"));
    }
    let number = digits.parse().map_err(|_| "too large".to_owned())?;
    Ok((number, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(
            (size("17"), size("1 KiB"), size("32MiB"), size("1GiB")),
            (Ok(17), Ok(1024), Ok(32 << 20), Ok(1 << 30))
        );
        for bad in [
            "",
            "MiB",
            "-1",
            "1MB",
            "1.5MiB",
            "99999999999999999999",
            "99999999999GiB",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("5ms"), Ok(Duration::from_millis(5)));
        assert_eq!(duration("24h"), Ok(Duration::from_secs(86_400)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for bad in ["5", "s", "1w", "-1s", "400d", "99999999999999999d"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        let message = "\"1.5h\" is not a valid duration, such as 30s".to_owned();
        assert_eq!(duration("1.5h"), Err(message));
    }

    #[test]
    fn counts() {
        assert_eq!(count("12"), Ok(12));
        for bad in ["12s", "", "two", "-1", "1.5"] {
            let message = format!("{bad:?} is not a valid integer, such as 4");
            assert_eq!(count(bad), Err(message));
        }
    }
}
