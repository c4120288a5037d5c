//! The ids that a selector selects.

use super::Blocks;
use super::block::{self, Term};
use super::directory::{Directory, Name};
use super::postings::{Collected, meets, read_set};
use crate::matcher::{Matcher, Pattern};
use crate::selector::Selector;
use crate::{IdSet, Malformed};

/// The ids of the series of a run that a selector selects.
///
/// # Errors
/// If a block cannot be read.
pub fn select<B: Blocks>(
    directory: &Directory,
    blocks: &mut B,
    selector: &Selector,
) -> Result<IdSet, B::Error> {
    let mut order: Vec<&Matcher> = selector.matchers.iter().collect();
    order.sort_by_key(|matcher| cost(directory, matcher));
    let mut selected: Option<IdSet> = None;
    for matcher in order {
        let found = matched(directory, blocks, matcher)?;
        let found = match (found, selected.take()) {
            (Found::Only(set), None) => set,
            (Found::Only(set), Some(before)) => before & set,
            (Found::AllBut(set), None) => all(directory, blocks)? - set,
            (Found::AllBut(set), Some(before)) => before - set,
        };
        if found.is_empty() {
            return Ok(found);
        }
        selected = Some(found);
    }
    match selected {
        Some(selected) => Ok(selected),
        None => all(directory, blocks),
    }
}

/// The result of a matcher.
enum Found {
    Only(IdSet),
    AllBut(IdSet),
}

/// The sort key of matchers: a matcher that reads few values of its label comes first.
fn cost(directory: &Directory, matcher: &Matcher) -> u64 {
    let values = directory.name(matcher.name()).map_or(0, |name| name.values);
    let looks = match matcher.pattern() {
        Pattern::OneOf(texts) => texts.len() as u64,
        Pattern::Anything | Pattern::NotEmpty => 1,
        Pattern::Expression { .. } => values,
    };
    // A matcher that also matches series without its label only removes ids, so it comes after one
    // that does not.
    looks * 2 + u64::from(matcher.matches(""))
}

/// The ids of all series of the run.
fn all<B: Blocks>(directory: &Directory, blocks: &mut B) -> Result<IdSet, B::Error> {
    match directory.name("") {
        Some(name) => presence(name, blocks),
        None => Ok(IdSet::new()),
    }
}

/// The ids of the series that have a label.
///
/// # Errors
/// If a block cannot be read.
pub fn presence<B: Blocks>(name: &Name, blocks: &mut B) -> Result<IdSet, B::Error> {
    let mut set = IdSet::new();
    blocks.read(name.presence().as_slice(), &mut |block| {
        block::each_term(block, |term| {
            set = read_set(term.postings)?;
            Ok(false)
        })
    })?;
    Ok(set)
}

fn matched<B: Blocks>(
    directory: &Directory,
    blocks: &mut B,
    matcher: &Matcher,
) -> Result<Found, B::Error> {
    let name = directory.name(matcher.name());
    let like = match name {
        Some(name) => series_like(name, blocks, matcher.pattern())?,
        None => IdSet::new(),
    };
    let only = |is_negated: bool, set| match is_negated {
        false => Found::Only(set),
        true => Found::AllBut(set),
    };
    if !matcher.pattern().matches("") {
        return Ok(only(matcher.is_negated(), like));
    }
    // Series without the label are like the pattern too. Unlike it are those with the label and
    // another value.
    let unlike = match name {
        Some(name) => presence(name, blocks)? - like,
        None => IdSet::new(),
    };
    Ok(only(!matcher.is_negated(), unlike))
}

/// The ids of the series that have the label with a value that is like a pattern.
fn series_like<B: Blocks>(
    name: &Name,
    blocks: &mut B,
    pattern: &Pattern,
) -> Result<IdSet, B::Error> {
    let mut collected = Collected::default();
    match pattern {
        Pattern::Anything | Pattern::NotEmpty => return presence(name, blocks),
        Pattern::OneOf(texts) => {
            let wanted: Vec<&str> = texts.iter().map(String::as_str).collect();
            // Series without the label are no values of it.
            let wanted = &wanted[wanted.partition_point(|text| text.is_empty())..];
            each_wanted(name, blocks, wanted, |_, term| collected.add(term.postings))?;
        }
        Pattern::Expression { prefix, .. } => {
            let past = |value: &str| value > prefix.as_str() && !value.starts_with(prefix.as_str());
            let range: Vec<usize> = name.blocks_of(prefix, past).collect();
            blocks.read(&range, &mut |block| {
                block::each_term(block, |term| {
                    if !term.value.is_empty() && pattern.matches(term.value) {
                        collected.add(term.postings)?;
                    }
                    Ok(!past(term.value))
                })
            })?;
        }
    }
    Ok(collected.into_set())
}

/// Calls `visit` with each of some sorted, non-empty values that a name has: its place among them,
/// and its term.
///
/// # Errors
/// If a block cannot be read, or `visit` fails.
pub fn each_wanted<B: Blocks>(
    name: &Name,
    blocks: &mut B,
    wanted: &[&str],
    mut visit: impl FnMut(usize, Term) -> Result<(), Malformed>,
) -> Result<(), B::Error> {
    let mut numbers: Vec<usize> = wanted
        .iter()
        .flat_map(|text| name.blocks_of(text, |_| true))
        .collect();
    numbers.dedup();
    let mut next = 0;
    blocks.read(&numbers, &mut |block| {
        block::each_term(block, |term| {
            while wanted.get(next).is_some_and(|text| *text < term.value) {
                next += 1;
            }
            if wanted.get(next) == Some(&term.value) {
                visit(next, term)?;
            }
            Ok(next < wanted.len())
        })
    })
}

/// Of some series, those that have a label with a value that passes a test.
///
/// The test is called first for a value that one of these series has, or not at all if there is
/// none. It is then called for all later values, because this is faster than finding their series.
///
/// # Errors
/// If a block cannot be read.
pub fn passing<B: Blocks>(
    name: &Name,
    blocks: &mut B,
    series: &IdSet,
    mut test: impl FnMut(&str) -> bool,
) -> Result<IdSet, B::Error> {
    let (mut collected, mut is_tested) = (Collected::default(), false);
    each_term(name, blocks, |term| {
        is_tested = is_tested || meets(term.postings, series)?;
        if is_tested && test(term.value) {
            collected.add(term.postings)?;
        }
        Ok(())
    })?;
    Ok(collected.into_set() & series)
}

/// Calls `visit` with each value of a name, in the order of their bytes.
///
/// # Errors
/// If a block cannot be read, or `visit` fails.
pub fn each_term<B: Blocks>(
    name: &Name,
    blocks: &mut B,
    mut visit: impl FnMut(Term) -> Result<(), Malformed>,
) -> Result<(), B::Error> {
    let numbers: Vec<usize> = name.blocks().collect();
    blocks.read(&numbers, &mut |block| {
        block::each_term(block, |term| {
            if !term.value.is_empty() {
                visit(term)?;
            }
            Ok(true)
        })
    })
}
