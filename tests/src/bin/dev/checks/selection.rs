//! Reads the arguments of `cargo dev test`: checks, and the tests of a check.
//!
//! ```text
//! cargo dev test fmt regress asof hash_join rust crash::sql
//!                ─┬─ ───────┬────────────── ─────┬─────────
//!                 │         └ two files of SQL   └ the tests whose path contains `sql`
//!                 └ the whole check                 in the test program `crash`
//! ```
//!
//! A word that is the name of a check selects it; any other word belongs to the check before it.

use super::Check;
use crate::near::suggestion;
use lanes_support::error::{Error, Result};

/// A check to run, and the tests of it; all of its tests if there are no names.
pub struct Selection<'a> {
    pub check: &'a Check,
    pub tests: Vec<String>,
}

impl<'a> Selection<'a> {
    /// Selects all tests of a check.
    pub fn whole(check: &'a Check) -> Selection<'a> {
        let tests = Vec::new();
        Selection { check, tests }
    }
}

/// Returns the selected checks in the order of `known`.
///
/// # Errors
/// A word is neither a check nor a test of the check before it.
pub fn select<'a>(words: &[String], known: &[&'a Check]) -> Result<Vec<Selection<'a>>> {
    let mut selected: Vec<Selection> = Vec::new();
    for word in words {
        let place = |selection: &Selection| selection.check.name == word.as_str();
        if let Some(check) = known.iter().find(|check| check.name == word.as_str()) {
            if !selected.iter().any(place) {
                selected.push(Selection::whole(check));
            }
            continue;
        }
        match selected.last_mut() {
            None => return Err(unknown_check(word, known)),
            Some(selection) => match &selection.check.tests {
                None => return Err(unknown_check(word, known)),
                Some(_) => selection.tests.push(word.clone()),
            },
        }
    }
    for selection in &selected {
        if let Some(names) = selection.check.tests.and_then(|tests| tests.names) {
            let names = names()?;
            require_known(selection, &names)?;
        }
    }
    let rank = |check: &Check| known.iter().position(|known| known.name == check.name);
    selected.sort_by_key(|selection| rank(selection.check));
    Ok(selected)
}

/// Fails if a named test does not exist.
fn require_known(selection: &Selection, names: &[String]) -> Result<()> {
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    match selection.tests.iter().find(|test| !names.contains(test)) {
        None => Ok(()),
        Some(test) => Err(Error::Other(format!(
            "the check `{}` has no test `{test}`{}",
            selection.check.name,
            suggestion(test, &known)
        ))),
    }
}

/// Returns the error for a word that names no check: a test without its check, or a misspelt check.
fn unknown_check(word: &str, known: &[&Check]) -> Error {
    for check in known {
        let names = check.tests.and_then(|tests| tests.names);
        let names = names.map_or(Ok(Vec::new()), |names| names());
        if names.is_ok_and(|names| names.iter().any(|name| name == word)) {
            return Error::Other(format!(
                "`{word}` is a test of the check `{0}`; run `cargo dev test {0} {word}`",
                check.name
            ));
        }
    }
    let names: Vec<&str> = known.iter().map(|check| check.name).collect();
    Error::Other(format!(
        "there is no check `{word}`{}",
        suggestion(word, &names)
    ))
}

#[cfg(test)]
mod tests {
    use super::super::{CHECKS, all_checks};
    use super::*;

    fn selected(words: &[&str]) -> std::result::Result<Vec<(&'static str, Vec<String>)>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let selections = select(&words, &all_checks()).map_err(|error| error.to_string())?;
        let pairs = selections.into_iter();
        Ok(pairs
            .map(|selection| (selection.check.name, selection.tests))
            .collect())
    }

    #[test]
    fn words_after_a_check_are_its_tests() {
        let found = selected(&["rust", "crash::sql", "regress", "asof", "hash_join", "fmt"]);
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(
            found.unwrap(),
            [
                ("fmt", Vec::new()),
                ("rust", owned(&["crash::sql"])),
                ("regress", owned(&["asof", "hash_join"])),
            ]
        );
    }

    #[test]
    fn every_check_can_be_selected_alone() {
        for check in &CHECKS {
            assert_eq!(selected(&[check.name]).unwrap(), [(check.name, Vec::new())]);
        }
    }

    #[test]
    fn an_unknown_test_is_refused_with_near_names() {
        let error = selected(&["regress", "asov"]).unwrap_err();
        assert_eq!(
            error,
            "the check `regress` has no test `asov`; did you mean asof?"
        );
        let error = selected(&["isolation", "deadlocks"]).unwrap_err();
        assert!(error.ends_with("did you mean deadlock?"), "{error}");
    }

    #[test]
    fn an_unknown_check_is_refused_with_near_names() {
        let error = selected(&["regres"]).unwrap_err();
        assert_eq!(error, "there is no check `regres`; did you mean regress?");
        assert!(selected(&["fmt", "asov"]).is_err(), "fmt has no tests");
    }

    #[test]
    fn a_test_without_its_check_is_refused_with_the_right_command() {
        let error = selected(&["hash_join"]).unwrap_err();
        assert!(
            error.ends_with("run `cargo dev test regress hash_join`"),
            "{error}"
        );
    }
}
