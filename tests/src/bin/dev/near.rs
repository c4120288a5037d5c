//! Suggestions for a misspelt name.

/// How many names are suggested.
const SUGGESTIONS_MAX: usize = 5;

/// Returns the known names that resemble `wanted`, the most similar first.
///
/// A name resembles another one if it contains it, or if about a third of the letters differ.
pub fn near<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let distance_max = wanted.chars().count() / 3 + 1;
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            if name.contains(wanted) || (name.len() > 2 && wanted.contains(name)) {
                return Some((0, name));
            }
            let distance = edit_distance(wanted, name);
            (distance <= distance_max).then_some((distance, name))
        })
        .collect();
    found.sort();
    found.truncate(SUGGESTIONS_MAX);
    found.into_iter().map(|(_, name)| name).collect()
}

/// Returns the end of an error message about an unknown name: the near names, or all of them.
pub fn suggestion(wanted: &str, known: &[&str]) -> String {
    match near(wanted, known.iter().copied()).as_slice() {
        [] => format!("; known names: {}", known.join(", ")),
        names => format!("; did you mean {}?", names.join(", ")),
    }
}

/// Returns the number of letters to insert, delete or replace to make `right` of `left`
/// (Levenshtein's distance, one row of the matrix at a time).
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, letter) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (place, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_insertions_deletions_and_replacements() {
        assert_eq!(edit_distance("asof", "asof"), 0);
        assert_eq!(edit_distance("asof", "asov"), 1);
        assert_eq!(edit_distance("asof", "as_of"), 1);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }

    #[test]
    fn near_names_contain_the_wanted_one_or_differ_in_few_letters() {
        let known = ["asof", "time_join", "time_join_edges", "vacuum"];
        assert_eq!(near("asov", known), ["asof"]);
        assert_eq!(near("time_join", known), ["time_join", "time_join_edges"]);
        assert_eq!(near("vaccum", known), ["vacuum"]);
        assert!(near("zzz", known).is_empty());
    }

    #[test]
    fn a_suggestion_lists_all_names_when_none_is_near() {
        let known = ["asof", "vacuum"];
        assert_eq!(suggestion("asov", &known), "; did you mean asof?");
        assert_eq!(suggestion("zzz", &known), "; known names: asof, vacuum");
    }
}
