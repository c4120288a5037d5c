//! Runs of random label sets, built, merged and asked, beside a search through all label sets.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::postings::{Postings, read_set};
use super::{Blocks, Builder, Directory, each_term, merge, select};
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

/// A run of series whose ids begin at `first`.
fn run(first: u32, series: &[Labels]) -> (Directory, InMemory) {
    let mut builder = Builder::default();
    for (id, labels) in (first..).zip(series) {
        let metric = labels.get(METRIC_NAME).map_or("", String::as_str);
        builder.add(id, metric, &label_set::parse(&json(labels)).unwrap());
    }
    assert_eq!(builder.series(), series.len() as u64);
    let mut kept = Vec::new();
    let directory = builder.finish(keep(&mut kept)).unwrap();
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
        let mut runs: Vec<(Directory, InMemory)> =
            cuts.windows(2).map(|cut| run(cut[0] as u32 + 7, &series[cut[0]..cut[1]])).collect();
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
    // The version; then each name, its series, its values and its blocks, each with its first value.
    let expected = "01 00000300010000 00085f5f6e616d655f5f0302010000 00036a6f620302010000";
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
