//! The frame of an evaluation: one vector with its lanes, zones and scalars.

use super::number::Scalar;
use super::selection::Selection;
use super::value::Operand;
use crate::lane::{DictionaryView, Lane, LaneData};
use crate::repeats::ValueRepeats;
use crate::zone_map::Zone;

/// A vector of a segment with everything that an evaluation may read.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// The window's lanes, by attribute.
    pub lanes: &'a [Lane],
    /// The dictionaries of those lanes that have codes, by attribute.
    pub dictionaries: &'a [DictionaryView],
    /// Where in the lanes the vector begins: a multiple of [`crate::limits::VECTOR_ROWS`].
    pub place: usize,
    /// Rows of the vector.
    pub rows: usize,
    /// Numbers that hold for the whole scan: constants and parameters. `None` is NULL.
    pub scalars: &'a [Option<Scalar>],
    /// The zone of each attribute in this vector, where it was requested. The slice may be shorter
    /// than the lanes.
    pub zones: &'a [Option<Zone>],
    /// Numbers a row that no lane has: what a join found for the rows of the vector.
    pub joined: &'a [Operand],
    /// Attributes that may not have been decoded.
    pub substitutes: &'a [SubstituteColumn],
}

/// An attribute that one reader alone looks at, which may do with less than its values.
#[derive(Clone, Debug, Default)]
pub struct SubstituteColumn {
    /// The attribute.
    pub attribute: usize,
    /// What replaces the attribute's values in this vector.
    pub substitute: Substitute,
    /// The repeats of the vector, if [`Substitute::Repeats`] replaces the values.
    pub repeats: ValueRepeats,
}

/// With what the reader of an attribute does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Substitute {
    /// With nothing less than its values.
    #[default]
    None,
    /// With the zone: the lane has other rows' values.
    Zone,
    /// With runs of equal values: the lane has other rows' values here, too.
    Repeats,
}

/// The bounds of the integers of a vector, from its zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Whether anything is known. Without, the rest means nothing.
    pub known: bool,
    /// No number of the vector is smaller.
    pub minimum: i64,
    /// No number of the vector is greater.
    pub maximum: i64,
    /// There are no NULLs, and no number is smaller than the one before it.
    pub sorted: bool,
}

/// Types of which a lane has one value after the other.
///
/// # Safety
/// Each sequence of bytes of the type's size is a value.
pub unsafe trait FixedValue: Copy {}

// SAFETY: numbers have no invalid bytes.
unsafe impl FixedValue for i32 {}
// SAFETY: as above.
unsafe impl FixedValue for i64 {}
// SAFETY: as above.
unsafe impl FixedValue for f64 {}

impl<'a> Frame<'a> {
    /// The values of an attribute of fixed width, one for each row of the vector. The value of a row that is NULL is
    /// unspecified. Returns `None` if the lane does not have values of this width.
    ///
    /// # Panics
    /// If the attribute has a substitute.
    pub fn values<T: FixedValue>(&self, attribute: usize) -> Option<&'a [T]> {
        match self.lane(attribute).data {
            LaneData::Fixed { values, stride } if stride as usize == size_of::<T>() => {
                // SAFETY: the lane has aligned values of this width, also for the rows of the vector. Their owner lives
                // as long as the frame's lanes.
                let values = unsafe {
                    std::slice::from_raw_parts(values.cast::<T>().add(self.place), self.rows)
                };
                Some(values)
            }
            _ => None,
        }
    }

    /// A vector of so many rows, all of whose lanes are NULL.
    pub fn of_nulls(rows: usize, scalars: &'a [Option<Scalar>]) -> Frame<'a> {
        Frame {
            lanes: &[],
            dictionaries: &[],
            place: 0,
            rows,
            scalars,
            zones: &[],
            joined: &[],
            substitutes: &[],
        }
    }
}

impl Frame<'_> {
    /// The lane of an attribute; all NULL past the last attribute.
    ///
    /// # Panics
    /// If the attribute has a substitute: its lane does not have the values of the vector.
    pub fn lane(&self, attribute: usize) -> Lane {
        assert!(
            self.substituted(attribute).is_none(),
            "attribute {attribute} was not to be read"
        );
        self.lane_of_any_values(attribute)
    }

    /// The attribute, if the lane does not have its values.
    fn substituted(&self, attribute: usize) -> Option<&SubstituteColumn> {
        let mut columns = self.substitutes.iter();
        columns
            .find(|column| column.attribute == attribute && column.substitute != Substitute::None)
    }

    /// The repeats that replace the values of an attribute.
    pub fn repeats(&self, attribute: usize) -> Option<&ValueRepeats> {
        let column = self.substituted(attribute)?;
        (column.substitute == Substitute::Repeats).then_some(&column.repeats)
    }

    /// The lane of an attribute whose values may be those of other rows.
    pub(crate) fn lane_of_any_values(&self, attribute: usize) -> Lane {
        self.lanes.get(attribute).copied().unwrap_or(Lane::NULL)
    }

    /// The bounds of an attribute of integers in this vector.
    pub fn bounds(&self, attribute: usize) -> Bounds {
        let zone = self.zone(attribute);
        match zone.map(|zone| (zone.minimum.signed(), zone.maximum.signed(), zone.sorted)) {
            Some((Some(minimum), Some(maximum), sorted)) if minimum <= maximum => Bounds {
                known: true,
                minimum,
                maximum,
                sorted,
            },
            _ => Bounds::default(),
        }
    }

    /// The zone of an attribute in this vector, if it was requested.
    pub fn zone(&self, attribute: usize) -> Option<Zone> {
        self.zones.get(attribute).copied().flatten()
    }

    /// The selected rows that are not NULL in an attribute.
    pub fn present(&self, attribute: usize, selection: &Selection) -> Selection {
        if let LaneData::Null = self.lane(attribute).data {
            return Selection::NONE;
        }
        // SAFETY: a lane's bitmap covers its rows, to which the vector belongs.
        unsafe { selection.and_bitmap(self.validity(attribute)) }
    }

    /// The validity bitmap of the vector of an attribute; null if no row is NULL, or if all are
    /// because there is no lane.
    pub fn validity(&self, attribute: usize) -> *const u64 {
        let validity = self.lane(attribute).validity;
        if validity.is_null() {
            return validity;
        }
        // SAFETY: a lane's bitmap covers its rows, to which the vector belongs.
        unsafe { validity.add(self.place / 64) }
    }
}
