//! A whole verified batch.

use crate::column_check::{Budget, check_column};
use crate::layout::{IDENTIFIER, batch_slot};
use crate::table::{Table, bytes_at, follow};
use crate::vector::{Bitmap, Codes, Items, chunks};
use crate::{BatchError, ColumnType, limits};

/// A batch whose every byte that later code will read has been checked; see the crate's invariants.
#[derive(Clone, Debug)]
pub struct BatchView<'a> {
    rows: usize,
    columns: Vec<ColumnView<'a>>,
}

impl<'a> BatchView<'a> {
    /// Checks `bytes`, at any alignment, in one pass. Bytes that no field reaches are ignored.
    pub fn verify(bytes: &'a [u8]) -> Result<Self, BatchError> {
        if bytes.len() > limits::BATCH_BYTES_MAX {
            return Err(BatchError::TooLong { bytes: bytes.len() });
        }
        if bytes.get(4..8) != Some(&IDENTIFIER[..]) {
            return Err(BatchError::NotABatch);
        }
        let batch = Table::at(bytes, follow(bytes, 0)?)?;
        let features = batch.u32(batch_slot::FEATURES_REQUIRED)?;
        if features != 0 {
            return Err(BatchError::UnknownFeatures { bits: features });
        }
        let rows = batch.u32(batch_slot::ROWS)? as usize;
        if rows > limits::ROWS_MAX {
            return Err(BatchError::TooManyRows { rows });
        }
        let Some(references) = batch.reference(batch_slot::COLUMNS)? else {
            return match rows {
                0 => Ok(BatchView {
                    rows,
                    columns: Vec::new(),
                }),
                _ => Err(BatchError::NoColumns { rows }),
            };
        };
        let count = crate::table::u32_at(bytes, references)? as usize;
        if count > limits::COLUMNS_MAX {
            return Err(BatchError::TooManyColumns { columns: count });
        }
        if count == 0 && rows > 0 {
            return Err(BatchError::NoColumns { rows });
        }
        bytes_at(bytes, references + 4, count * 4)?;

        let mut budget = Budget(bytes.len());
        let mut columns = Vec::with_capacity(count);
        for index in 0..count {
            let table = Table::at(bytes, follow(bytes, references + 4 + index * 4)?)?;
            columns.push(check_column(&table, index, rows, &mut budget)?);
        }
        if let Some(name) = first_duplicate(columns.iter().map(|column| column.name)) {
            return Err(BatchError::DuplicateColumn {
                name: name.to_owned(),
            });
        }
        Ok(BatchView { rows, columns })
    }

    /// The view of a batch whose columns were checked before.
    pub(crate) fn of_verified(rows: usize, columns: Vec<ColumnView<'a>>) -> Self {
        Self { rows, columns }
    }

    /// The rows under other column names. A column whose name is `None` is omitted.
    pub fn renamed<'b>(&self, names: &[Option<&'b str>]) -> BatchView<'b>
    where
        'a: 'b,
    {
        let renamed = self.columns.iter().zip(names);
        let columns = renamed.filter_map(|(&column, name)| {
            Some(ColumnView {
                name: (*name)?,
                ..column
            })
        });
        BatchView {
            rows: self.rows,
            columns: columns.collect(),
        }
    }

    /// Number of rows, at most [`limits::ROWS_MAX`].
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns in the order they were sent.
    pub fn columns(&self) -> &[ColumnView<'a>] {
        &self.columns
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&ColumnView<'a>> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// A name that appears twice. Few names are compared pairwise; many are sorted, so that no batch
/// costs quadratic time.
pub(crate) fn first_duplicate<'n>(
    names: impl ExactSizeIterator<Item = &'n str> + Clone,
) -> Option<&'n str> {
    if names.len() <= 16 {
        return names
            .clone()
            .enumerate()
            .find_map(|(index, name)| names.clone().take(index).find(|other| *other == name));
    }
    let mut sorted: Vec<&str> = names.collect();
    sorted.sort_unstable();
    sorted
        .windows(2)
        .find(|pair| pair[0] == pair[1])
        .map(|pair| pair[0])
}

/// One column of a verified batch.
#[derive(Clone, Copy, Debug)]
pub struct ColumnView<'a> {
    pub(crate) name: &'a str,
    pub(crate) column_type: ColumnType,
    pub(crate) rows: usize,
    pub(crate) null_count: usize,
    pub(crate) validity: Option<Bitmap<'a>>,
    pub(crate) values: Values<'a>,
}

impl<'a> ColumnView<'a> {
    /// The name, 1 to [`limits::NAME_BYTES_MAX`] bytes.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The type, which agrees with [`Self::values`].
    pub fn column_type(&self) -> ColumnType {
        self.column_type
    }

    /// Number of rows, the batch's.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of NULL rows.
    pub fn null_count(&self) -> usize {
        self.null_count
    }

    /// One bit a row, 1 = not NULL; `None` when no row is NULL, even if a bitmap was sent.
    pub fn validity(&self) -> Option<Bitmap<'a>> {
        self.validity
    }

    /// Whether `row` is NULL.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.validity.is_some_and(|bits| !bits.get(row))
    }

    /// The values. The values of NULL rows have no meaning, but are safe to read.
    pub fn values(&self) -> &Values<'a> {
        &self.values
    }

    /// The item of `row`, which is below [`Self::rows`], in a column of text or bytes, plain or
    /// dictionary; `None` in other columns. The item of a NULL row has no meaning.
    #[inline]
    pub fn item(&self, row: usize) -> Option<&'a [u8]> {
        match &self.values {
            Values::Items(items) => Some(items.get(row)),
            Values::Codes { codes, items } => Some(items.get(codes.get(row) as usize)),
            _ => None,
        }
    }
}

/// A column's values by form.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// [`ColumnType::Bool`].
    Bool(Bitmap<'a>),
    /// Every fixed-width type: rows × `width` bytes, little-endian, at any alignment.
    Fixed {
        /// Bytes of one value: [`ColumnType::width`].
        width: usize,
        /// The values, one after another.
        bytes: &'a [u8],
    },
    /// Plain [`ColumnType::Text`] or [`ColumnType::Bytes`]: one item a row.
    Items(Items<'a>),
    /// Dictionary-coded [`ColumnType::Text`] or [`ColumnType::Bytes`]. Items need be neither
    /// distinct nor used.
    Codes {
        /// One code a row.
        codes: Codes<'a>,
        /// The items that codes index.
        items: Items<'a>,
    },
}

impl<'a> Values<'a> {
    /// Fixed-width values as arrays of `N` bytes (`i64::from_le_bytes` and its kin read them);
    /// `None` for other forms and widths.
    pub fn arrays<const N: usize>(&self) -> Option<&'a [[u8; N]]> {
        match self {
            Values::Fixed { width, bytes } if *width == N => Some(chunks(bytes)),
            _ => None,
        }
    }

    /// The bytes of fixed-width values; empty for other forms.
    pub(crate) fn fixed_bytes(&self) -> &'a [u8] {
        match self {
            Values::Fixed { bytes, .. } => bytes,
            _ => &[],
        }
    }
}
