//! Keys that are texts, equal byte by byte.
//!
//! Of a dictionary each text is looked up once. Texts whose ids are not known are looked up
//! together, [`TEXTS_MAX`] at a time.

use super::key::{Ids, KeyReader};
use super::key_values::KeyValues;
#[cfg(doc)]
use super::text_batch::TEXTS_MAX;
use super::text_batch::TextBatch;
use crate::lane::{DictionaryView, LaneData};
use crate::limits::VECTOR_ROWS;
use crate::vector::frame::Frame;
use crate::vector::selection::Selection;
use crate::vector::text::{CodeMemo, item_bytes};

/// The codes of a vector's rows, and the texts of all codes.
#[derive(Clone, Copy)]
struct Coded {
    codes: *const u32,
    slots: *const u64,
    heap: *const u8,
}

impl Coded {
    /// The code of a row.
    ///
    /// # Safety
    /// It is a row of the vector.
    #[inline]
    unsafe fn code(self, row: usize) -> u32 {
        // SAFETY: this function's contract; a lane has a code for each row.
        unsafe { *self.codes.add(row) }
    }

    /// Where the text of a code is.
    ///
    /// # Safety
    /// It is a code of the dictionary.
    #[inline]
    unsafe fn pointer(self, code: u32) -> *const u8 {
        // SAFETY: this function's contract; a dictionary has a slot for each of its items.
        unsafe { self.heap.add(*self.slots.add(code as usize) as usize) }
    }

    /// The text of a code.
    ///
    /// # Safety
    /// As for [`Self::pointer`].
    #[inline]
    unsafe fn item<'a>(self, code: u32) -> &'a [u8] {
        // SAFETY: this function's contract.
        unsafe { item_bytes(self.pointer(code)) }
    }
}

impl KeyReader {
    /// The ids of the selected rows, of which the key is the text of an attribute.
    pub(super) fn assign_text(
        &mut self,
        values: &mut KeyValues,
        frame: &Frame<'_>,
        selection: &Selection,
        attribute: usize,
    ) -> Ids<'_> {
        let lane = frame.lane(attribute);
        let valid = frame.present(attribute, selection);
        self.assign_null(values, &selection.and_not(&valid));
        match lane.data {
            LaneData::Codes { codes, slots, heap } => {
                let coded = Coded {
                    // SAFETY: the lane has a code for each row of the vector.
                    codes: unsafe { codes.add(frame.place) },
                    slots,
                    heap,
                };
                let dictionary = &frame.dictionaries[attribute];
                let rows = (&valid, selection, frame.rows);
                return self.assign_coded(values, coded, dictionary, rows);
            }
            LaneData::Offsets { .. } => {
                let ids = &mut self.ids;
                let mut batch = TextBatch::new();
                valid.for_each(|row| {
                    // SAFETY: a row of the vector that is not NULL, whose lane lives on.
                    unsafe { batch.push(row, lane.pointer(frame.place + row)) };
                    if batch.is_full() {
                        batch.end(values, |row, id| ids[row] = id);
                    }
                });
                batch.end(values, |row, id| ids[row] = id);
            }
            _ => {}
        }
        Ids::Each(&*self.ids)
    }

    /// The ids of the selected rows of a vector of so many, of which those that are not NULL are valid.
    fn assign_coded(
        &mut self,
        values: &mut KeyValues,
        coded: Coded,
        dictionary: &DictionaryView,
        (valid, selection, rows): (&Selection, &Selection, usize),
    ) -> Ids<'_> {
        self.codes.enter(dictionary);
        let is_small = dictionary.items as usize <= VECTOR_ROWS;
        if self.eager && is_small && self.codes.complete().is_none() {
            for code in 0..dictionary.items {
                // SAFETY: a code of the dictionary.
                let item = || unsafe { coded.item(code) };
                self.codes.get(code, || values.text(item()));
            }
        }
        let has_all = valid == selection;
        if self.cuts && has_all && self.cut_codes(values, coded, rows, selection) {
            return self.stretches.ids();
        }
        if self.codes.complete().is_some() && has_all && self.codes.is_identity() {
            // SAFETY: the lane has a code for each row of the vector.
            return Ids::Each(unsafe { std::slice::from_raw_parts(coded.codes, rows) });
        }
        let rows = (valid, rows);
        assign_codes(&mut self.codes, values, coded, rows, &mut self.ids);
        Ids::Each(&*self.ids)
    }

    /// Cuts a vector of codes into stretches; false if it has none.
    fn cut_codes(
        &mut self,
        values: &mut KeyValues,
        coded: Coded,
        rows: usize,
        selection: &Selection,
    ) -> bool {
        let memo = &mut self.codes;
        // SAFETY: the lane has a code for each row of the vector, and a slot for each code.
        unsafe {
            let group_of = |row: usize| {
                let code = coded.code(row);
                memo.get(code, || values.text(coded.item(code)))
            };
            self.stretches.cut(coded.codes, rows, selection, group_of)
        }
    }
}

/// Writes the ids of valid rows.
fn assign_codes(
    memo: &mut CodeMemo<u32>,
    values: &mut KeyValues,
    coded: Coded,
    (valid, rows): (&Selection, usize),
    ids: &mut [u32; VECTOR_ROWS],
) {
    if let Some(known) = memo.complete() {
        let known = known.as_ptr();
        valid.for_each_of(rows, |row| {
            // SAFETY: a row of the vector. The memo knows every code of the dictionary.
            unsafe {
                let code = coded.code(row) as usize;
                *ids.get_unchecked_mut(row) = (*known.add(code)).unwrap_unchecked();
            }
        });
        return;
    }
    let mut batch = TextBatch::new();
    // Rows whose texts are looked up have their codes for ids until then.
    let mut end = |batch: &mut TextBatch, memo: &mut CodeMemo<u32>, ids: &mut [u32]| {
        batch.end(values, |row, id| {
            memo.learn(ids[row], id);
            ids[row] = id;
        });
    };
    valid.for_each(|row| {
        // SAFETY: a row of the vector, and its code.
        let code = unsafe { coded.code(row) };
        match memo.known(code) {
            Some(id) => ids[row] = id,
            None => {
                ids[row] = code;
                // SAFETY: as above; the dictionary lives as long as the vector.
                unsafe { batch.push(row, coded.pointer(code)) };
                if batch.is_full() {
                    end(&mut batch, memo, ids);
                }
            }
        }
    });
    end(&mut batch, memo, ids);
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::super::key::{Key, spread};
    use super::*;
    use crate::column::Column;
    use crate::kind::LaneKind;
    use crate::test_support::cases;

    fn item(number: u32) -> Vec<u8> {
        let text = format!("text {number}");
        [&[(text.len() as u8 + 1) << 1 | 1], text.as_bytes()].concat()
    }

    proptest! {
        #![proptest_config(cases(60))]

        #[test]
        fn many_texts_have_one_id_in_all_segments(
            segments in prop::collection::vec((any::<bool>(), 1..3 * VECTOR_ROWS), 1..4), nulls: bool,
            values in prop_oneof![Just(10_u32), Just(500), Just(1_000_000)], seed: u32, skipped in 0..50_usize,
        ) {
            let mut reader = KeyReader::new(Key::Text(0));
            let mut ids_of_texts = KeyValues::default();
            let mut expected: HashMap<Option<u32>, u32> = HashMap::new();
            let mut number = seed;
            for (dictionary, rows) in segments {
                let mut column = Column::new(LaneKind::Varlena { dictionary, packed: true });
                let texts: Vec<Option<u32>> = (0..rows).map(|row| {
                    number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (!nulls || row % 11 != 3).then_some((number >> 8) % values)
                }).collect();
                texts.iter().for_each(|text| match text {
                    Some(number) => column.push_item(&item(*number)),
                    None => column.push_null(),
                });
                let (lanes, dictionaries) = ([column.lane()], [column.dictionary().unwrap_or_default()]);
                for place in (0..rows).step_by(VECTOR_ROWS) {
                    let frame = Frame {
                        lanes: &lanes,
                        dictionaries: &dictionaries,
                        place,
                        ..Frame::of_nulls(VECTOR_ROWS.min(rows - place), &[])
                    };
                    let mut selection = Selection::first(frame.rows);
                    if skipped < frame.rows {
                        selection.remove(skipped);
                    }
                    let mut ids = [0; VECTOR_ROWS];
                    let found = reader.assign(&mut ids_of_texts, &frame, &selection).unwrap();
                    spread(&found, &selection, &mut ids);
                    selection.for_each(|row| {
                        let next = *expected.entry(texts[place + row]).or_insert(ids[row]);
                        assert_eq!(ids[row], next);
                    });
                }
            }
            let mut all: Vec<u32> = expected.into_values().collect();
            all.sort_unstable();
            prop_assert!((0..ids_of_texts.len() as u32).eq(all));
        }
    }
}
