//! Tests on text from dictionary to dictionary, and what is remembered of codes.

use proptest::prelude::*;

use super::lanes::{Cell, Column, Dictionary, Source, TestLanes, text};
use crate::lane::DictionaryView;
use crate::test_support::cases;
use crate::vector::predicate::{Predicate, TextPredicate};
use crate::vector::text::{CodeMemo, OneOf};
use crate::zone_map::Zone;

/// How the lane of text of the next segment comes to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// An unchanged dictionary, possibly with more items.
    Same,
    /// A new one that begins as a copy of the first part of the one before.
    Child,
    /// A new one.
    Fresh,
    /// A new one that has no number.
    Nameless,
    /// No dictionary.
    Plain,
    /// Nothing but NULLs.
    Absent,
}

pub(crate) fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    use Step::{Absent, Child, Fresh, Nameless, Plain, Same};
    let step = prop_oneof![
        4 => Just(Same), 4 => Just(Child), 1 => Just(Fresh), 1 => Just(Nameless), 2 => Just(Plain), 1 => Just(Absent)
    ];
    prop::collection::vec(step, 1..8)
}

/// The lanes of a walk through segments.
pub(crate) struct Walk {
    dictionary: Dictionary,
    instances: u64,
}

impl Walk {
    pub(crate) fn new() -> Walk {
        Walk {
            dictionary: Dictionary::default(),
            instances: 0,
        }
    }

    pub(crate) fn column(&mut self, step: Step, rows: usize, source: &mut Source) -> Column {
        let before = self.dictionary.view;
        match step {
            Step::Same if before.instance != 0 => {}
            Step::Same | Step::Fresh | Step::Nameless => {
                self.dictionary = Dictionary::default();
            }
            Step::Child => {
                let inherited = source.below(self.dictionary.payloads.len() as u64 + 1);
                self.dictionary.payloads.truncate(inherited as usize);
                self.dictionary.view = DictionaryView {
                    instance: 0,
                    parent: before.instance,
                    inherited: inherited as u32,
                    items: 0,
                };
            }
            Step::Plain => {
                let value = |s: &mut Source| (!s.one_in(4)).then(|| text(s.below(20) as u32));
                let values: Vec<_> = (0..rows).map(|_| value(source)).collect();
                return Column::plain(&values, source);
            }
            Step::Absent => return Column::absent(rows, source),
        }
        if self.dictionary.view.instance == 0 && !matches!(step, Step::Nameless) {
            self.instances += 1;
            self.dictionary.view.instance = self.instances;
        }
        // Distinct items, in an order that differs from dictionary to dictionary.
        for _ in 0..=source.below(20) {
            let payload = text(source.below(100) as u32);
            if !self.dictionary.payloads.contains(&payload) {
                self.dictionary.payloads.push(payload);
            }
        }
        if self.dictionary.payloads.is_empty() {
            self.dictionary.payloads.push(text(0));
        }
        let items = self.dictionary.payloads.len() as u64;
        let codes: Vec<_> = (0..rows)
            .map(|_| (!source.one_in(4)).then(|| source.below(items) as u32))
            .collect();
        Column::coded(&self.dictionary, &codes, source)
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn a_test_on_text_agrees_in_every_segment(steps in any_steps(), seed in any::<u64>(), rows in 1..300_usize) {
        let mut source = Source(seed);
        let wanted: Vec<_> = (0..10).map(|_| text(source.below(100) as u32)).collect();
        let payloads = wanted.iter().map(|p| p.clone().into()).collect();
        let mut predicate = Predicate::Text(TextPredicate::new(0, Box::new(OneOf::new(payloads))));
        let mut walk = Walk::new();
        for step in steps {
            let mut lanes = TestLanes::of(vec![walk.column(step, rows, &mut source)]);
            let codes = source.one_in(2).then(|| lanes.codes(0)).flatten();
            lanes.zones = vec![Some(Zone { codes, ..lanes.zone(0) })];
            let selection = source.selection(rows);
            let truth = lanes.with_frame(|frame| predicate.evaluate(frame, &selection)).unwrap();
            for row in 0..rows {
                let expected = match lanes.cell(0, row) {
                    Cell::Text(payload) if selection.contains(row) => Some(wanted.contains(payload)),
                    _ => None,
                };
                prop_assert_eq!(truth.yes.contains(row), expected == Some(true), "row {} after {:?}", row, step);
                prop_assert_eq!(truth.no.contains(row), expected == Some(false), "row {} after {:?}", row, step);
            }
        }
    }
}

/// The view of a dictionary.
fn view(instance: u64, parent: u64, inherited: u32, items: u32) -> DictionaryView {
    DictionaryView {
        instance,
        parent,
        inherited,
        items,
    }
}

/// The result of a code, and whether it had to be computed.
fn ask(memo: &mut CodeMemo<u32>, code: u32, answer: u32) -> (u32, bool) {
    let mut asked = false;
    let known = memo.get(code, || {
        asked = true;
        answer
    });
    (known, asked)
}

#[test]
fn what_is_known_of_codes_lasts_as_long_as_their_meaning() {
    let mut memo = CodeMemo::default();
    assert!(!memo.enter(&view(1, 0, 0, 2)), "all is new");
    assert_eq!(ask(&mut memo, 0, 10), (10, true));
    assert_eq!(ask(&mut memo, 1, 11), (11, true));
    assert!(memo.enter(&view(1, 0, 0, 2)), "nothing changed");
    assert_eq!(ask(&mut memo, 1, 99), (11, false));
    assert!(!memo.enter(&view(1, 0, 0, 3)), "an item more");
    assert_eq!(ask(&mut memo, 1, 99), (11, false));
    assert_eq!(ask(&mut memo, 2, 12), (12, true));
    assert!(!memo.enter(&view(2, 1, 1, 3)), "a child shares one item");
    assert_eq!(ask(&mut memo, 0, 99), (10, false));
    assert_eq!(ask(&mut memo, 1, 21), (21, true));
    memo.enter(&view(3, 1, 1, 3));
    assert_eq!(
        ask(&mut memo, 0, 30),
        (30, true),
        "its parent is not the one before"
    );
    for round in 0..2 {
        assert!(!memo.enter(&view(0, 0, 0, 1)));
        assert_eq!(
            ask(&mut memo, 0, round),
            (round, true),
            "nothing lasts without a number"
        );
    }
    memo.enter(&view(4, 0, 0, 1));
    assert_eq!(
        ask(&mut memo, 0, 40),
        (40, true),
        "no parent is not parent 0"
    );
}
