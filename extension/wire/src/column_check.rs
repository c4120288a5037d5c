//! The rules one column keeps, checked in one pass over its vectors.

use crate::batch_view::{ColumnView, Values};
use crate::layout::{column_slot, dictionary_slot};
use crate::table::Table;
use crate::vector::{Bitmap, Codes, Items, bitmap_bytes, chunks};
use crate::{BatchError, ColumnError, ColumnType, limits};

/// The number of bytes that vectors may still use. Together they are no longer than the buffer, so
/// no vector can be shared by many columns to multiply the work and the memory of a copy.
pub(crate) struct Budget(pub(crate) usize);

impl Budget {
    fn take<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], BatchError> {
        self.0 = self
            .0
            .checked_sub(bytes.len())
            .ok_or(BatchError::SharedVectors)?;
        Ok(bytes)
    }

    /// The elements of a vector field; an absent vector is an empty one.
    fn vector<'a>(
        &mut self,
        table: &Table<'a>,
        slot: usize,
        element_bytes: usize,
    ) -> Result<&'a [u8], BatchError> {
        self.take(table.vector(slot, element_bytes)?.unwrap_or(&[]))
    }
}

/// The column of `table`, if it keeps every rule.
pub(crate) fn check_column<'a>(
    table: &Table<'a>,
    index: usize,
    rows: usize,
    budget: &mut Budget,
) -> Result<ColumnView<'a>, BatchError> {
    let name = check_name(table.vector(column_slot::NAME, 1)?, index)?;
    let inside = |error| BatchError::Column {
        name: name.to_owned(),
        error,
    };
    let code = table.u8(column_slot::TYPE)?;
    let column_type =
        ColumnType::from_code(code).ok_or_else(|| inside(ColumnError::UnknownType { code }))?;

    let (validity, null_count) = match table.vector(column_slot::VALIDITY, 1)? {
        None => (None, 0),
        Some(bits) => check_validity(budget.take(bits)?, rows).map_err(inside)?,
    };

    let values = budget.vector(table, column_slot::VALUES, 1)?;
    let values_length = |expected: usize| match values.len() == expected {
        true => Ok(()),
        false => Err(inside(ColumnError::ValuesLength {
            bytes: values.len(),
            expected,
        })),
    };
    let dictionary = table.table(column_slot::DICTIONARY)?;
    let plain = table.vector(column_slot::BYTES, 1)?;
    let is_text = column_type == ColumnType::Text;

    let values = match (column_type, dictionary) {
        (ColumnType::Text | ColumnType::Bytes, None) => {
            values_length(rows * 4)?;
            let bytes = budget.take(plain.unwrap_or(&[]))?;
            Values::Items(check_items(chunks(values), bytes, is_text).map_err(inside)?)
        }
        (ColumnType::Text | ColumnType::Bytes, Some(dictionary)) => {
            if plain.is_some() {
                return Err(inside(ColumnError::UnexpectedBytes));
            }
            let code_bytes = dictionary.u8(dictionary_slot::CODE_BYTES)?;
            if !matches!(code_bytes, 1 | 2 | 4) {
                return Err(inside(ColumnError::CodeBytes { code_bytes }));
            }
            values_length(rows * usize::from(code_bytes))?;
            let codes = match code_bytes {
                1 => Codes::U8(values),
                2 => Codes::U16(chunks(values)),
                _ => Codes::U32(chunks(values)),
            };
            let ends = chunks(budget.vector(&dictionary, dictionary_slot::ITEM_ENDS, 4)?);
            check_codes(&codes, ends.len(), rows).map_err(inside)?;
            let bytes = budget.vector(&dictionary, dictionary_slot::ITEM_BYTES, 1)?;
            let items = check_items(ends, bytes, is_text).map_err(inside)?;
            Values::Codes { codes, items }
        }
        (column_type, Some(_)) => {
            return Err(inside(ColumnError::UnexpectedDictionary { column_type }));
        }
        (_, None) if plain.is_some() => return Err(inside(ColumnError::UnexpectedBytes)),
        (column_type, None) => match column_type.width() {
            None => {
                values_length(bitmap_bytes(rows))?;
                Values::Bool(Bitmap::new(values, rows))
            }
            Some(width) => {
                values_length(rows * width)?;
                Values::Fixed {
                    width,
                    bytes: values,
                }
            }
        },
    };
    match column_type {
        ColumnType::Timestamp => check_timestamps(chunks(values.fixed_bytes()), validity.as_ref()),
        ColumnType::Date => check_dates(chunks(values.fixed_bytes()), validity.as_ref()),
        _ => Ok(()),
    }
    .map_err(inside)?;

    Ok(ColumnView {
        name,
        column_type,
        rows,
        null_count,
        validity,
        values,
    })
}

/// The rows that are not NULL, if some are, and the number of NULLs.
fn check_validity(bits: &[u8], rows: usize) -> Result<(Option<Bitmap<'_>>, usize), ColumnError> {
    let expected = bitmap_bytes(rows);
    if bits.len() != expected {
        return Err(ColumnError::ValidityLength {
            bytes: bits.len(),
            expected,
        });
    }
    let bitmap = Bitmap::new(bits, rows);
    let null_count = rows - bitmap.count_ones();
    Ok(((null_count > 0).then_some(bitmap), null_count))
}

/// Checks that a dictionary is not too large, and that each code names one of its items.
fn check_codes(codes: &Codes<'_>, items: usize, rows: usize) -> Result<(), ColumnError> {
    let items_max = limits::dictionary_items_max(rows);
    if items > items_max {
        return Err(ColumnError::TooManyItems { items, items_max });
    }
    match codes.max() {
        Some(code) if code as usize >= items => Err(ColumnError::CodePastItems { code, items }),
        _ => Ok(()),
    }
}

fn check_name(name: Option<&[u8]>, index: usize) -> Result<&str, BatchError> {
    let wrong = |problem| BatchError::ColumnName { index, problem };
    let name = name.ok_or(wrong("has no name"))?;
    if name.is_empty() {
        return Err(wrong("has an empty name"));
    }
    if name.len() > limits::NAME_BYTES_MAX {
        return Err(wrong("has a name longer than 63 bytes"));
    }
    if name.contains(&0) {
        return Err(wrong("has a NUL in its name"));
    }
    std::str::from_utf8(name).map_err(|_| wrong("has a name that is not UTF-8"))
}

fn check_items<'a>(
    ends: &'a [[u8; 4]],
    bytes: &'a [u8],
    is_text: bool,
) -> Result<Items<'a>, ColumnError> {
    let mut previous = 0;
    // One flag instead of an early return keeps the loop free of branches. The bad item is searched
    // for only if there is one.
    let mut ascending = true;
    for end in ends {
        let end = u32::from_le_bytes(*end);
        ascending &= previous <= end;
        previous = end;
    }
    if !ascending {
        let item = ends
            .windows(2)
            .position(|pair| u32::from_le_bytes(pair[1]) < u32::from_le_bytes(pair[0]))
            .map_or(0, |before| before + 1);
        return Err(ColumnError::EndsDescend { item });
    }
    if previous as usize != bytes.len() {
        return Err(ColumnError::EndsMissBytes {
            end: previous as usize,
            bytes: bytes.len(),
        });
    }
    if !is_text {
        return Ok(Items::new(ends, bytes, None));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| ColumnError::NotUtf8 {
        byte: error.valid_up_to(),
    })?;
    if bytes.contains(&0) {
        return Err(ColumnError::NulInText);
    }
    if !text.is_ascii()
        && let Some(item) = ends
            .iter()
            .position(|end| !text.is_char_boundary(u32::from_le_bytes(*end) as usize))
    {
        return Err(ColumnError::SplitCharacter { item });
    }
    Ok(Items::new(ends, bytes, Some(text)))
}

/// The first row that breaks `rule` and is not NULL. Values of NULL rows mean nothing, so they may
/// break it.
fn first_broken<const N: usize>(
    values: &[[u8; N]],
    validity: Option<&Bitmap<'_>>,
    rule: impl Fn(&[u8; N]) -> bool,
) -> Option<usize> {
    let mut all = true;
    for value in values {
        all &= rule(value);
    }
    if all {
        return None;
    }
    values
        .iter()
        .enumerate()
        .position(|(row, value)| !rule(value) && validity.is_none_or(|bits| bits.get(row)))
}

fn check_timestamps(values: &[[u8; 8]], validity: Option<&Bitmap<'_>>) -> Result<(), ColumnError> {
    let rule = |value: &[u8; 8]| limits::is_storable_timestamp(i64::from_le_bytes(*value));
    match first_broken(values, validity, rule) {
        None => Ok(()),
        Some(row) => Err(ColumnError::TimestampRange { row }),
    }
}

fn check_dates(values: &[[u8; 4]], validity: Option<&Bitmap<'_>>) -> Result<(), ColumnError> {
    let rule = |value: &[u8; 4]| limits::is_storable_date(i32::from_le_bytes(*value));
    match first_broken(values, validity, rule) {
        None => Ok(()),
        Some(row) => Err(ColumnError::DateRange { row }),
    }
}
