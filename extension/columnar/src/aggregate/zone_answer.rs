//! Aggregates of whole vectors by their zones, without reading a row.
//!
//! A zone can be used only if all of its rows count: the vector is full, all its rows are selected
//! and belong to one group, and the zone is [exact](Zone::exact). It answers these aggregates:
//!
//! | aggregate of a plain column | from |
//! |---|---|
//! | count | `non_null` |
//! | count(*) FILTER (WHERE a bool) | `sum` |
//! | sum and avg of integers | `sum`, `non_null` |
//! | min, max | the bounds; not a zero, whose sign a bound does not tell, nor a NaN, whose bits it does not |
//! | bool_and, bool_or | `sum`, `non_null` |
//!
//! The stored zones of sealed rows cover whole runs. Some row has each of their bounds, and those
//! counts and sums that they have are right. If all rows of a run are visible, its zones answer
//! either all aggregates or none. If all, the run is not read, wherever it is.

use super::{Aggregate, Argument};
use crate::limits::VECTOR_ROWS;
use crate::vector::frame::Frame;
use crate::vector::number::{Number, Scalar};
use crate::vector::predicate::Predicate;
use crate::vector::value::Value;
use crate::zone_map::{Bound, Zone};

/// Whether the zones of the frame's vector cover just the selected rows, of which there are
/// `selected`.
pub(super) fn is_whole(frame: &Frame<'_>, selected: usize) -> bool {
    frame.rows == VECTOR_ROWS && selected == VECTOR_ROWS
}

impl Aggregate {
    /// The attribute whose zones may answer this aggregate.
    pub fn zone_attribute(&self) -> Option<usize> {
        if !self.accumulator.can_use_zones() && !self.accumulator.uses_zone_hints() {
            return None;
        }
        match (&self.filter, &self.argument) {
            (None, Argument::Number(Value::Column(_, attribute)))
            | (None, Argument::Truth(Predicate::Bool(attribute)))
            | (None, Argument::Presence(attribute))
            | (Some(Predicate::Bool(attribute)), Argument::Nothing) => Some(*attribute),
            _ => None,
        }
    }

    /// Whether it needs no look at the rows of a whole vector.
    fn is_count_of_rows(&self) -> bool {
        self.filter.is_none() && matches!(self.argument, Argument::Nothing)
    }

    /// The zone to add for so many rows, all of which the stored zones cover; `None`: the rows have
    /// to be read.
    pub(super) fn stored_zone(
        &self,
        rows: u32,
        zone: &dyn Fn(usize) -> Option<Zone>,
    ) -> Option<Zone> {
        let zone = match self.is_count_of_rows() {
            true => zone_of_rows(rows),
            false => self.counted(zone(self.zone_attribute()?)?)?,
        };
        let is_answered_by_zone = zone.non_null == 0 || self.accumulator.is_answered_by(&zone);
        is_answered_by_zone.then_some(zone)
    }

    /// The zone of the rows that count, given the zone of all rows.
    fn counted(&self, zone: Zone) -> Option<Zone> {
        match self.filter {
            None => Some(zone),
            // The rows that are TRUE are those that count.
            Some(_) => zone.has_sum.then_some(Zone {
                non_null: zone.sum as u32,
                ..zone
            }),
        }
    }

    /// Adds a whole vector of one group by its zone, if that is enough. Its rows are not counted
    /// one by one then.
    pub(super) fn add_zone(&mut self, frame: &Frame<'_>, group: u32) -> bool {
        if self.is_count_of_rows() {
            let rows = zone_of_rows(frame.rows as u32);
            return self.accumulator.add_zone(group as usize, &rows);
        }
        let Some(zone) = self.zone_attribute().and_then(|a| frame.zone(a)) else {
            return false;
        };
        if !zone.exact {
            return false;
        }
        let Some(counted) = self.counted(zone) else {
            return false;
        };
        counted.non_null == 0 || self.accumulator.add_zone(group as usize, &counted)
    }
}

/// The zone of this many rows whose values nobody reads: only their number is known.
fn zone_of_rows(rows: u32) -> Zone {
    Zone {
        non_null: rows,
        ..Zone::empty(crate::kind::LaneKind::Absent)
    }
}

/// A bound as a number of the column's type; `None`: the bound does not determine its bits.
pub(super) fn number<T: Number>(bound: Bound) -> Option<T> {
    let scalar = match bound {
        Bound::Signed(value) if !T::TYPE.is_float() => Scalar(value as u64),
        Bound::Float(value) if T::TYPE.is_float() && value != 0.0 && !value.is_nan() => {
            match T::TYPE.width() {
                4 => (value as f32).to_scalar(),
                _ => value.to_scalar(),
            }
        }
        _ => return None,
    };
    Some(T::of_scalar(scalar))
}
