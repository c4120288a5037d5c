//! Datums on their way into columns.

use lanes_columnar::column::Column;
use lanes_columnar::kind::LaneKind;
use pgrx::pg_sys;

use super::item::{bytes_of, with_item};
use super::outlet::RowOutlet;
use crate::pg::descriptor::{Attribute, Descriptor};
use crate::pg::slot::Slot;

/// How a column takes the datums of an attribute.
#[derive(Clone, Copy)]
enum Intake {
    Absent,
    Bool,
    /// Passed by value, of so many bytes.
    Value(usize),
    /// Passed by reference, of so many bytes.
    Reference(i16),
    Item {
        packed: bool,
    },
}

/// Appends rows of datums to columns.
pub struct RowIntake {
    intakes: Vec<Intake>,
    scratch: Vec<u8>,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl RowIntake {
    /// An intake for rows of a descriptor whose attributes are of `kinds`.
    pub fn new(descriptor: Descriptor<'_>, kinds: &[LaneKind]) -> RowIntake {
        let intakes = descriptor.attributes().zip(kinds);
        RowIntake {
            intakes: intakes.map(|(of, kind)| intake(of, *kind)).collect(),
            scratch: Vec::new(),
            values: vec![pg_sys::Datum::null(); kinds.len()],
            nulls: vec![true; kinds.len()],
        }
    }

    /// Appends the row of a filled slot of the intake's row type.
    ///
    /// # Panics
    /// If the slot has fewer attributes.
    pub fn push_slot(&mut self, columns: &mut [Column], slot: Slot<'_>) {
        let (values, nulls) = slot.read_all();
        // The slot's values are datums of the row type that its table and this intake have.
        push(&self.intakes, &mut self.scratch, columns, values, nulls);
    }

    /// Appends a row of values, which are datums of the intake's row type.
    pub(in crate::pg) fn push_values(
        &mut self,
        columns: &mut [Column],
        values: &[pg_sys::Datum],
        nulls: &[bool],
    ) {
        push(&self.intakes, &mut self.scratch, columns, values, nulls);
    }

    /// Appends a row of lanes that are of the intake's kinds. Attributes without a lane become NULL.
    ///
    /// # Panics
    /// If there are more columns than the intake has attributes.
    pub fn push_row(&mut self, columns: &mut [Column], outlet: &RowOutlet, row: usize) {
        self.push_wanted(columns, outlet, row, |_| true);
    }

    /// Appends a row of lanes that are of the intake's kinds. Attributes without a lane become NULL, and so do those
    /// that are not wanted. `wanted` gets an attribute's number, counted from 0.
    ///
    /// # Panics
    /// If there are more columns than the intake has attributes.
    pub fn push_wanted(
        &mut self,
        columns: &mut [Column],
        outlet: &RowOutlet,
        row: usize,
        wanted: impl Fn(usize) -> bool,
    ) {
        outlet.read_row(row, &mut self.values, &mut self.nulls);
        for (attribute, is_null) in self.nulls.iter_mut().enumerate() {
            *is_null |= !wanted(attribute);
        }
        let (values, nulls) = (&self.values, &self.nulls);
        push(&self.intakes, &mut self.scratch, columns, values, nulls);
    }
}

/// Appends one row, whose values are datums of the attributes' types.
fn push(
    intakes: &[Intake],
    scratch: &mut Vec<u8>,
    columns: &mut [Column],
    values: &[pg_sys::Datum],
    nulls: &[bool],
) {
    for (i, column) in columns.iter_mut().enumerate() {
        if nulls[i] {
            column.push_null();
        } else {
            push_value(column, intakes[i], values[i], scratch);
        }
    }
}

fn intake(attribute: &Attribute, kind: LaneKind) -> Intake {
    match kind {
        LaneKind::Absent => Intake::Absent,
        LaneKind::Bool => Intake::Bool,
        LaneKind::Fixed { width, .. } if attribute.attbyval => Intake::Value(width as usize),
        LaneKind::Fixed { width, .. } => Intake::Reference(width as i16),
        LaneKind::Varlena { packed, .. } => Intake::Item { packed },
    }
}

/// Appends a datum of the attribute's type.
#[inline]
fn push_value(column: &mut Column, intake: Intake, value: pg_sys::Datum, scratch: &mut Vec<u8>) {
    match intake {
        Intake::Absent => column.push_null(),
        Intake::Bool => column.push_bool(value.value() != 0),
        Intake::Value(width) => column.push_fixed(&value.value().to_ne_bytes()[..width]),
        Intake::Reference(width) => column.push_fixed(bytes_of(value, width)),
        Intake::Item { packed } => {
            with_item(value, packed, scratch, |item| column.push_item(item));
        }
    }
}

/// The bytes of a datum of the attribute's type, as a column of `kind` repeats them.
pub fn to_bytes(value: pg_sys::Datum, attribute: &Attribute, kind: LaneKind) -> Vec<u8> {
    match intake(attribute, kind) {
        Intake::Absent => Vec::new(),
        Intake::Bool => vec![(value.value() != 0) as u8],
        Intake::Value(width) => value.value().to_ne_bytes()[..width].to_vec(),
        Intake::Reference(width) => bytes_of(value, width).to_vec(),
        Intake::Item { packed } => {
            let mut bytes = Vec::new();
            with_item(value, packed, &mut Vec::new(), |item| {
                bytes.extend_from_slice(item);
            });
            bytes
        }
    }
}

/// The value of attribute `index` in rows from before `ALTER TABLE … ADD COLUMN … DEFAULT`, as the
/// bytes that a column of `kind` repeats.
pub fn missing_bytes(descriptor: Descriptor<'_>, index: usize, kind: LaneKind) -> Option<Vec<u8>> {
    let value = descriptor.missing_value(index)?;
    Some(to_bytes(value, descriptor.attribute(index), kind))
}
