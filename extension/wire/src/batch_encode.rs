//! Borrowed slices to one FlatBuffer, each vector copied once.
//!
//! References point forward only, so the buffer is written front to back: root table, column tables
//! with holes for the references to vectors, names, then the vectors, whose places fill the holes.
//! Columns of one shape (which fields are present) share a vtable.

use crate::batch_view::first_duplicate;
use crate::layout::{IDENTIFIER, column_slot};
use crate::vector::bitmap_bytes;
use crate::{BuildError, ColumnType, limits};

/// One column as slices of the caller's.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSource<'a> {
    /// The column's name: 1 to [`limits::NAME_BYTES_MAX`] bytes, no NUL.
    pub name: &'a str,
    /// The values, one a row.
    pub values: ValuesSource<'a>,
    /// One bit a row, 1 = not NULL, `rows.div_ceil(8)` bytes; `None` when no row is NULL.
    pub validity: Option<&'a [u8]>,
}

/// Values of each type.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the variants are those of ColumnType")]
pub enum ValuesSource<'a> {
    /// A bitmap of `rows.div_ceil(8)` bytes, least significant bit first.
    Bool(&'a [u8]),
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    /// Microseconds since the Unix epoch.
    Timestamp(&'a [i64]),
    /// Days since the Unix epoch.
    Date(&'a [i32]),
    Uuid(&'a [[u8; 16]]),
    /// UTF-8 without NUL; the reader checks it.
    Text(ItemsSource<'a>),
    Bytes(ItemsSource<'a>),
}

/// Items of varying length.
#[derive(Clone, Copy, Debug)]
pub enum ItemsSource<'a> {
    /// One item a row: `bytes[ends[row - 1]..ends[row]]`.
    Plain {
        /// End offset of each row's item, ascending to `bytes.len()`.
        ends: &'a [u32],
        /// The items, one after another.
        bytes: &'a [u8],
    },
    /// One code a row. They are written in the narrowest width that the item count allows.
    Dictionary {
        /// Codes below `item_ends.len()`.
        codes: &'a [u32],
        /// End offset of each item, ascending to `item_bytes.len()`.
        item_ends: &'a [u32],
        /// The items, one after another.
        item_bytes: &'a [u8],
    },
}

impl<'a> ValuesSource<'a> {
    /// The type that is written.
    pub fn column_type(&self) -> ColumnType {
        match self {
            ValuesSource::Bool(_) => ColumnType::Bool,
            ValuesSource::Int16(_) => ColumnType::Int16,
            ValuesSource::Int32(_) => ColumnType::Int32,
            ValuesSource::Int64(_) => ColumnType::Int64,
            ValuesSource::Float32(_) => ColumnType::Float32,
            ValuesSource::Float64(_) => ColumnType::Float64,
            ValuesSource::Timestamp(_) => ColumnType::Timestamp,
            ValuesSource::Date(_) => ColumnType::Date,
            ValuesSource::Uuid(_) => ColumnType::Uuid,
            ValuesSource::Text(_) => ColumnType::Text,
            ValuesSource::Bytes(_) => ColumnType::Bytes,
        }
    }

    /// Rows found, and rows needed, in the unit of the slice: bytes for bitmaps.
    fn count(&self, rows: usize) -> (usize, usize) {
        match self {
            ValuesSource::Bool(bits) => (bits.len(), bitmap_bytes(rows)),
            ValuesSource::Int16(values) => (values.len(), rows),
            ValuesSource::Int32(values) | ValuesSource::Date(values) => (values.len(), rows),
            ValuesSource::Int64(values) | ValuesSource::Timestamp(values) => (values.len(), rows),
            ValuesSource::Float32(values) => (values.len(), rows),
            ValuesSource::Float64(values) => (values.len(), rows),
            ValuesSource::Uuid(values) => (values.len(), rows),
            ValuesSource::Text(items) | ValuesSource::Bytes(items) => match items {
                ItemsSource::Plain { ends, .. } => (ends.len(), rows),
                ItemsSource::Dictionary { codes, .. } => (codes.len(), rows),
            },
        }
    }

    fn items(&self) -> Option<ItemsSource<'a>> {
        match self {
            ValuesSource::Text(items) | ValuesSource::Bytes(items) => Some(*items),
            _ => None,
        }
    }

    /// The bytes of the values in memory. Dictionary codes, which are narrowed, and the ends of
    /// plain items are `u32`.
    fn bytes(&self) -> &'a [u8] {
        match self {
            ValuesSource::Bool(bits) => bits,
            ValuesSource::Int16(values) => bytemuck::must_cast_slice(values),
            ValuesSource::Int32(values) | ValuesSource::Date(values) => {
                bytemuck::must_cast_slice(values)
            }
            ValuesSource::Int64(values) | ValuesSource::Timestamp(values) => {
                bytemuck::must_cast_slice(values)
            }
            ValuesSource::Float32(values) => bytemuck::must_cast_slice(values),
            ValuesSource::Float64(values) => bytemuck::must_cast_slice(values),
            ValuesSource::Uuid(values) => values.as_flattened(),
            ValuesSource::Text(items) | ValuesSource::Bytes(items) => match items {
                ItemsSource::Plain { ends, .. } => bytemuck::must_cast_slice(ends),
                ItemsSource::Dictionary { codes, .. } => bytemuck::must_cast_slice(codes),
            },
        }
    }
}

/// Replaces `out` by the batch. Shapes are checked (lengths, names, codes, ends); the reader checks
/// what text and times hold. On an error `out` is unchanged.
pub fn encode(
    rows: usize,
    columns: &[ColumnSource<'_>],
    out: &mut Vec<u8>,
) -> Result<(), BuildError> {
    let bytes_bound = check(rows, columns)?;
    out.clear();
    out.reserve(bytes_bound);
    Writer { out }.batch(rows, columns);
    debug_assert!(out.len() <= bytes_bound);
    Ok(())
}

/// Checks everything that would make a batch unreadable. Returns an upper bound of its length.
fn check(rows: usize, columns: &[ColumnSource<'_>]) -> Result<usize, BuildError> {
    if rows > limits::ROWS_MAX {
        return Err(BuildError::TooManyRows { rows });
    }
    if columns.len() > limits::COLUMNS_MAX {
        return Err(BuildError::TooManyColumns);
    }
    if columns.is_empty() && rows > 0 {
        return Err(BuildError::NoColumns { rows });
    }
    if let Some(name) = first_duplicate(columns.iter().map(|column| column.name)) {
        return Err(BuildError::DuplicateColumn {
            name: name.to_owned(),
        });
    }
    // Header, root and shared vtables; then tables, name and padding of each column.
    let mut bytes = 256_u64;
    for column in columns {
        let name = || column.name.to_owned();
        if !(1..=limits::NAME_BYTES_MAX).contains(&column.name.len()) || column.name.contains('\0')
        {
            return Err(BuildError::ColumnName { name: name() });
        }
        let (found, expected) = column.values.count(rows);
        if found != expected {
            return Err(BuildError::ColumnRows {
                name: name(),
                rows: found,
                expected,
            });
        }
        if let Some(bits) = column.validity
            && bits.len() != bitmap_bytes(rows)
        {
            return Err(BuildError::ColumnRows {
                name: name(),
                rows: bits.len(),
                expected: bitmap_bytes(rows),
            });
        }
        bytes += 256 + column.values.bytes().len() as u64;
        bytes += column.validity.map_or(0, |bits| bits.len() as u64);
        if let Some(items) = column.values.items() {
            let (ends, item_bytes) = match items {
                ItemsSource::Plain { ends, bytes } => (ends, bytes),
                ItemsSource::Dictionary {
                    item_ends,
                    item_bytes,
                    ..
                } => (item_ends, item_bytes),
            };
            bytes += item_bytes.len() as u64;
            if let ItemsSource::Dictionary { codes, .. } = items {
                bytes += ends.len() as u64 * 4;
                let wrong = match codes.iter().max() {
                    Some(code) if *code as usize >= ends.len() => "a code is past the last item",
                    _ if ends.len() > limits::dictionary_items_max(rows) => {
                        "the dictionary has too many items"
                    }
                    _ => "",
                };
                if !wrong.is_empty() {
                    return Err(BuildError::Items {
                        name: name(),
                        problem: wrong,
                    });
                }
            }
            if !ends.is_sorted() || ends.last().map_or(0, |end| *end as usize) != item_bytes.len() {
                return Err(BuildError::Items {
                    name: name(),
                    problem: "end offsets do not ascend to the length of the bytes",
                });
            }
        }
    }
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= limits::BATCH_BYTES_MAX => Ok(bytes),
        _ => Err(BuildError::TooLong),
    }
}

/// Places of the references of one column that wait for their vectors.
struct Holes {
    name: usize,
    values: usize,
    validity: Option<usize>,
    dictionary: Option<usize>,
    bytes: Option<usize>,
}

struct Writer<'o> {
    out: &'o mut Vec<u8>,
}

impl Writer<'_> {
    fn batch(&mut self, rows: usize, columns: &[ColumnSource<'_>]) {
        self.u32(0);
        self.out.extend_from_slice(&IDENTIFIER);
        // vtable of Batch: rows at 4, columns at 8.
        let vtable = self.vtable(&[8, 12, 4, 8]);
        let batch = self.table(vtable);
        self.refer(0, batch);
        self.u32(rows as u32);
        let columns_hole = self.hole();
        let references = self.out.len();
        self.refer(columns_hole, references);
        self.u32(columns.len() as u32);
        let first = self.out.len();
        for _ in columns {
            self.hole();
        }

        let mut vtables = [None; 8];
        let mut holes = Vec::with_capacity(columns.len());
        for (index, column) in columns.iter().enumerate() {
            holes.push(self.column(column, first + index * 4, &mut vtables));
        }
        for (column, holes) in columns.iter().zip(&holes) {
            self.begin_vector(holes.name, column.name.len(), 1, 4);
            self.out.extend_from_slice(column.name.as_bytes());
            self.out.push(0);
        }
        let mut dictionary_vtable = None;
        for (column, holes) in columns.iter().zip(&holes) {
            self.vectors(column, holes, &mut dictionary_vtable);
        }
    }

    fn column(
        &mut self,
        column: &ColumnSource<'_>,
        hole: usize,
        vtables: &mut [Option<usize>; 8],
    ) -> Holes {
        let items = column.values.items();
        let has_validity = column.validity.is_some();
        let has_dictionary = matches!(items, Some(ItemsSource::Dictionary { .. }));
        let has_bytes = matches!(items, Some(ItemsSource::Plain { .. }));

        // Inline bytes: vtable reference, references in slot order, the type, padding.
        let mut slots = [0_u16; column_slot::COUNT];
        let mut offset = 4;
        for (slot, present) in [
            (column_slot::NAME, true),
            (column_slot::VALUES, true),
            (column_slot::VALIDITY, has_validity),
            (column_slot::DICTIONARY, has_dictionary),
            (column_slot::BYTES, has_bytes),
        ] {
            if present {
                slots[slot] = offset;
                offset += 4;
            }
        }
        slots[column_slot::TYPE] = offset;
        let shape = usize::from(has_validity)
            | usize::from(has_dictionary) << 1
            | usize::from(has_bytes) << 2;
        let vtable = match vtables[shape] {
            Some(vtable) => vtable,
            None => {
                let own = 4 + 2 * column_slot::COUNT as u16;
                let [name, code, values, validity, dictionary, bytes] = slots;
                let vtable = self.vtable(&[
                    own,
                    offset + 4,
                    name,
                    code,
                    values,
                    validity,
                    dictionary,
                    bytes,
                ]);
                vtables[shape] = Some(vtable);
                vtable
            }
        };
        let table = self.table(vtable);
        self.refer(hole, table);
        let holes = Holes {
            name: self.hole(),
            values: self.hole(),
            validity: has_validity.then(|| self.hole()),
            dictionary: has_dictionary.then(|| self.hole()),
            bytes: has_bytes.then(|| self.hole()),
        };
        self.out
            .extend_from_slice(&[column.values.column_type().code(), 0, 0, 0]);
        holes
    }

    fn vectors(
        &mut self,
        column: &ColumnSource<'_>,
        holes: &Holes,
        dictionary_vtable: &mut Option<usize>,
    ) {
        if let (Some(hole), Some(bits)) = (holes.validity, column.validity) {
            self.bytes(hole, bits);
        }
        match column.values.items() {
            Some(ItemsSource::Dictionary {
                codes,
                item_ends,
                item_bytes,
            }) => {
                let code_bytes: u8 = match item_ends.len() {
                    0..=0x100 => 1,
                    0x101..=0x1_0000 => 2,
                    _ => 4,
                };
                self.begin_vector(holes.values, codes.len() * usize::from(code_bytes), 1, 8);
                match code_bytes {
                    1 => self.out.extend(codes.iter().map(|code| *code as u8)),
                    2 => {
                        let start = self.out.len();
                        self.out.resize(start + codes.len() * 2, 0);
                        let (slots, _) = self.out[start..].as_chunks_mut::<2>();
                        for (slot, code) in slots.iter_mut().zip(codes) {
                            *slot = (*code as u16).to_le_bytes();
                        }
                    }
                    _ => self
                        .out
                        .extend_from_slice(bytemuck::must_cast_slice::<u32, u8>(codes)),
                }
                self.align(4, 0);
                // vtable of Dictionary: code_bytes at 12, item_ends at 4, item_bytes at 8.
                let vtable = match *dictionary_vtable {
                    Some(vtable) => vtable,
                    None => self.vtable(&[10, 16, 12, 4, 8]),
                };
                *dictionary_vtable = Some(vtable);
                self.align(4, 0);
                let table = self.table(vtable);
                if let Some(hole) = holes.dictionary {
                    self.refer(hole, table);
                }
                let ends_hole = self.hole();
                let bytes_hole = self.hole();
                self.out.extend_from_slice(&[code_bytes, 0, 0, 0]);
                self.begin_vector(ends_hole, item_ends.len(), 4, 4);
                self.out
                    .extend_from_slice(bytemuck::must_cast_slice::<u32, u8>(item_ends));
                self.begin_vector(bytes_hole, item_bytes.len(), 1, 4);
                self.out.extend_from_slice(item_bytes);
            }
            Some(ItemsSource::Plain { bytes, .. }) => {
                self.bytes(holes.values, column.values.bytes());
                if let Some(hole) = holes.bytes {
                    self.bytes(hole, bytes);
                }
            }
            None => self.bytes(holes.values, column.values.bytes()),
        }
    }

    /// Writes a vector of bytes whose first byte is at a multiple of 8.
    fn bytes(&mut self, hole: usize, bytes: &[u8]) {
        self.begin_vector(hole, bytes.len(), 1, 8);
        self.out.extend_from_slice(bytes);
    }

    /// Fills `hole`; the elements must follow, the first of them at a multiple of `alignment`.
    fn begin_vector(
        &mut self,
        hole: usize,
        elements: usize,
        element_bytes: usize,
        alignment: usize,
    ) {
        debug_assert!(alignment >= element_bytes.max(4));
        self.align(alignment, 4);
        let position = self.out.len();
        self.refer(hole, position);
        self.u32(elements as u32);
    }

    /// Pads until `ahead` bytes further is a multiple of `alignment`.
    fn align(&mut self, alignment: usize, ahead: usize) {
        let end = (self.out.len() + ahead).next_multiple_of(alignment) - ahead;
        self.out.resize(end, 0);
    }

    fn vtable(&mut self, entries: &[u16]) -> usize {
        debug_assert_eq!(usize::from(entries[0]), entries.len() * 2);
        let position = self.out.len();
        for entry in entries {
            self.out.extend_from_slice(&entry.to_le_bytes());
        }
        self.align(4, 0);
        position
    }

    /// Begins a table whose vtable precedes it.
    fn table(&mut self, vtable: usize) -> usize {
        let position = self.out.len();
        debug_assert!(position.is_multiple_of(4));
        self.u32((position - vtable) as u32);
        position
    }

    fn hole(&mut self) -> usize {
        self.u32(0);
        self.out.len() - 4
    }

    fn refer(&mut self, hole: usize, target: usize) {
        let distance = (target - hole) as u32;
        self.out[hole..hole + 4].copy_from_slice(&distance.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.out.extend_from_slice(&value.to_le_bytes());
    }
}
