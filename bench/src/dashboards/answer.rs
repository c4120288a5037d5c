//! The answer to a panel's query, and the comparison of two answers.

use std::collections::BTreeMap;

/// The values of each line of a panel in the order of time. The line's name is its labels' values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    lines: BTreeMap<String, Vec<f64>>,
}

/// Sums of doubles depend on the order of addition.
pub const TOLERANCE: f64 = 1e-9;

impl Answer {
    /// Adds the next value of a line.
    pub fn add(&mut self, line: &str, value: f64) {
        match self.lines.get_mut(line) {
            Some(values) => values.push(value),
            None => {
                self.lines.insert(line.to_owned(), vec![value]);
            }
        }
    }

    /// Returns the number of values.
    pub fn values(&self) -> usize {
        self.lines.values().map(Vec::len).sum()
    }

    /// Returns the first difference from another answer, in words, or `None` if both are equal.
    #[cfg(test)]
    pub fn difference(&self, other: &Answer) -> Option<String> {
        self.difference_beyond(other, TOLERANCE)
    }

    /// Returns the first difference from another answer whose values may be apart by a share of the
    /// greater one.
    pub fn difference_beyond(&self, other: &Answer, tolerance: f64) -> Option<String> {
        if self.values() == 0 {
            return Some("the answer is empty".to_owned());
        }
        if let Some(line) = other
            .lines
            .keys()
            .find(|line| !self.lines.contains_key(*line))
        {
            return Some(format!("there is no line `{line}`"));
        }
        self.lines.iter().find_map(|(line, ours)| {
            let Some(theirs) = other.lines.get(line) else {
                return Some(format!("unexpected line `{line}`"));
            };
            if ours.len() != theirs.len() {
                let (ours, theirs) = (ours.len(), theirs.len());
                return Some(format!("the line `{line}` has {ours} values, not {theirs}"));
            }
            let mut pairs = ours.iter().zip(theirs).enumerate();
            let (place, (ours, theirs)) =
                pairs.find(|(_, (ours, theirs))| !same(**ours, **theirs, tolerance))?;
            Some(format!(
                "value {place} of the line `{line}` is {ours}, not {theirs}"
            ))
        })
    }
}

fn same(ours: f64, theirs: f64, tolerance: f64) -> bool {
    // The difference of two sums may be small relative to either.
    (ours - theirs).abs() <= tolerance * ours.abs().max(theirs.abs()).max(1.0)
        || (ours.is_nan() && theirs.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(lines: &[(&str, &[f64])]) -> Answer {
        let mut answer = Answer::default();
        for (line, values) in lines {
            values.iter().for_each(|value| answer.add(line, *value));
        }
        answer
    }

    #[test]
    fn the_first_difference_is_reported() {
        let ours = answer(&[("a", &[1.0, 2.0]), ("b", &[0.5])]);
        let close = answer(&[("a", &[1.0, 2.0 + 1e-12]), ("b", &[0.5])]);
        assert_eq!((ours.difference(&close), ours.values()), (None, 3));
        for (other, word) in [
            (answer(&[("a", &[1.0, 2.0])]), "unexpected line `b`"),
            (answer(&[("a", &[1.0, 2.0]), ("b", &[0.5]), ("c", &[])]), ""),
            (
                answer(&[("a", &[1.0]), ("b", &[0.5])]),
                "has 2 values, not 1",
            ),
            (
                answer(&[("a", &[1.0, 2.1]), ("b", &[0.5])]),
                "is 2, not 2.1",
            ),
        ] {
            let difference = ours.difference(&other);
            assert_eq!(difference.is_none(), word.is_empty(), "{difference:?}");
            assert!(difference.unwrap_or_default().contains(word));
        }
        let near = answer(&[("a", &[1.0, 2.1]), ("b", &[0.5])]);
        assert_eq!(ours.difference_beyond(&near, 0.05), None);
        assert!(ours.difference_beyond(&near, 0.04).is_some());
        let more = answer(&[("a", &[1.0, 2.0]), ("b", &[0.5]), ("c", &[1.0])]);
        assert_eq!(ours.difference(&more).unwrap(), "there is no line `c`");
        assert!(answer(&[]).difference(&answer(&[])).is_some());
    }
}
