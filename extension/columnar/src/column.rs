//! A column of one run in private memory. It is built from rows or from a batch, or decoded from an
//! image.
//!
//! A column of items that may repeat starts with a dictionary. Once it has 4,096 distinct items,
//! each of them must stand for two rows on average; otherwise the column replaces its codes by
//! offsets into the same heap. This costs one pass over the rows and moves no item. A column that
//! is cleared starts with a dictionary again.

use crate::bits::{self, Bitmap};
use crate::body::Body;
use crate::error::{Error, Result};
use crate::kind::{LaneKind, PACKED_ITEM_BYTES_MAX};
use crate::lane::{DictionaryView, Lane, LaneData};
use crate::limits::ITEM_BYTES_MAX;

mod codes;
mod gather;
mod value_bytes;

/// A column of one run.
///
/// Invariants: `validity` is empty until the first NULL is appended, and has a bit for each row
/// afterwards; the body has an entry for each row.
pub struct Column {
    kind: LaneKind,
    rows: usize,
    null_count: usize,
    validity: Bitmap,
    body: Body,
}

impl Column {
    /// An empty column.
    ///
    /// # Panics
    /// If the kind is not [valid](LaneKind::is_valid).
    pub fn new(kind: LaneKind) -> Self {
        assert!(kind.is_valid(), "invalid lane kind {kind:?}");
        Column {
            kind,
            rows: 0,
            null_count: 0,
            validity: Bitmap::new(),
            body: Body::new(kind),
        }
    }

    /// Makes room for more rows at once, but not for the bytes of items.
    pub fn reserve(&mut self, rows: usize) {
        self.body.reserve(rows);
    }

    /// The kind that the column was made with.
    #[inline]
    pub fn kind(&self) -> LaneKind {
        self.kind
    }

    /// Rows held.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of rows that are NULL.
    #[inline]
    pub fn null_count(&self) -> usize {
        self.null_count
    }

    /// Distinct items if the column is coded at present.
    #[inline]
    pub fn dictionary_items(&self) -> Option<usize> {
        match &self.body {
            Body::Coded { dictionary, .. } => Some(dictionary.items().len()),
            _ => None,
        }
    }

    /// The dictionary if the column is coded at present. While that has no item, the lane has no
    /// codes either: every row is NULL.
    #[inline]
    pub fn dictionary(&self) -> Option<DictionaryView> {
        match &self.body {
            Body::Coded { dictionary, .. } => Some(DictionaryView {
                instance: dictionary.instance(),
                parent: 0,
                inherited: 0,
                items: dictionary.items().len() as u32,
            }),
            _ => None,
        }
    }

    /// Bytes of memory in use, for bounds; capacity kept for later is not counted.
    pub fn byte_len(&self) -> usize {
        self.validity.byte_len() + self.body.byte_len()
    }

    /// Drops all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.null_count = 0;
        self.validity.clear();
        let has_fallen_back = matches!(
            (self.kind, &self.body),
            (
                LaneKind::Varlena {
                    dictionary: true,
                    ..
                },
                Body::Plain(_)
            )
        );
        if has_fallen_back {
            self.body = Body::new(self.kind);
        } else {
            self.body.clear();
        }
    }

    /// Removes the rows from `rows` on. Items that no other row uses stay in the dictionary.
    pub fn truncate(&mut self, rows: usize) {
        if rows >= self.rows {
            return;
        }
        if rows == 0 {
            return self.clear();
        }
        self.rows = rows;
        self.body.truncate(rows);
        self.validity.truncate(rows);
        self.null_count = match (&self.body, self.validity.words()) {
            (Body::Absent, _) => rows,
            (_, []) => 0,
            (_, words) => rows - bits::count_ones(words, 0, rows),
        };
    }

    /// Appends a NULL.
    #[inline]
    pub fn push_null(&mut self) {
        self.append_nulls(1);
    }

    /// Appends a bool.
    ///
    /// # Panics
    /// If the kind is not [`LaneKind::Bool`].
    #[inline]
    pub fn push_bool(&mut self, value: bool) {
        let Body::Bool(bitmap) = &mut self.body else {
            refuse(self.kind, "bools")
        };
        bitmap.push(value);
        self.append_valid(1);
    }

    /// Appends a value of fixed width.
    ///
    /// # Panics
    /// If the kind is not [`LaneKind::Fixed`] of as many bytes.
    #[inline]
    pub fn push_fixed(&mut self, value: &[u8]) {
        let Body::Fixed {
            width,
            stride,
            values,
        } = &mut self.body
        else {
            refuse(self.kind, "values of fixed width")
        };
        assert_eq!(value.len(), *width, "bytes of a value of fixed width");
        values.extend_from_slice(value);
        values.extend_zeros(*stride - *width);
        self.append_valid(1);
    }

    /// Appends an item.
    ///
    /// # Panics
    /// If the kind is not [`LaneKind::Varlena`], or the item exceeds [`ITEM_BYTES_MAX`].
    #[inline]
    pub fn push_item(&mut self, item: &[u8]) {
        assert!(item.len() <= ITEM_BYTES_MAX, "item too long");
        match &mut self.body {
            Body::Plain(items) => {
                items.push(item);
                self.append_valid(1);
            }
            Body::Coded { codes, dictionary } => {
                let items_before = dictionary.items().len();
                codes.push(dictionary.intern(item));
                let grown = dictionary.items().len() > items_before;
                self.append_valid(1);
                if grown {
                    self.judge_dictionary();
                }
            }
            _ => refuse(self.kind, "items"),
        }
    }

    /// Appends items that follow each other in `bytes`, with these lengths. Those of NULLs have no bytes. False, with
    /// nothing appended, if the column has a dictionary or an item needs an alignment.
    pub(crate) fn extend_short_items(
        &mut self,
        lengths: &[u64],
        bytes: &[u8],
        validity: Option<&[u64]>,
    ) -> bool {
        let longest = lengths
            .iter()
            .fold(0, |longest, length| longest.max(*length));
        match &mut self.body {
            Body::Plain(items) if items.is_packed() && longest <= PACKED_ITEM_BYTES_MAX as u64 => {
                items.extend_short(lengths, bytes);
            }
            _ => return false,
        }
        self.append_validity(validity, lengths.len());
        true
    }

    /// Appends a value `rows` times. The value is the bytes of a fixed-width value or an item, or
    /// one byte 0 or 1 for a bool; `None` is NULL. A column of kind [`LaneKind::Absent`] takes
    /// every value as NULL. An item is stored once.
    ///
    /// # Panics
    /// If the value does not fit the kind.
    pub fn push_repeated(&mut self, value: Option<&[u8]>, rows: usize) {
        if let Err(error) = self.try_push_repeated(value, rows) {
            panic!("{error}");
        }
    }

    /// Appends a value `rows` times like [`push_repeated`](Self::push_repeated), but returns an
    /// error where that panics.
    pub(crate) fn try_push_repeated(&mut self, value: Option<&[u8]>, rows: usize) -> Result<()> {
        match value {
            Some(value) => self.extend_constant(value, None, rows),
            None => {
                self.append_nulls(rows);
                Ok(())
            }
        }
    }

    /// Appends `rows` rows that are either `value` or NULL. The column is unchanged by an error.
    pub(crate) fn extend_constant(
        &mut self,
        value: &[u8],
        validity: Option<&[u64]>,
        rows: usize,
    ) -> Result<()> {
        check_value(self.kind, value)?;
        assert_validity(validity, rows);
        if rows > 0 {
            self.body.push_repeated(value, rows);
            self.append_validity(validity, rows);
            self.judge_dictionary();
        }
        Ok(())
    }

    /// Appends `rows` values of fixed width, which are adjacent without padding. The value of a
    /// NULL row is arbitrary. Bits of `validity` past `rows` are ignored.
    ///
    /// # Panics
    /// If the kind is not [`LaneKind::Fixed`], or there are not `rows` values or bits.
    pub fn extend_fixed(&mut self, values: &[u8], validity: Option<&[u64]>, rows: usize) {
        assert_validity(validity, rows);
        let Body::Fixed {
            width,
            stride,
            values: own,
        } = &mut self.body
        else {
            refuse(self.kind, "values of fixed width")
        };
        assert_eq!(
            Some(values.len()),
            rows.checked_mul(*width),
            "bytes of {rows} values"
        );
        if stride == width {
            own.extend_from_slice(values);
        } else {
            own.reserve(rows * *stride);
            for value in values.chunks_exact(*width) {
                own.extend_from_slice(value);
                own.extend_zeros(*stride - *width);
            }
        }
        self.append_validity(validity, rows);
    }

    /// Appends `rows` values of fixed width that `fill` writes over zeros, directly into the
    /// column's memory. An error leaves the column unchanged.
    ///
    /// # Errors
    /// The error of `fill`.
    ///
    /// # Panics
    /// If the kind is not [`LaneKind::Fixed`] without padding, or there are not `rows` bits.
    pub fn extend_fixed_with<E>(
        &mut self,
        validity: Option<&[u64]>,
        rows: usize,
        fill: impl FnOnce(&mut [u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        assert_validity(validity, rows);
        let Body::Fixed {
            width,
            stride,
            values,
        } = &mut self.body
        else {
            refuse(self.kind, "values of fixed width")
        };
        assert_eq!(width, stride, "values without padding");
        let before = values.len();
        values.extend_zeros(rows * *width);
        if let Err(error) = fill(&mut values[before..]) {
            values.truncate(before);
            return Err(error);
        }
        self.append_validity(validity, rows);
        Ok(())
    }

    /// Appends `rows` bools, one bit each. Bits past `rows` are ignored.
    ///
    /// # Panics
    /// If the kind is not [`LaneKind::Bool`], or there are not `rows` bits.
    pub fn extend_bools(&mut self, values: &[u64], validity: Option<&[u64]>, rows: usize) {
        assert_validity(validity, rows);
        assert!(values.len() >= bits::words(rows), "too few bits");
        let Body::Bool(bitmap) = &mut self.body else {
            refuse(self.kind, "bools")
        };
        bitmap.extend_from(values, rows);
        self.append_validity(validity, rows);
    }

    /// The column as a lane of [`rows`](Self::rows) rows, good while the column is neither changed
    /// nor dropped.
    pub fn lane(&self) -> Lane {
        let validity = if self.null_count == 0 {
            std::ptr::null()
        } else {
            self.validity.pointer()
        };
        match self.body.data() {
            LaneData::Null => Lane::NULL,
            data => Lane::new(data, validity),
        }
    }

    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// The validity bitmap, if there are NULLs and the kind has one.
    #[inline]
    pub(crate) fn validity(&self) -> Option<&[u64]> {
        match self.validity.words() {
            [] => None,
            _ if self.null_count == 0 => None,
            words => Some(words),
        }
    }

    /// Counts rows whose values were just appended, none of them NULL.
    #[inline]
    fn append_valid(&mut self, rows: usize) {
        if matches!(self.body, Body::Absent) {
            self.null_count += rows;
        } else if !self.validity.words().is_empty() {
            self.validity.extend_repeated(true, rows);
        }
        self.rows += rows;
    }

    fn append_nulls(&mut self, rows: usize) {
        self.body.push_nothing(rows);
        if rows > 0 && !matches!(self.body, Body::Absent) {
            self.materialise_validity();
            self.validity.extend_repeated(false, rows);
        }
        self.null_count += rows;
        self.rows += rows;
    }

    /// Counts rows whose values were just appended. The bitmap is long enough.
    fn append_validity(&mut self, validity: Option<&[u64]>, rows: usize) {
        let valid = validity.map_or(rows, |validity| bits::count_ones(validity, 0, rows));
        match validity {
            Some(validity) if valid < rows => {
                self.materialise_validity();
                self.validity.extend_from(validity, rows);
                self.null_count += rows - valid;
                self.rows += rows;
            }
            _ => self.append_valid(rows),
        }
    }

    /// Creates the bitmap of the existing rows, all of them valid, unless it exists.
    fn materialise_validity(&mut self) {
        if self.validity.words().is_empty() {
            self.validity.extend_repeated(true, self.rows);
        }
    }

    /// Falls back to plain items if the dictionary does not pay. All rows are counted.
    fn judge_dictionary(&mut self) {
        let valid = self.rows - self.null_count;
        match &self.body {
            Body::Coded { dictionary, .. } if !dictionary.pays(valid) => {}
            _ => return,
        }
        if let Body::Coded { codes, dictionary } = std::mem::replace(&mut self.body, Body::Absent) {
            let validity = self.validity();
            let entries = codes.iter().enumerate().map(|(row, &code)| {
                let valid = validity.is_none_or(|validity| bits::get(validity, row));
                valid.then_some(code as usize)
            });
            self.body = Body::Plain(dictionary.into_items().select(entries));
        }
    }
}

#[cfg(test)]
mod tests;

#[cold]
fn refuse(kind: LaneKind, found: &'static str) -> ! {
    panic!("{}", Error::KindDiffers { kind, found })
}

fn assert_validity(validity: Option<&[u64]>, rows: usize) {
    assert!(
        validity.is_none_or(|validity| validity.len() >= bits::words(rows)),
        "a validity bitmap is too short for {rows} rows"
    );
}

fn check_item(item: &[u8]) -> Result<()> {
    if item.len() > ITEM_BYTES_MAX {
        return Err(Error::ItemTooLong { bytes: item.len() });
    }
    Ok(())
}

/// Whether `value` is a value of `kind`.
fn check_value(kind: LaneKind, value: &[u8]) -> Result<()> {
    let width = match kind {
        LaneKind::Absent => return Ok(()),
        LaneKind::Varlena { .. } => return check_item(value),
        LaneKind::Bool => 1,
        LaneKind::Fixed { width, .. } => usize::from(width),
    };
    if value.len() != width {
        return Err(Error::WidthDiffers {
            width,
            bytes: value.len(),
        });
    }
    Ok(())
}
