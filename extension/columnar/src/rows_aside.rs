//! Rows that are put aside, in temporary files or elsewhere, and come back as vectors of their own.
//!
//! ```text
//! frame, row ──► RowsOut: a column for each attribute ──► image ──► RowsBack ──► frame
//! ```
//! An image has at most a vector of rows. It is an image of open rows, as tables have them.

use crate::column::Column;
use crate::error::Result;
use crate::image::{self, Image};
use crate::kind::LaneKind;
use crate::lane::{Lane, LaneData};
use crate::limits::VECTOR_ROWS;
use crate::vector::frame::Frame;
use crate::vector::number::Scalar;
use crate::vector::selection::Selection;
use crate::vector::text::{CodeMemo, item_bytes};

/// An attribute that is put aside, with its kind.
pub type Aside = (usize, LaneKind);

/// Rows on their way out.
pub struct RowsOut {
    attributes: Vec<usize>,
    columns: Vec<Column>,
    rows: usize,
}

/// The column of an attribute. A dictionary of few rows does not pay.
fn column((_, kind): &Aside) -> Column {
    Column::new(match *kind {
        LaneKind::Varlena { packed, .. } => LaneKind::Varlena {
            dictionary: false,
            packed,
        },
        other => other,
    })
}

impl RowsOut {
    /// No row yet.
    pub fn new(attributes: &[Aside]) -> RowsOut {
        RowsOut {
            attributes: attributes.iter().map(|(attribute, _)| *attribute).collect(),
            columns: attributes.iter().map(column).collect(),
            rows: 0,
        }
    }

    /// Adds a row of a vector, whose lanes are of the attributes' kinds.
    ///
    /// # Panics
    /// If there is a vector of rows already.
    pub fn push(&mut self, frame: &Frame<'_>, row: usize) {
        assert!(self.rows < VECTOR_ROWS && row < frame.rows);
        let place = frame.place + row;
        for (attribute, column) in self.attributes.iter().zip(&mut self.columns) {
            let lane = frame.lane(*attribute);
            // SAFETY: the row is one of the vector, which the lane covers.
            unsafe { push(column, lane, place) };
        }
        self.rows += 1;
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(Column::byte_len).sum()
    }

    /// Appends the image of all rows to `image`, and drops them.
    ///
    /// # Errors
    /// There is too much for one image.
    pub fn take(&mut self, image: &mut Vec<u8>) -> Result<()> {
        image::encode(&self.columns, self.rows, image)?;
        self.columns.iter_mut().for_each(Column::clear);
        self.rows = 0;
        Ok(())
    }
}

/// Appends the value at a place of a lane.
///
/// # Safety
/// The lane covers the place.
unsafe fn push(column: &mut Column, lane: Lane, place: usize) {
    // SAFETY: this function's contract.
    unsafe {
        if lane.is_null(place) {
            return column.push_null();
        }
        match (lane.data, column.kind()) {
            (LaneData::Bool(_), _) => column.push_bool(lane.bool(place)),
            (LaneData::Fixed { .. }, LaneKind::Fixed { width, .. }) => {
                let value = std::slice::from_raw_parts(lane.pointer(place), usize::from(width));
                column.push_fixed(value);
            }
            (LaneData::Offsets { .. } | LaneData::Codes { .. }, _) => {
                column.push_item(item_bytes(lane.pointer(place)));
            }
            _ => column.push_null(),
        }
    }
}

/// Rows that are back.
pub struct RowsBack {
    attributes: Vec<usize>,
    columns: Vec<Column>,
    /// By attribute.
    lanes: Vec<Lane>,
    rows: usize,
}

impl RowsBack {
    /// No row yet.
    pub fn new(attributes: &[Aside]) -> RowsBack {
        let width = attributes.iter().map(|(attribute, _)| attribute + 1).max();
        RowsBack {
            attributes: attributes.iter().map(|(attribute, _)| *attribute).collect(),
            columns: attributes.iter().map(column).collect(),
            lanes: vec![Lane::NULL; width.unwrap_or(0)],
            rows: 0,
        }
    }

    /// Replaces the rows by those of an image.
    ///
    /// # Errors
    /// The bytes are not what [`RowsOut::take`] wrote for these attributes.
    pub fn read(&mut self, bytes: &[u8]) -> Result<()> {
        let image = Image::parse(bytes)?;
        for (index, column) in self.columns.iter_mut().enumerate() {
            column.clear();
            image.decode(index, column.kind(), None, column)?;
            self.lanes[self.attributes[index]] = column.lane();
        }
        self.rows = image.rows().min(VECTOR_ROWS);
        Ok(())
    }

    /// How many rows there are: at most a vector of them.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The rows as a vector.
    pub fn frame<'a>(&'a self, scalars: &'a [Option<Scalar>]) -> Frame<'a> {
        Frame {
            lanes: &self.lanes,
            ..Frame::of_nulls(self.rows, scalars)
        }
    }
}

/// Bytes of an item column that offsets can address, with room for one more item.
const ITEM_COLUMN_BYTES_MAX: usize = 1 << 30;

/// Rows that stay in memory, as many as fit.
pub struct RowsKept {
    attributes: Vec<usize>,
    columns: Vec<Column>,
    /// The codes that items of the vectors' dictionaries have in the columns.
    codes: Vec<CodeMemo<u32>>,
}

impl RowsKept {
    /// No row yet.
    pub fn new(attributes: &[Aside]) -> RowsKept {
        RowsKept {
            attributes: attributes.iter().map(|(attribute, _)| *attribute).collect(),
            columns: attributes
                .iter()
                .map(|(_, kind)| Column::new(*kind))
                .collect(),
            codes: attributes.iter().map(|_| CodeMemo::default()).collect(),
        }
    }

    /// Adds the selected rows of a vector, whose lanes are of the attributes' kinds. False if they
    /// are too large: some rows are then missing.
    pub fn push(&mut self, frame: &Frame<'_>, selection: &Selection) -> bool {
        let is_whole = selection.is_full(frame.rows);
        let columns = self.columns.iter_mut().zip(&mut self.codes);
        for (attribute, (column, codes)) in self.attributes.iter().zip(columns) {
            let lane = frame.lane(*attribute);
            match push_codes(column, codes, (frame, *attribute), selection) {
                Coded::Pushed => continue,
                Coded::TooLarge => return false,
                Coded::No => {}
            }
            if is_whole && lane.validity.is_null() && extend_whole(column, lane, frame) {
                continue;
            }
            let has_items = matches!(column.kind(), LaneKind::Varlena { .. });
            let pushed = selection.try_for_each(|row| {
                // SAFETY: the row is one of the vector, which the lane covers.
                unsafe { push(column, lane, frame.place + row) };
                match has_items && column.byte_len() > ITEM_COLUMN_BYTES_MAX {
                    true => Err(()),
                    false => Ok(()),
                }
            });
            if pushed.is_err() {
                return false;
            }
        }
        true
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(Column::byte_len).sum()
    }

    /// The named rows in this order.
    pub fn gather(self, rows: &[u32]) -> RowsKept {
        let columns = self.columns.into_iter();
        RowsKept {
            columns: columns.map(|column| column.gather(rows)).collect(),
            attributes: self.attributes,
            codes: self.codes,
        }
    }

    /// The code of each row's item in a column, and how many codes there are, if the column has a dictionary.
    pub fn codes(&self, column: usize) -> Option<(&[u32], usize)> {
        self.columns.get(column)?.codes()
    }

    /// The values of a column of 8 bytes without padding, if none is NULL.
    pub fn words(&self, column: usize) -> Option<&[[u8; 8]]> {
        self.columns.get(column)?.words()
    }

    /// Whether a row is NULL in a column.
    pub fn is_null(&self, column: usize, row: usize) -> bool {
        !self.columns[column].is_valid(row)
    }

    /// The rows as lanes, one for each attribute. They are valid while no row is added.
    pub fn lanes(&self) -> impl Iterator<Item = Lane> + '_ {
        self.columns.iter().map(Column::lane)
    }
}

/// What became of a vector of codes.
enum Coded {
    Pushed,
    /// The items are too large for a column.
    TooLarge,
    /// The vector has no codes, or the column has no dictionary.
    No,
}

/// Adds the selected rows of a vector of codes to a column that has a dictionary.
fn push_codes(
    column: &mut Column,
    known: &mut CodeMemo<u32>,
    (frame, attribute): (&Frame<'_>, usize),
    selection: &Selection,
) -> Coded {
    let lane = frame.lane(attribute);
    let LaneData::Codes { codes, slots, heap } = lane.data else {
        return Coded::No;
    };
    let Some(dictionary) = frame.dictionaries.get(attribute) else {
        return Coded::No;
    };
    if column.codes().is_none() {
        return Coded::No;
    }
    known.enter(dictionary);
    let pushed = selection.try_for_each(|row| {
        let place = frame.place + row;
        // SAFETY: the row is one of the vector, which the lane covers; the codes of rows that are not NULL have an
        // item.
        let (code, item) = unsafe {
            if lane.is_null(place) {
                column.push_null();
                return Ok(());
            }
            let code = *codes.add(place);
            (
                code,
                item_bytes(heap.add(*slots.add(code as usize) as usize)),
            )
        };
        if let Some(own) = known.known(code)
            && column.push_code(own)
        {
            return Ok(());
        }
        column.push_item(item);
        if let Some(own) = column.last_code() {
            known.get(code, || own);
        }
        match column.byte_len() > ITEM_COLUMN_BYTES_MAX {
            true => Err(()),
            false => Ok(()),
        }
    });
    match pushed {
        Ok(()) => Coded::Pushed,
        Err(()) => Coded::TooLarge,
    }
}

/// Adds all rows of a vector of values of fixed width at once, if they lie side by side.
fn extend_whole(column: &mut Column, lane: Lane, frame: &Frame<'_>) -> bool {
    let (LaneData::Fixed { .. }, LaneKind::Fixed { width, stride, .. }) =
        (lane.data, column.kind())
    else {
        return false;
    };
    if width != stride || frame.rows == 0 {
        return false;
    }
    // SAFETY: the lane covers the vector's rows, whose values lie side by side.
    let values = unsafe {
        let bytes = frame.rows * usize::from(width);
        std::slice::from_raw_parts(lane.pointer(frame.place), bytes)
    };
    column.extend_fixed(values, None, frame.rows);
    true
}
