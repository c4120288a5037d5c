//! A test of a text column. It is evaluated once for each item of a dictionary, and no row is read
//! of a vector whose zone proves that none has a matching item.

use super::frame::Frame;
use super::predicate::Truth;
use super::selection::Selection;
use super::text::{Asked, CodeMemo, Item, TextTest};
use crate::lane::{DictionaryView, LaneData};

/// A test of a text column with its results for the codes met so far.
pub struct TextPredicate {
    attribute: usize,
    test: Box<dyn TextTest>,
    codes: CodeMemo<bool>,
    /// The codes for which the test holds, as a bitmap, once all of a dictionary are known.
    set: Vec<u64>,
    set_of: Option<DictionaryView>,
    /// The matching codes, if they are few.
    few: Option<Vec<u32>>,
}

/// The most codes that are searched for in the zone of a vector.
const FEW_CODES_MAX: usize = 8;

impl TextPredicate {
    /// A test on an attribute.
    pub fn new(attribute: usize, test: Box<dyn TextTest>) -> Box<TextPredicate> {
        Box::new(TextPredicate {
            attribute,
            test,
            codes: CodeMemo::default(),
            set: Vec::new(),
            set_of: None,
            few: None,
        })
    }

    /// The column that is tested.
    pub(super) fn attribute(&self) -> usize {
        self.attribute
    }

    /// The results of the test for rows that are not NULL.
    pub(super) fn evaluate(&mut self, frame: &Frame<'_>, known: &Selection) -> Truth {
        let mut yes = Selection::NONE;
        let lane = frame.lane(self.attribute);
        match lane.data {
            LaneData::Codes { codes, slots, heap } if self.test.may_fail() => {
                self.codes.enter(&frame.dictionaries[self.attribute]);
                let (test, memo) = (&mut self.test, &mut self.codes);
                known.for_each(|row| {
                    // SAFETY: the lane has a code for each row of the vector, and a slot for each
                    // code.
                    let found = unsafe {
                        let code = *codes.add(frame.place + row);
                        memo.get(code, || {
                            test.holds(Item::new(heap.add(*slots.add(code as usize) as usize)))
                        })
                    };
                    if found {
                        yes.words[row / 64] |= 1 << (row % 64);
                    }
                });
            }
            LaneData::Codes { codes, slots, heap } => {
                let dictionary = frame.dictionaries[self.attribute];
                self.build_set(dictionary, slots, heap);
                if !self.has_none(frame) {
                    // SAFETY: the lane has a code for each row of the vector, and the set a bit for
                    // each code.
                    unsafe {
                        let codes = codes.add(frame.place);
                        let words = yes.words.as_mut_ptr();
                        lanes_simd::select::member(codes, frame.rows, self.set.as_ptr(), words);
                    }
                    yes = yes.and(known);
                }
            }
            LaneData::Offsets { .. } => {
                let (test, mut asked) = (&mut *self.test, Asked::new());
                let mut tell = |row: usize, found| {
                    yes.words[row / 64] |= u64::from(found) << (row % 64);
                };
                known.for_each(|row| {
                    // SAFETY: a row of the vector that is not NULL. The lane stays as it is while
                    // the frame lives.
                    let item = unsafe { Item::new(lane.pointer(frame.place + row)) };
                    asked.add(item, row, test, &mut tell);
                });
                asked.finish(test, &mut tell);
            }
            _ => {}
        }
        Truth {
            yes,
            no: known.and_not(&yes),
        }
    }

    /// Whether no row of the vector can pass, as far as is known without a look at its rows.
    pub(super) fn is_ruled_out(&mut self, frame: &Frame<'_>) -> bool {
        let LaneData::Codes { slots, heap, .. } = frame.lane(self.attribute).data else {
            return false;
        };
        if self.test.may_fail() || frame.zone(self.attribute).is_none() {
            return false;
        }
        self.build_set(frame.dictionaries[self.attribute], slots, heap);
        self.has_none(frame)
    }

    /// Whether the zone of the vector proves that no row has a matching code.
    fn has_none(&self, frame: &Frame<'_>) -> bool {
        self.few.as_ref().is_some_and(|few| {
            let codes = frame.zone(self.attribute).and_then(|zone| zone.codes);
            few.is_empty()
                || codes.is_some_and(|codes| !few.iter().any(|code| codes.may_have(*code)))
        })
    }

    /// Makes the set of codes for which the test holds.
    fn build_set(&mut self, dictionary: DictionaryView, slots: *const u64, heap: *const u8) {
        let unchanged = self.codes.enter(&dictionary);
        if unchanged && self.set_of == Some(dictionary) {
            return;
        }
        self.set_of = Some(dictionary);
        self.set.clear();
        self.set
            .resize((dictionary.items as usize).div_ceil(64).max(1), 0);
        let (test, codes, mut asked) = (&mut *self.test, &mut self.codes, Asked::new());
        let unknown = (0..dictionary.items).filter(|code| codes.known(*code).is_none());
        let unknown: Vec<u32> = unknown.collect();
        let mut tell = |code: u32, found| {
            codes.get(code, || found);
        };
        for code in unknown {
            // SAFETY: a dictionary has a slot for each of its items, which stay as they are while
            // the caller's frame lives.
            let item = unsafe { Item::new(heap.add(*slots.add(code as usize) as usize)) };
            asked.add(item, code, test, &mut tell);
        }
        asked.finish(test, &mut tell);
        for code in (0..dictionary.items).filter(|code| codes.known(*code) == Some(true)) {
            self.set[code as usize / 64] |= 1 << (code % 64);
        }
        let count = self.set.iter().map(|word| word.count_ones() as usize);
        let is_few = count.sum::<usize>() <= FEW_CODES_MAX;
        self.few = is_few.then(|| {
            let holds = |code: &u32| self.set[*code as usize / 64] >> (code % 64) & 1 == 1;
            (0..dictionary.items).filter(holds).collect()
        });
    }
}
