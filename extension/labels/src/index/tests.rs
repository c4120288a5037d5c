//! Runs of random label sets, built, merged and searched, beside a search through all label sets.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::postings::{Postings, meets, read_set};
use super::top::{RunRef, known_values, top};
use super::{Blocks, Builder, Directory, each_term, merge, passing, select};
use crate::{IdSet, METRIC_NAME, Malformed, Selector, label_set};

type Labels = BTreeMap<String, String>;

#[derive(Clone)]
struct InMemory(Vec<Vec<u8>>);

impl Blocks for InMemory {
    type Error = Malformed;

    fn read(
        &mut self,
        blocks: &[usize],
        take: &mut dyn FnMut(&[u8]) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        assert!(blocks.is_sorted());
        blocks.iter().try_for_each(|block| take(&self.0[*block]))
    }
}

fn keep(kept: &mut Vec<Vec<u8>>) -> impl FnMut(usize, Vec<u8>) -> Result<(), Malformed> {
    |number, block| {
        assert_eq!(number, kept.len());
        kept.push(block);
        Ok(())
    }
}

fn json(labels: &Labels) -> String {
    let others = labels.iter().filter(|(name, _)| *name != METRIC_NAME);
    serde_json::to_string(&others.collect::<BTreeMap<_, _>>()).unwrap()
}

type Run = (Directory, InMemory);

/// A run of series whose ids begin at `first`, alone.
fn run(first: u32, series: &[Labels]) -> Run {
    run_after(&mut [], first, series)
}

fn run_refs(runs: &mut [Run]) -> Vec<RunRef<'_, InMemory>> {
    let runs = runs.iter_mut();
    runs.map(|(directory, blocks)| RunRef { directory, blocks })
        .collect()
}

/// A run of series whose ids begin at `first`, after other runs.
fn run_after(earlier: &mut [Run], first: u32, series: &[Labels]) -> Run {
    let mut builder = Builder::default();
    for (id, labels) in (first..).zip(series) {
        let metric = labels.get(METRIC_NAME).map_or("", String::as_str);
        builder.add(id, metric, &label_set::parse(&json(labels)).unwrap());
    }
    assert_eq!(builder.series(), series.len() as u64);
    let mut kept = Vec::new();
    let mut earlier = run_refs(earlier);
    let known = |name: &str, values: &[&str]| known_values(&mut earlier, name, values);
    let directory = builder.finish(keep(&mut kept), known).unwrap();
    (read_back(&directory), InMemory(kept))
}

fn read_back(directory: &Directory) -> Directory {
    let read = Directory::read(&directory.write()).unwrap();
    assert_eq!(read, *directory);
    read
}

fn search(first: u32, series: &[Labels], selector: &Selector) -> IdSet {
    let matches =
        |labels: &Labels| selector.matches(|name| labels.get(name).map_or("", String::as_str));
    let found = (first..).zip(series).filter(|(_, labels)| matches(labels));
    found.map(|(id, _)| id).collect()
}

fn values(directory: &Directory, blocks: &mut InMemory, name: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    if let Some(name) = directory.name(name) {
        each_term(name, blocks, |term| {
            assert!(found.insert(term.value.to_owned(), term.series).is_none());
            Ok(())
        })
        .unwrap();
        assert_eq!(name.values, found.len() as u64);
    }
    found
}

fn labels() -> impl Strategy<Value = Labels> {
    let metric = prop::sample::select(vec!["up", "down", "upper"]);
    let name = prop::sample::select(vec!["a", "b", "instance", "é"]);
    let value = prop_oneof!["[abc]{1,2}", "node-[0-9]{1,2}", "\\PC{1,3}"];
    (metric, prop::collection::btree_map(name, value, 0..4)).prop_map(|(metric, others)| {
        let mut labels: Labels = others.into_iter().map(|(n, v)| (n.to_owned(), v)).collect();
        labels.insert(METRIC_NAME.to_owned(), metric.to_owned());
        labels
    })
}

fn selector() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["__name__", "a", "b", "instance", "é", "absent"]);
    let operator = prop::sample::select(vec!["=", "!=", "=~", "!~"]);
    let value = prop::sample::select(vec![
        "",
        "a",
        "b",
        "node-1",
        "up",
        "a|b|node-2",
        "node-.*",
        "node-1.*",
        ".*",
        ".+",
        "a|",
        "(a|b)+",
        "u.*",
        "[^a]*",
        "no such",
    ]);
    let matcher = (name, operator, value)
        .prop_map(|(name, operator, value)| format!("\"{name}\"{operator}\"{value}\""));
    prop::collection::vec(matcher, 0..4).prop_map(|matchers| format!("{{{}}}", matchers.join(",")))
}

proptest! {
    #[test]
    fn a_selector_selects_what_a_search_finds(
        series in prop::collection::vec(labels(), 0..60),
        cuts in prop::collection::vec(0usize..60, 0..3),
        selectors in prop::collection::vec(selector(), 1..8),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(series.len())).collect();
        cuts.extend([0, series.len()]);
        cuts.sort_unstable();
        let mut runs: Vec<Run> = Vec::new();
        for cut in cuts.windows(2) {
            let next = run_after(&mut runs, cut[0] as u32 + 7, &series[cut[0]..cut[1]]);
            runs.push(next);
        }
        for name in ["__name__", "a", "b", "instance", "é", "absent"] {
            let counted = runs.iter().filter_map(|(directory, _)| directory.name(name));
            let values: BTreeSet<&String> = series.iter().filter_map(|labels| labels.get(name)).collect();
            prop_assert_eq!(counted.map(|name| name.new_values).sum::<u64>(), values.len() as u64);
        }
        let names = ["é", "instance", "a", "b"];
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for labels in &series {
            for (name, value) in labels.iter().filter(|(name, _)| names.contains(&name.as_str())) {
                *counts.entry(format!("{name}={value}")).or_insert(0) += 1;
            }
        }
        let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, series)| Reverse(*series));
        for wanted in [0, 1, 3, 1000] {
            let best = &counts[..counts.len().min(wanted)];
            let item = |name: &str, value: &str| format!("{name}={value}");
            let found = top(&mut run_refs(&mut runs), &names, wanted, item).unwrap();
            prop_assert_eq!(&found[..], best);
        }
        let mut merged = Vec::new();
        let directory = read_back(&merge(&mut runs, keep(&mut merged)).unwrap());
        let mut merged = InMemory(merged);
        let (whole, mut whole_blocks) = run(7, &series);
        prop_assert_eq!(&directory, &whole);
        prop_assert_eq!(&merged.0, &whole_blocks.0);
        for text in &selectors {
            let parsed = Selector::parse(text).unwrap();
            let expected = search(7, &series, &parsed);
            let found = select(&whole, &mut whole_blocks, &parsed).unwrap();
            prop_assert_eq!(&found, &expected, "{}", text);
            let mut parts = IdSet::new();
            for (directory, blocks) in &mut runs {
                parts |= select(directory, blocks, &parsed).unwrap();
            }
            prop_assert_eq!(&parts, &expected, "{}", text);
        }
        // Series with a value that passes a test. No value is tested before one that these series
        // have.
        let some: IdSet = (7..).zip(&series).filter(|(id, _)| id % 3 == 0).map(|(id, _)| id).collect();
        let expected: IdSet = (7..)
            .zip(&series)
            .filter(|(id, labels)| some.contains(*id) && labels.get("a").is_some_and(|value| value.contains('b')))
            .map(|(id, _)| id)
            .collect();
        if let Some(name) = whole.name("a") {
            let mut first = None;
            let found = passing(name, &mut whole_blocks, &some, |value| {
                first.get_or_insert_with(|| value.to_owned());
                value.contains('b')
            });
            prop_assert_eq!(found.unwrap(), expected);
            let asked = (7..).zip(&series).filter(|(id, _)| some.contains(*id));
            prop_assert_eq!(first, asked.filter_map(|(_, labels)| labels.get("a").cloned()).min());
        }
        for name in ["__name__", "a", "instance", "absent"] {
            let mut expected = BTreeMap::new();
            for value in series.iter().filter_map(|labels| labels.get(name)) {
                *expected.entry(value.clone()).or_insert(0) += 1;
            }
            prop_assert_eq!(values(&directory, &mut merged, name), expected);
        }
    }

    #[test]
    fn ids_are_read_back(steps in prop::collection::vec((0u32..5000, 0u32..4), 0..400)) {
        let (mut postings, mut expected, mut next) = (Postings::default(), IdSet::new(), 0u32);
        for (gap, more) in steps {
            let first = next + gap;
            postings.push(first..=first + more);
            expected.insert_range(first..=first + more);
            next = first + more + 1;
        }
        let mut bytes = Vec::new();
        postings.write(&mut bytes);
        let found = read_set(&bytes).unwrap();
        prop_assert_eq!(&found, &expected);
        for id in 0..next.min(3000) {
            prop_assert_eq!(meets(&bytes, &IdSet::from_iter([id])).unwrap(), expected.contains(id));
        }
        prop_assert!(!meets(&bytes, &IdSet::new()).unwrap());
        let mut read = Postings::default();
        read.read(&bytes).unwrap();
        prop_assert_eq!(read.count(), expected.len());
        prop_assert_eq!(&read, &postings);
    }

    #[test]
    fn damaged_bytes_end_in_no_panic(
        series in prop::collection::vec(labels(), 1..20),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        text in selector(),
    ) {
        let (directory, mut blocks) = run(1, &series);
        let parsed = Selector::parse(&text).unwrap();
        let mut bytes = directory.write();
        let at = place.index(bytes.len());
        bytes[at] = byte;
        let _ = Directory::read(&bytes);
        let at = place.index(blocks.0.len());
        let inside = place.index(blocks.0[at].len());
        blocks.0[at][inside] = byte;
        let _ = select(&directory, &mut blocks, &parsed);
    }
}

#[test]
fn values_of_many_blocks_are_found() {
    let series: Vec<Labels> = (0..20_000)
        .map(|number| {
            let labels = [
                (METRIC_NAME, "up".to_owned()),
                (
                    "instance",
                    format!("node-{number:05}.a-long-name.example.org"),
                ),
                ("kind", format!("{}", number % 7)),
            ];
            labels.map(|(name, value)| (name.to_owned(), value)).into()
        })
        .collect();
    let (directory, mut blocks) = run(1, &series);
    let instance = directory.name("instance").unwrap();
    assert!(instance.blocks().len() > 10, "{:?}", instance.blocks());
    assert_eq!((instance.series, instance.values), (20_000, 20_000));
    let bytes: usize = blocks.0.iter().map(Vec::len).sum();
    assert!(bytes < 20_000 * 20, "{bytes}");
    let mut runs = [(directory.clone(), blocks.clone())];
    let names = ["instance", "kind"];
    let found = top(&mut run_refs(&mut runs), &names, 1, |name, value| {
        format!("{name}={value}")
    });
    assert_eq!(found.unwrap(), [("kind=0".to_owned(), 2858)]);
    for (selector, expected) in [
        (r#"{instance="node-00000.a-long-name.example.org"}"#, 1),
        (r#"{instance="node-19999.a-long-name.example.org"}"#, 1),
        (r#"{instance=~"node-0123.*"}"#, 10),
        (
            r#"{instance=~"node-(00017|10000|19998).a-long-name.example.org"}"#,
            3,
        ),
        (r#"{instance=~".*7.a-long-name.*",kind="3"}"#, 286),
        (r#"{instance!~"node-0.*"}"#, 10_000),
        (r#"{kind!="3",instance=~"node-0000.*"}"#, 9),
    ] {
        let parsed = Selector::parse(selector).unwrap();
        let found = select(&directory, &mut blocks, &parsed).unwrap();
        assert_eq!(found, search(1, &series, &parsed), "{selector}");
        assert_eq!(found.len(), expected, "{selector}");
    }
}

#[test]
fn a_bitmap_is_kept_where_ranges_take_more() {
    let mut postings = Postings::default();
    for id in (0..100_000).step_by(2) {
        postings.push(id..=id);
    }
    let mut bytes = Vec::new();
    postings.write(&mut bytes);
    assert!(bytes.len() < 20_000, "{}", bytes.len());
    let found = read_set(&bytes).unwrap();
    assert_eq!(found, postings.to_set());
}

/// Runs lie on disk: one that was written before must be read, and be written as it was.
#[test]
fn the_form_on_disk_stays() {
    let series = [("up", "a"), ("up", "b"), ("down", "a")].map(|(metric, job)| {
        let labels = [(METRIC_NAME, metric), ("job", job)];
        labels
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    });
    let (directory, blocks) = run(5, &series);
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    // The version; then each name, its series, its values, the new ones and its blocks, each with
    // its first value and how many series have the commonest one.
    let expected =
        "02 0000030000 01000000 00085f5f6e616d655f5f030202 01000002 00036a6f62030202 01000002";
    assert_eq!(hex(&directory.write()), expected.replace(' ', ""));
    let blocks: Vec<String> = blocks.0.iter().map(|block| hex(block)).collect();
    // Not compressed; then each value, its series, and its ids from 5 on.
    let expected = [
        "00 0000 03 03 000b02",
        "00 0000 03 03 000b02 0004646f776e 01 02 000e 00027570 02 03 000b01",
        "00 0000 03 03 000b02 000161 02 03 000a02 000162 01 02 000c",
    ];
    assert_eq!(blocks, expected.map(|block| block.replace(' ', "")));
}
