//! The rows as a nested aggregation reads them: texts are keys, all other columns and the functions are results.

use std::collections::HashMap;
use std::ops::Range;

use lanes_columnar::aggregate::Numbers;
use lanes_columnar::interrupt::Steps;
use lanes_columnar::over::NO_ROW;
use lanes_columnar::vector::number::Scalar;
use pgrx::pg_sys::Datum;

use super::results::{Moved, NumberedText, PartitionedRows};
use crate::expressions::translate::to_scalar;
use crate::nodes::nested_aggregate::finished::Finished;
use crate::pg::datum;
use crate::pg::exec::memory::ValueLayout;

/// Texts begin with their length.
const TEXT: ValueLayout = ValueLayout {
    by_value: false,
    length: -1,
};

impl Finished for PartitionedRows {
    fn count(&self) -> usize {
        PartitionedRows::count(self)
    }

    fn key_numbers(&self, key: usize, rows: Range<usize>, out: &mut [u32]) {
        out.copy_from_slice(&self.texts[key].numbers[rows]);
    }

    fn key_datums(&mut self, key: usize) -> Vec<Option<Datum>> {
        if let Some(text) = self.texts.get(key)
            && text.numbers.len() == PartitionedRows::count(self)
        {
            return text.values.clone();
        }
        if let Some(text) = self.by_code(key) {
            let values = text.values.clone();
            self.texts[key] = text;
            return values;
        }
        let mut known: HashMap<Option<&[u8]>, u32> = HashMap::new();
        let (mut datums, mut numbers) = (Vec::new(), Vec::with_capacity(self.count()));
        let steps = Steps::default();
        for position in 0..PartitionedRows::count(self) {
            steps.step();
            let value = self.entry(position, key);
            let bytes = value.and_then(|value| TEXT.bytes(value));
            let bytes = bytes.map(datum::payload_of_item);
            let number = *known.entry(bytes).or_insert_with(|| {
                datums.push(value);
                datums.len() as u32 - 1
            });
            numbers.push(number);
        }
        self.texts[key] = NumberedText {
            numbers,
            values: datums.clone(),
        };
        datums
    }

    fn numbers(&self, result: usize, rows: Range<usize>, out: &mut Numbers<'_>) -> bool {
        let entry = self.texts.len() + result;
        if let Some(numbers) = self.stored_numbers(entry) {
            numbers.copy(rows, out.values, out.validity);
            return true;
        }
        if let Some((words, moved)) = self.stored_words(entry) {
            copy_words(words, moved, rows, out);
            return true;
        }
        for (place, position) in rows.enumerate() {
            if let Some(value) = self.entry(position, entry) {
                out.values[place] = value.value() as u64;
                out.validity[place / 64] |= 1 << (place % 64);
            }
        }
        true
    }

    fn has_more(&self) -> bool {
        PartitionedRows::has_more(self)
    }

    fn replace(&mut self) -> bool {
        PartitionedRows::replace(self)
    }

    fn result(&self, row: usize, result: usize) -> Option<Scalar> {
        let entry = self.texts.len() + result;
        let datum = self.entry(row, entry)?;
        Some(match self.entry_number(entry) {
            Some(number) => to_scalar(number, datum),
            // `Outputs::check` admits no other type without a number.
            None => Scalar(datum.value() as u64 & 1),
        })
    }
}

/// Writes the words of some rows, or of those that they are moved to.
fn copy_words(
    words: &[[u8; 8]],
    moved: Option<Moved<'_>>,
    rows: Range<usize>,
    out: &mut Numbers<'_>,
) {
    let Some((positions, default)) = moved else {
        for (place, word) in words[rows].iter().enumerate() {
            out.values[place] = u64::from_ne_bytes(*word);
            out.validity[place / 64] |= 1 << (place % 64);
        }
        return;
    };
    for (place, position) in positions[rows].iter().enumerate() {
        let value = match *position {
            NO_ROW => default.map(|default| default.value() as u64),
            position => Some(u64::from_ne_bytes(words[position as usize])),
        };
        out.values[place] = value.unwrap_or(0);
        out.validity[place / 64] |= u64::from(value.is_some()) << (place % 64);
    }
}

impl PartitionedRows {
    /// The values of a text column that has a dictionary.
    fn by_code(&self, key: usize) -> Option<NumberedText> {
        /// A code that no row has had yet.
        const NEW: u32 = u32::MAX;
        let (codes, count) = self.codes(key)?;
        // The last number is that of NULL.
        let mut numbers_of = vec![NEW; count + 1];
        let mut text = NumberedText::default();
        let steps = Steps::default();
        for (position, code) in codes.iter().enumerate() {
            steps.step();
            let code = match self.is_null(position, key) {
                true => count,
                false => *code as usize,
            };
            let number = &mut numbers_of[code];
            if *number == NEW {
                *number = text.values.len() as u32;
                text.values.push(self.entry(position, key));
            }
            text.numbers.push(*number);
        }
        Some(text)
    }
}
