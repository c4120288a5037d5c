//! Rows that are collected from objects.

use lanes_wire::{BatchBuilder, limits};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::body::Objects;
use super::raw;
use super::value::{ValueFault, ValueSeed, clipped, needs_raw_text};
use crate::events::format::Malformed;
use crate::model::{ColumnKind, Room, Table};

/// No column yet: the position before the first key of an object.
const START: usize = 0;

/// The columns of the objects so far.
///
/// # Invariants
/// Between rows every column has `count` rows. Within a row, the columns whose keys have appeared
/// have one more.
pub(super) struct Rows<'t> {
    room: &'t mut Room,
    table: &'t Table,
    body: &'t str,
    rows_max: usize,
    bytes_max: usize,
    builder: BatchBuilder,
    /// From a column of the batch to that of the table.
    columns: Vec<&'t crate::model::TableColumn>,
    /// From a column of the table to that of the batch.
    by_place: Vec<Option<usize>>,
    /// The indexes of the table's columns, sorted by name. Filled when a key has to be looked up.
    places_by_name: Vec<usize>,
    /// At index `n`, the column whose key followed that of column `n - 1` last time; at [`START`],
    /// the column of the first key.
    followers: Vec<Option<usize>>,
    /// The bytes of one row, without text.
    row_bytes: usize,
    count: usize,
    /// Whether the depth of the body has been checked. Only values kept as text require it.
    is_depth_checked: bool,
    fault: Option<Malformed>,
}

impl<'t> Rows<'t> {
    pub(super) fn new(
        table: &'t Table,
        body: &'t str,
        rows_max: usize,
        bytes_max: usize,
        room: &'t mut Room,
    ) -> Self {
        Rows {
            room,
            table,
            body,
            rows_max: rows_max.min(limits::ROWS_MAX),
            bytes_max,
            builder: BatchBuilder::new(),
            columns: Vec::new(),
            by_place: Vec::new(),
            places_by_name: Vec::new(),
            followers: vec![None],
            row_bytes: 0,
            count: 0,
            is_depth_checked: false,
            fault: None,
        }
    }

    /// Replaces `out` by the batch and returns the number of rows.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) -> Result<usize, Malformed> {
        if self.columns.is_empty() && self.count > 0 {
            return Err(Malformed::NoColumns);
        }
        self.builder.finish(out)?;
        Ok(self.count)
    }

    /// The number of the current row for messages, from 1.
    fn row(&self) -> usize {
        self.count + 1
    }

    /// Keeps the fault and returns an error that stops the parser.
    #[cold]
    fn fail<E: Error>(&mut self, fault: Malformed) -> E {
        self.fault = Some(fault);
        E::custom("")
    }

    fn begin_row<E: Error>(&mut self) -> Result<(), E> {
        if self.count == self.rows_max {
            let rows_max = self.rows_max;
            return Err(self.fail(Malformed::TooManyRows { rows_max }));
        }
        Ok(())
    }

    /// Completes the row with NULLs for missing keys.
    fn end_row<E: Error>(&mut self, keys: usize) -> Result<(), E> {
        if keys < self.columns.len() {
            let count = self.count;
            for column in self.builder.columns_mut() {
                if column.rows() == count {
                    column.push_null();
                }
            }
        }
        self.count += 1;
        self.check_bytes(self.count)
    }

    /// Text takes no more than the body that it came from. The columns double, and the batch is
    /// built beside them.
    fn check_bytes<E: Error>(&mut self, rows: usize) -> Result<(), E> {
        let bytes = rows * self.row_bytes + self.body.len();
        if bytes > self.bytes_max {
            let bytes_max = self.bytes_max;
            return Err(self.fail(Malformed::TooLarge { bytes_max }));
        }
        match self.room.cover(3 * bytes) {
            Ok(()) => Ok(()),
            Err(overloaded) => Err(self.fail(overloaded.into())),
        }
    }

    /// Returns the column of a key that follows column `previous - 1`.
    #[inline]
    fn column<E: Error>(&mut self, previous: usize, key: &str) -> Result<usize, E> {
        let column = match self.followers[previous] {
            Some(guess) if self.columns[guess].name == key => guess,
            _ => self.look_up(previous, key)?,
        };
        if self.builder.columns_mut()[column].rows() > self.count {
            let (row, name) = (self.row(), clipped(key));
            return Err(self.fail(Malformed::DuplicateKey { row, name }));
        }
        Ok(column)
    }

    fn look_up<E: Error>(&mut self, previous: usize, key: &str) -> Result<usize, E> {
        let columns = &self.table.columns;
        if self.places_by_name.is_empty() {
            self.places_by_name.extend(0..columns.len());
            self.places_by_name
                .sort_unstable_by_key(|place| columns[*place].name.as_str());
            self.by_place.resize(columns.len(), None);
        }
        let found = self
            .places_by_name
            .binary_search_by_key(&key, |place| columns[*place].name.as_str());
        let Ok(found) = found else {
            let (row, table) = (self.row(), self.table.name.clone());
            let name = clipped(key);
            return Err(self.fail(Malformed::UnknownKey { row, table, name }));
        };
        let place = self.places_by_name[found];
        let column = match self.by_place[place] {
            Some(column) => column,
            None => self.add_column(place)?,
        };
        self.followers[previous] = Some(column);
        Ok(column)
    }

    /// Adds a column that no earlier row had.
    fn add_column<E: Error>(&mut self, place: usize) -> Result<usize, E> {
        let column = &self.table.columns[place];
        let column_type = column.kind.natural();
        // An item takes a code or an end offset. A boolean counts as a byte, including its
        // validity.
        self.row_bytes += column_type.width().unwrap_or(match column.kind {
            ColumnKind::Bool => 1,
            _ => size_of::<u32>(),
        });
        self.check_bytes(self.row())?;
        let index = match self.builder.add_column(&column.name, column_type) {
            Ok(index) => index,
            Err(error) => return Err(self.fail(error.into())),
        };
        let buffer = self.builder.column(index);
        for _ in 0..self.count {
            buffer.push_null();
        }
        self.columns.push(column);
        self.followers.push(None);
        self.by_place[place] = Some(index);
        Ok(index)
    }

    /// Values kept as text are skipped by recursion, so the depth of the body is checked before the
    /// first of them.
    fn check_depth<E: Error>(&mut self) -> Result<(), E> {
        if !self.is_depth_checked {
            if let Some(byte) = raw::too_deep(self.body.as_bytes()) {
                let depth_max = raw::DEPTH_MAX;
                return Err(self.fail(Malformed::TooDeep { byte, depth_max }));
            }
            self.is_depth_checked = true;
        }
        Ok(())
    }

    #[cold]
    fn value_fault<E: Error>(&mut self, column: usize, fault: ValueFault) -> E {
        let row = self.row();
        let column = self.columns[column].name.clone();
        self.fail(match fault {
            ValueFault::Unfit { found, expected } => Malformed::Value {
                row,
                column,
                found,
                expected,
            },
            ValueFault::Nul => Malformed::Nul { row, column },
            ValueFault::Build(error) => error.into(),
        })
    }
}

impl Objects for Rows<'_> {
    #[inline]
    fn take<'de, D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(RowVisitor(self))
    }

    fn take_fault(&mut self) -> Option<Malformed> {
        self.fault.take()
    }

    fn restart(&mut self) {
        // The room that was grown stays.
        self.builder = BatchBuilder::new();
        self.columns.clear();
        self.by_place.clear();
        self.places_by_name.clear();
        self.followers = vec![None];
        (self.row_bytes, self.count) = (0, 0);
        (self.is_depth_checked, self.fault) = (false, None);
    }
}

/// A visitor of one object.
struct RowVisitor<'r, 't>(&'r mut Rows<'t>);

impl RowVisitor<'_, '_> {
    #[cold]
    fn not_an_object<E: Error>(self, found: String) -> Result<(), E> {
        let row = self.0.row();
        Err(self.0.fail(Malformed::NotAnObject { row, found }))
    }
}

impl<'de> Visitor<'de> for RowVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let rows = self.0;
        rows.begin_row()?;
        let mut keys = 0;
        let mut previous = START;
        while let Some(column) = map.next_key_seed(KeySeed { rows, previous })? {
            let kind = rows.columns[column].kind;
            if needs_raw_text(kind) {
                rows.check_depth()?;
            }
            let mut fault = None;
            let value = ValueSeed {
                kind,
                column: rows.builder.column(column),
                fault: &mut fault,
            };
            if let Err(error) = map.next_value_seed(value) {
                return Err(match fault {
                    Some(fault) => rows.value_fault(column, fault),
                    None => error,
                });
            }
            keys += 1;
            previous = column + 1;
        }
        rows.end_row(keys)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.not_an_object("null".to_owned())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.not_an_object(value.to_string())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.not_an_object(format!("the number {value}"))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.not_an_object(format!("the number {value}"))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.not_an_object(format!("the number {value}"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.not_an_object(format!("the string \"{}\"", clipped(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        self.not_an_object("an array".to_owned())
    }
}

/// Deserializes a key to the column of its value.
struct KeySeed<'r, 't> {
    rows: &'r mut Rows<'t>,
    previous: usize,
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_, '_> {
    type Value = usize;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed<'_, '_> {
    type Value = usize;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the name of a column")
    }

    #[inline]
    fn visit_str<E: Error>(self, key: &str) -> Result<usize, E> {
        self.rows.column(self.previous, key)
    }
}
