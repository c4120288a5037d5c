//! Numbers as Go reads and prints them.

use std::fmt::Write;

/// Reads a number of a query: decimal, hexadecimal or octal digits, a float, `Inf` or `NaN`.
///
/// # Errors
/// Go's words for why the text is no number.
pub fn parse(text: &str) -> Result<f64, String> {
    if let Some(integer) = parse_integer(text) {
        return Ok(integer as f64);
    }
    let syntax = || {
        format!(
            "strconv.ParseFloat: parsing {}: invalid syntax",
            crate::quote::quote(text)
        )
    };
    let digits = text.replace('_', "");
    let unsigned = digits.trim_start_matches(['+', '-']);
    let is_word = unsigned.eq_ignore_ascii_case("inf")
        || unsigned.eq_ignore_ascii_case("infinity")
        || unsigned.eq_ignore_ascii_case("nan");
    if digits.len() - unsigned.len() > 1
        || !is_word && !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
    {
        return Err(syntax());
    }
    if unsigned.eq_ignore_ascii_case("nan") {
        return Ok(f64::NAN);
    }
    let value: f64 = digits.parse().map_err(|_| syntax())?;
    if value.is_infinite() && !is_word {
        let text = crate::quote::quote(text);
        return Err(format!(
            "strconv.ParseFloat: parsing {text}: value out of range"
        ));
    }
    Ok(value)
}

/// Reads a whole number whose prefix names its base, as Go does.
fn parse_integer(text: &str) -> Option<i64> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = unsigned.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    if digits.starts_with(['+', '-']) || digits.ends_with('_') || digits.contains("__") {
        return None;
    }
    let magnitude = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// Prints a number as Go's `FormatFloat(…, 'f', -1, 64)`: the shortest digits, without exponent.
pub fn format_plain(value: f64) -> String {
    let mut text = String::new();
    push_plain(&mut text, value);
    text
}

/// Integers below this size are exact, and shorter than [`AMBIGUOUS_DIGITS`].
const PLAIN_INTEGER: f64 = 1e15;

/// Appends a number as [`format_plain`] prints it.
pub fn push_plain(text: &mut String, value: f64) {
    // Writing to a string cannot fail.
    let _ = match value {
        value if value.is_nan() => text.write_str("NaN"),
        f64::INFINITY => text.write_str("+Inf"),
        f64::NEG_INFINITY => text.write_str("-Inf"),
        value if value.abs() < PLAIN_INTEGER && value.trunc() == value && value != 0.0 => {
            write!(text, "{}", value as i64)
        }
        value if may_be_halfway(value) => {
            text.write_str(&with_even_digit(value, format!("{value}")))
        }
        value => {
            let mut buffer = zmij::Buffer::new();
            let shortest = buffer.format_finite(value);
            match shortest.contains('e') {
                true => write!(text, "{value}"),
                false => text.write_str(shortest.strip_suffix(".0").unwrap_or(shortest)),
            }
        }
    };
}

/// Whether a number can lie in the middle between two texts of [`AMBIGUOUS_DIGITS`] or 17 digits.
///
/// A number with `n` binary places after the point has `n` decimal places, and at least `0.69 n`
/// significant digits. One in the middle has at most 18.
fn may_be_halfway(value: f64) -> bool {
    const PLACES_MAX: i32 = 26;
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let mantissa = bits & ((1 << 52) - 1);
    let zeros = mantissa.trailing_zeros().min(52) as i32;
    let places = 1075 - exponent.max(1) - zeros;
    places <= PLACES_MAX
}

/// The fewest digits of which several can mean one number.
const AMBIGUOUS_DIGITS: usize = 16;

/// Of two shortest texts that are equally near to a number, Go prints the one with an even last
/// digit, Rust the greater one.
fn with_even_digit(value: f64, text: String) -> String {
    let is_digit = |c: char| ('1'..='9').contains(&c);
    let (Some(first), Some(last)) = (text.find(is_digit), text.rfind(is_digit)) else {
        return text;
    };
    let digits = text[first..=last].bytes().filter(u8::is_ascii_digit);
    let count = digits.count();
    let odd = text.as_bytes()[last] - b'0';
    if count < AMBIGUOUS_DIGITS || odd.is_multiple_of(2) {
        return text;
    }
    // It lies in the middle if its next digit is a five and the last one.
    let exact = format!("{:.40e}", value.abs());
    let exact = exact.split('e').next().unwrap_or_default().replace('.', "");
    let rest = exact.get(count..).unwrap_or_default();
    if !rest.starts_with('5') || rest[1..].contains(is_digit) {
        return text;
    }
    let even = format!("{}{}{}", &text[..last], odd - 1, &text[last + 1..]);
    if even.parse() == Ok(value) {
        even
    } else {
        text
    }
}

/// Prints a number as Go's verb `%g` (and `%v`) does: the shortest digits, with an exponent where
/// that is below -4 or not below 21.
pub fn format_general(value: f64) -> String {
    if !value.is_finite() {
        return format_plain(value);
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 || (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// Prints a number with two significant digits, as Go's verb `%.2g` does.
pub fn format_two_digits(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return format_plain(value);
    }
    let scientific = format!("{value:.1e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    if (-4..2).contains(&exponent) {
        let decimals = usize::try_from(1 - exponent).unwrap_or(0);
        let plain = format!("{value:.decimals$}");
        return match plain.contains('.') {
            true => plain.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => plain,
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::{format_general, format_plain, format_two_digits, parse, with_even_digit};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn short_cuts_print_the_same(
            mantissa in 0_u64..1 << 53,
            places in 0..70,
            tens in -8..20,
            bits in any::<u64>(),
        ) {
            let dyadic = mantissa as f64 / 2_f64.powi(places);
            let decimal = (mantissa % 100_000_000) as f64 * 10_f64.powi(tens);
            for value in [dyadic, -dyadic, f64::from_bits(bits), dyadic.trunc(), decimal] {
                if value.is_finite() {
                    prop_assert_eq!(format_plain(value), with_even_digit(value, format!("{value}")));
                }
            }
        }
    }

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("1", 1.0),
            ("0x1F", 31.0),
            ("010", 8.0),
            ("08", 8.0),
            ("1_000", 1000.0),
            (".5e-3", 0.0005),
            ("-Inf", f64::NEG_INFINITY),
            ("9223372036854775808", 9_223_372_036_854_775_808.0),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        assert!(parse("nan").unwrap().is_nan());
        assert!(parse("1e999").unwrap_err().ends_with("value out of range"));
        assert!(parse("abc").unwrap_err().ends_with("invalid syntax"));
    }

    #[test]
    fn numbers_are_printed_as_go_prints_them() {
        assert_eq!(format_plain(1e21), "1000000000000000000000");
        assert_eq!(format_general(1e21), "1e+21");
        assert_eq!(format_general(123456.0), "123456");
        assert_eq!(format_general(1234567.0), "1.234567e+06");
        assert_eq!(format_general(1e-5), "1e-05");
        assert_eq!(format_general(-0.25), "-0.25");
        assert_eq!(format_two_digits(0.125), "0.12");
        assert_eq!(format_two_digits(123.0), "1.2e+02");
        assert_eq!(format_two_digits(10.0), "10");
        assert_eq!(format_plain(1_214_322_398_754.781_2), "1214322398754.7812");
        assert_eq!(
            format_plain(-1_846_296_112_484.031_2),
            "-1846296112484.0312"
        );
        assert_eq!(format_plain(1_214_322_398_754.781_5), "1214322398754.7815");
        assert_eq!(format_plain(0.1 + 0.2), "0.30000000000000004");
    }
}
