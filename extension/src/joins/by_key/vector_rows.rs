//! Rows of a small side that are read from vectors, a column at a time.
//!
//! ```text
//! vector + selection ── keys: lanes, codes of shared rows ──► EqualJoin
//!                    └── outputs: lanes of numbers ──► NumberColumn; places of shared rows
//! ```
//! This works if each key is a lane or a column of shared rows that has codes, and each output
//! is a number or a column of shared rows. The rows of other small sides are read one by one.

use lanes_columnar::aggregate::Key;
use lanes_columnar::join::joined_column::JoinedColumn;
use lanes_columnar::join::series::SeriesColumn;
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::value::{Operand, Value};
use pgrx::pg_sys;

use super::shared_rows::SharedRows;
use super::small_column::Column;
use super::vector_child::ColumnSource;
use crate::expressions::translate::to_datum;

/// Marks a place whose code has not been looked up.
const UNASKED: u64 = u64::MAX;
/// Marks the place of a row whose key is NULL.
const NO_CODE: u64 = UNASKED - 1;

/// The keys of a small side as they are read from its vectors.
pub struct VectorKeys {
    /// The attributes that are keys. Rows that are NULL in one of them are dropped.
    attributes: Vec<usize>,
    codes: Vec<PlaceCodes>,
    operands: Vec<Operand>,
}

/// The codes of a column of shared rows.
struct PlaceCodes {
    key: usize,
    of: usize,
    column: usize,
    by_place: SeriesColumn,
    joined: JoinedColumn,
}

impl VectorKeys {
    /// The keys with these sources and types, for reading and for the engine; `None` if one has
    /// to be read row by row. `left` are the number types of the left keys.
    pub fn of(
        sources: &[ColumnSource],
        columns: &[Column],
        has_codes: impl Fn(usize) -> bool,
        left: impl Fn(usize) -> Option<NumberType>,
    ) -> Option<(VectorKeys, Vec<Key>)> {
        let (mut attributes, mut codes, mut keys) =
            (Vec::new(), Vec::<PlaceCodes>::new(), Vec::new());
        for (key, (source, column)) in sources.iter().zip(columns).enumerate() {
            match *source {
                ColumnSource::Attribute(attribute) if !has_codes(key) => {
                    attributes.push(attribute);
                    keys.push(lane_key(attribute, column, left(key))?);
                }
                ColumnSource::Shared { of, column } if has_codes(key) => {
                    keys.push(Key::Number(Value::Joined(NumberType::I64, codes.len())));
                    codes.push(PlaceCodes {
                        key,
                        of,
                        column,
                        by_place: SeriesColumn::new(NumberType::I64),
                        joined: JoinedColumn::new(NumberType::I64),
                    });
                }
                _ => return None,
            }
        }
        let operands = codes.iter().map(|codes| codes.joined.operand()).collect();
        let vector_keys = VectorKeys {
            attributes,
            codes,
            operands,
        };
        Some((vector_keys, keys))
    }

    /// Drops the codes of the previous batch.
    pub fn begin(&mut self) {
        for codes in &mut self.codes {
            codes.by_place.values.clear();
        }
    }

    /// Prepares the keys of the selected rows of a vector, and deselects the rows with a NULL
    /// key. `code` returns the code of a key value; `None` for NULL.
    pub fn ready(
        &mut self,
        frame: &Frame<'_>,
        shared: &[SharedRows],
        selection: &mut Selection,
        mut code: impl FnMut(usize, Option<pg_sys::Datum>) -> Option<u32>,
    ) {
        for attribute in &self.attributes {
            *selection = frame.present(*attribute, selection);
        }
        for codes in &mut self.codes {
            let rows = &shared[codes.of];
            let by_place = &mut codes.by_place.values;
            let places = rows.places();
            let all = *selection;
            let mut last = (u32::MAX, NO_CODE);
            all.for_each(|row| {
                let place = places[row];
                if place != last.0 {
                    let index = place as usize;
                    if index >= by_place.len() {
                        by_place.resize(index + 1, UNASKED);
                    }
                    if by_place[index] == UNASKED {
                        let code = code(codes.key, rows.value(codes.column, place));
                        by_place[index] = code.map_or(NO_CODE, u64::from);
                    }
                    last = (place, by_place[index]);
                }
                if last.1 == NO_CODE {
                    selection.remove(row);
                }
            });
            codes.joined.gather(&codes.by_place, places, selection);
        }
    }

    /// The operands for the frame.
    pub fn operands(&self) -> &[Operand] {
        &self.operands
    }
}

/// The engine's key for an attribute that is compared with left keys of this number type.
fn lane_key(attribute: usize, column: &Column, left: Option<NumberType>) -> Option<Key> {
    Some(match (column.number, left) {
        (Some(number), Some(left)) => {
            let value = Value::Column(number, attribute);
            match (number.is_float(), left.is_float()) {
                (false, false) => Key::Number(value),
                (true, true) if number == left => Key::Number(value),
                (true, true) if left == NumberType::F64 => {
                    Key::Number(Value::convert(NumberType::F64, value))
                }
                _ => return None,
            }
        }
        (None, None) if column.is_uuid => Key::Bytes16(attribute),
        (None, None) => Key::Text(attribute),
        _ => return None,
    })
}

/// The numbers of an output, one for each row, followed by a NULL.
pub struct NumberColumn {
    /// The attribute that holds the numbers.
    value: Value,
    column: SeriesColumn,
}

impl NumberColumn {
    /// An empty column for the numbers of an attribute.
    pub fn new(attribute: usize, number: NumberType) -> NumberColumn {
        NumberColumn {
            value: Value::Column(number, attribute),
            column: SeriesColumn::new(number),
        }
    }

    /// Drops all rows.
    pub fn begin(&mut self) {
        self.column.values.clear();
        self.column.valid = None;
    }

    /// Adds the selected rows of a vector.
    ///
    /// # Errors
    /// Reading a column never fails.
    pub fn push(&mut self, frame: &Frame<'_>, selection: &Selection) -> Evaluation<()> {
        let operand = self.value.evaluate(frame, selection)?;
        self.column.push(operand, selection, frame.rows);
        Ok(())
    }

    /// Adds the NULL at the end.
    pub fn finish(&mut self) {
        self.column.push(Operand::Null, &Selection::first(1), 1);
    }

    /// The number in a row; NULL past the last row.
    pub fn value(&self, row: u32) -> Option<pg_sys::Datum> {
        let SeriesColumn {
            number,
            values,
            valid,
            ..
        } = &self.column;
        let bits = *values.get(row as usize)?;
        let is_valid = valid.as_ref().is_none_or(|valid| valid[row as usize]);
        is_valid.then(|| to_datum(*number, Scalar(bits)))
    }

    /// All rows, in the engine's form.
    pub fn numbers(&self) -> &SeriesColumn {
        &self.column
    }
}
