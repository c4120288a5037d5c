//! The SQL functions that read the label index.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use lanes_labels::index::{self, postings, top};
use lanes_labels::{IdSet, METRIC_NAME, Selector};
use pgrx::prelude::*;

use super::between::{self, ALL_TIMES, Times};
use super::source::{Index, sound};
use crate::error;
use crate::pg::text::{self, ServerText};

/// The selector that an argument spells.
fn selector(argument: &[u8]) -> Selector {
    let argument = text::utf8_text(argument);
    let argument = String::from_utf8_lossy(&argument);
    Selector::parse(&argument).unwrap_or_else(|failure| {
        error::raise(
            PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
            format!("\"{argument}\" is not a selector of series: {failure}"),
            "Write a selector as in Prometheus: up{job=\"node\",instance=~\"a|b\"}.",
        )
    })
}

/// The ids of the series that a selector selects and that have samples between two times.
#[pg_extern(sql = false)]
fn series_ids(
    selecting: &[u8],
    from: TimestampWithTimeZone,
    until: TimestampWithTimeZone,
) -> SetOfIterator<'static, i32> {
    let selected = Index::visible().select(&selector(selecting));
    let selected = narrowed(selected, &times(Some(from), Some(until)));
    SetOfIterator::new(selected.into_iter().map(|id| id as i32))
}

/// The times between two, both included. NULL is no bound.
fn times(from: Option<TimestampWithTimeZone>, until: Option<TimestampWithTimeZone>) -> Times {
    let stored = |time: TimestampWithTimeZone| pg_sys::TimestampTz::from(time);
    from.map_or(i64::MIN, stored)..=until.map_or(i64::MAX, stored)
}

fn narrowed(selected: IdSet, times: &Times) -> IdSet {
    match *times == ALL_TIMES {
        true => selected,
        false => between::with_samples(selected, times),
    }
}

/// The series of the runs of an index, all of them, that a selector selects and that have samples between two times.
/// `None`: all series.
fn chosen(index: &mut Index, selecting: Option<&[u8]>, times: &Times) -> Option<IdSet> {
    let selected = match selecting.map(selector) {
        Some(selector) => index.select_covered(&selector, &mut []),
        None if *times == ALL_TIMES => return None,
        None => index.covered(),
    };
    Some(narrowed(selected, times))
}

/// Whether every matcher of a selector matches the empty text. Such a selector excludes no series because it lacks a
/// label.
#[pg_extern(sql = false)]
fn selects_without_labels(selecting: &[u8]) -> bool {
    let selector = selector(selecting);
    selector.matchers.iter().all(|matcher| matcher.matches(""))
}

/// The names of the labels of the series that a selector selects and that have samples between two times; without a
/// selector, of all series. Each is returned once, in the order of the bytes in UTF-8.
#[pg_extern(sql = false)]
fn label_names(
    selecting: Option<&[u8]>,
    from: Option<TimestampWithTimeZone>,
    until: Option<TimestampWithTimeZone>,
) -> SetOfIterator<'static, ServerText> {
    let mut names = BTreeSet::new();
    let mut index = Index::visible();
    index.cover_all(false);
    let chosen = chosen(&mut index, selecting, &times(from, until));
    for run in &mut index.runs {
        for name in run.directory.names() {
            if names.contains(&name.name) {
                continue;
            }
            let is_selected = match &chosen {
                None => true,
                Some(chosen) => {
                    let presence = sound(index::presence(name, &mut run.blocks));
                    !presence.is_disjoint(chosen)
                }
            };
            if is_selected {
                names.insert(name.name.clone());
            }
            pgrx::check_for_interrupts!();
        }
    }
    texts(names.into_iter().collect())
}

/// The values of a label of the series that a selector selects and that have samples between two times; without a
/// selector, of all series. Each is returned once, in the order of the bytes in UTF-8.
#[pg_extern(sql = false)]
fn label_values(
    name: Option<&[u8]>,
    selecting: Option<&[u8]>,
    from: Option<TimestampWithTimeZone>,
    until: Option<TimestampWithTimeZone>,
) -> SetOfIterator<'static, ServerText> {
    let name = text::utf8_text(name.unwrap_or_default());
    let name = String::from_utf8_lossy(&name);
    let mut values = Vec::new();
    let mut index = Index::visible();
    index.cover_all(false);
    let chosen = chosen(&mut index, selecting, &times(from, until));
    for run in &mut index.runs {
        let Some(name) = run.directory.name(&name).filter(|_| !name.is_empty()) else {
            continue;
        };
        let read = index::each_term(name, &mut run.blocks, |term| {
            let is_selected = match &chosen {
                None => true,
                Some(chosen) => postings::meets(term.postings, chosen)?,
            };
            if is_selected {
                values.push(term.value.to_owned());
            }
            Ok(())
        });
        sound(read);
        pgrx::check_for_interrupts!();
    }
    // A value may be in several runs, each of which has its values in order.
    values.sort();
    values.dedup();
    texts(values)
}

/// The metrics, label names or label values that the most series have.
#[pg_extern(sql = false)]
fn cardinality(
    by: &[u8],
    wanted: i32,
) -> TableIterator<
    'static,
    (
        name!(item, ServerText),
        name!(series, i64),
        name!(values, Option<i64>),
    ),
> {
    let mut index = Index::visible();
    index.cover_all(by == b"name");
    let wanted = usize::try_from(wanted).unwrap_or(0);
    let counts: Vec<Count> = match by {
        b"metric" => {
            let metric = |_: &str, metric: &str| metric.to_owned();
            values_by_series(&mut index, &[METRIC_NAME], wanted, metric)
        }
        b"name" => names_by_series(&index, wanted),
        b"value" => {
            let names = names(&index);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let value = |name: &str, value: &str| format!("{name}={value}");
            values_by_series(&mut index, &names, wanted, value)
        }
        _ => error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("cannot count series by \"{}\"", String::from_utf8_lossy(by)),
            "Count by 'metric', 'name' or 'value'.",
        ),
    };
    TableIterator::new(counts.into_iter().map(|(item, series, values)| {
        let values = values.map(|values| values as i64);
        (ServerText::of_utf8(item.as_bytes()), series as i64, values)
    }))
}

/// A metric, a label's name or a label with its value; the number of series that have it; the number of its distinct
/// values.
type Count = (String, u64, Option<u64>);

/// The names of all labels.
fn names(index: &Index) -> BTreeSet<String> {
    let runs = index.runs.iter();
    runs.flat_map(|run| run.directory.names().map(|name| name.name.clone()))
        .collect()
}

/// The values of labels that the most series have.
fn values_by_series(
    index: &mut Index,
    names: &[&str],
    wanted: usize,
    item: impl Fn(&str, &str) -> String,
) -> Vec<Count> {
    let found = sound(top::top(&mut index.run_refs(), names, wanted, item));
    let counts = found.into_iter().map(|(item, series)| (item, series, None));
    counts.collect()
}

/// The names of labels that the most series have, each with the number of its values.
fn names_by_series(index: &Index, wanted: usize) -> Vec<Count> {
    let mut counts = Vec::new();
    for name in names(index) {
        let runs = index.runs.iter();
        let entries = runs.filter_map(|run| run.directory.name(&name));
        let (mut series, mut values) = (0, 0);
        for entry in entries {
            series += entry.series;
            values += entry.new_values;
        }
        counts.push((name, series, Some(values)));
    }
    counts.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
    counts.truncate(wanted);
    counts
}

fn texts(found: Vec<String>) -> SetOfIterator<'static, ServerText> {
    let texts = found.into_iter();
    SetOfIterator::new(texts.map(|text| ServerText::of_utf8(text.as_bytes())))
}
