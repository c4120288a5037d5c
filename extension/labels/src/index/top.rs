//! The values with the most series, found without reading all values.
//!
//! The directory has, for each block, the number of series of its commonest value. A block is read
//! only if that many series, together with the most that any value can have in the other runs,
//! would be enough:
//!
//! ```text
//! best := the values with the most series so far, up to the wanted number
//! for each block, in descending order of the commonest value's series
//!     unless its commonest value, with the series of the commonest value of each other run, would be among the best: skip it
//!     for each of its values that may be among the best: add its series of the other runs, and insert it
//! ```
//! A value that is among the best passes this test in each of its blocks, so none is missed. A
//! value of several runs is found in each of them, with one sum.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::directory::{Directory, Name};
use super::select::each_wanted;
use super::{Blocks, block};

/// A run to search.
pub struct RunRef<'r, B> {
    /// Its directory.
    pub directory: &'r Directory,
    /// Its blocks.
    pub blocks: &'r mut B,
}

/// The best entries: the most series first, then in the order of the texts.
struct Best {
    found: Vec<(String, u64)>,
    wanted: usize,
}

impl Best {
    /// Whether a text that is no smaller than this one could be among the best with so many series.
    fn takes(&self, least: &str, series: u64) -> bool {
        match self.found.last() {
            Some(last) if self.found.len() >= self.wanted => {
                (Reverse(series), least) < (Reverse(last.1), last.0.as_str())
            }
            _ => self.wanted > 0,
        }
    }

    fn put(&mut self, item: String, series: u64) {
        let place = self
            .found
            .partition_point(|(other, most)| (Reverse(most), other) < (Reverse(&series), &item));
        self.found.insert(place, (item, series));
        self.found.truncate(self.wanted);
    }
}

/// The `wanted` values of these labels with the most series, each as the text that `item` makes of
/// label and value, with the number of its series. The texts of a label are in the order of its
/// values.
///
/// # Errors
/// If a block cannot be read.
pub fn top<B: Blocks>(
    runs: &mut [RunRef<B>],
    labels: &[&str],
    wanted: usize,
    item: impl Fn(&str, &str) -> String,
) -> Result<Vec<(String, u64)>, B::Error> {
    let mut best = Best {
        found: Vec::new(),
        wanted,
    };
    // The commonest label comes first, so that most others can be skipped.
    let mut labels: Vec<(u64, &str)> = labels
        .iter()
        .map(|label| (most(runs, label).iter().sum(), *label))
        .collect();
    labels.sort_unstable_by_key(|(series, label)| (Reverse(*series), *label));
    for (series, label) in labels {
        if best.takes(&item(label, ""), series) {
            top_of_label(runs, label, &mut best, &item)?;
        }
    }
    Ok(best.found)
}

/// The number of series with the commonest value of a label, in each run.
fn most<B>(runs: &[RunRef<B>], label: &str) -> Vec<u64> {
    let names = runs.iter().map(|run| run.directory.name(label));
    names.map(|name| name.map_or(0, Name::most)).collect()
}

fn top_of_label<B: Blocks>(
    runs: &mut [RunRef<B>],
    label: &str,
    best: &mut Best,
    item: &impl Fn(&str, &str) -> String,
) -> Result<(), B::Error> {
    let most = most(runs, label);
    let all: u64 = most.iter().sum();
    // For each block: the most series that its commonest value can have, its run and its place
    // there.
    let mut order: Vec<(u64, usize, usize)> = Vec::new();
    for (nth, run) in runs.iter().enumerate() {
        let Some(name) = run.directory.name(label) else {
            continue;
        };
        let blocks = name.most_by_block().iter().enumerate();
        order.extend(blocks.map(|(place, series)| (series + all - most[nth], nth, place)));
    }
    order.sort_unstable_by_key(|(series, nth, place)| (Reverse(*series), *nth, *place));
    let mut seen: HashSet<String> = HashSet::new();
    for (series, nth, place) in order {
        let Some(name) = runs[nth].directory.name(label) else {
            continue;
        };
        if !best.takes(&item(label, name.first(place)), series) {
            continue;
        }
        let others = all - most[nth];
        let mut values: Vec<(String, u64)> = Vec::new();
        runs[nth]
            .blocks
            .read(&[name.blocks().start + place], &mut |bytes| {
                block::each_term(bytes, |term| {
                    let may_be = !term.value.is_empty()
                        && best.takes(&item(label, term.value), term.series + others);
                    if may_be && !seen.contains(term.value) {
                        values.push((term.value.to_owned(), term.series));
                    }
                    Ok(true)
                })
            })?;
        for other in (0..runs.len()).filter(|other| *other != nth) {
            add_series(&mut runs[other], label, &mut values)?;
        }
        for (value, series) in values {
            best.put(item(label, &value), series);
            if runs.len() > 1 {
                seen.insert(value);
            }
        }
    }
    Ok(())
}

/// Adds the number of a run's series with each of these values, which are sorted.
fn add_series<B: Blocks>(
    run: &mut RunRef<B>,
    label: &str,
    values: &mut [(String, u64)],
) -> Result<(), B::Error> {
    let Some(name) = run.directory.name(label) else {
        return Ok(());
    };
    let texts: Vec<String> = values.iter().map(|(value, _)| value.clone()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    each_wanted(name, run.blocks, &texts, |place, term| {
        values[place].1 += term.series;
        Ok(())
    })
}

/// The number of these sorted values of a label that some runs have.
///
/// # Errors
/// If a block cannot be read.
pub fn known_values<B: Blocks>(
    runs: &mut [RunRef<B>],
    label: &str,
    values: &[&str],
) -> Result<u64, B::Error> {
    let mut unknown = values.to_vec();
    for run in runs {
        let Some(name) = run.directory.name(label) else {
            continue;
        };
        let mut is_known = vec![false; unknown.len()];
        each_wanted(name, run.blocks, &unknown, |place, _| {
            is_known[place] = true;
            Ok(())
        })?;
        let mut is_known = is_known.into_iter();
        unknown.retain(|_| is_known.next() != Some(true));
    }
    Ok((values.len() - unknown.len()) as u64)
}
