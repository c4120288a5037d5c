//! The order of texts in which numbers in them count as numbers: `a2` before `a10`.

use std::cmp::Ordering;

/// Splits a text into its first stretch of digits or of other characters, and the rest.
fn chunk(text: &str) -> (&str, &str) {
    let is_digit = |c: char| c.is_ascii_digit();
    let starts = text.starts_with(is_digit);
    let end = text.find(|c| is_digit(c) != starts).unwrap_or(text.len());
    text.split_at(end)
}

/// Compares two texts.
pub(super) fn compare(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() && !b.is_empty() {
        let ((first_a, rest_a), (first_b, rest_b)) = (chunk(a), chunk(b));
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let order = match is_number(first_a) && is_number(first_b) {
            true => {
                let digits = |text: &str| text.trim_start_matches('0').len();
                let (plain_a, plain_b) = (
                    first_a.trim_start_matches('0'),
                    first_b.trim_start_matches('0'),
                );
                digits(first_a)
                    .cmp(&digits(first_b))
                    .then_with(|| plain_a.cmp(plain_b))
                    .then_with(|| first_a.len().cmp(&first_b.len()))
            }
            false => first_a.cmp(first_b),
        };
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    a.len().cmp(&b.len())
}

#[cfg(test)]
mod tests {
    use super::compare;
    use std::cmp::Ordering::{Equal, Greater, Less};

    #[test]
    fn numbers_in_texts_count_as_numbers() {
        for (a, b, expected) in [
            ("a2", "a10", Less),
            ("a10", "a9", Greater),
            ("4xlarge", "16xlarge", Less),
            ("a", "a1", Less),
            ("b", "a1", Greater),
            ("x01", "x01", Equal),
        ] {
            assert_eq!(compare(a, b), expected, "{a} and {b}");
        }
    }
}
