//! Values of lanes on their way out, as datums.

use lanes_columnar::column::Column;
use lanes_columnar::encoding::Constant;
use lanes_columnar::kind::LaneKind;
use lanes_columnar::lane::Lane;
use pgrx::pg_sys;

use crate::pg::descriptor::Descriptor;

/// How a lane's values become datums.
#[derive(Clone, Copy)]
pub enum Outlet {
    /// Always NULL: a dropped attribute.
    Null,
    Bool,
    /// By value, of so many bytes.
    Value(usize),
    /// By reference: the value's place.
    Pointer,
}

impl Outlet {
    /// The datum of a row of a lane, and whether it is NULL.
    ///
    /// # Safety
    /// The lane is of the kind that the outlet was made for. It contains the row and is alive and filled there. What a
    /// pointer refers to lives as long as the lane.
    #[inline]
    pub unsafe fn value(self, lane: &Lane, row: usize) -> (pg_sys::Datum, bool) {
        // SAFETY: this function's contract.
        unsafe {
            if matches!(self, Outlet::Null) || lane.is_null(row) {
                return (pg_sys::Datum::null(), true);
            }
            let value = match self {
                Outlet::Null => pg_sys::Datum::null(),
                Outlet::Bool => pg_sys::Datum::from(lane.bool(row)),
                Outlet::Value(width) => by_value(lane.pointer(row), width),
                Outlet::Pointer => pg_sys::Datum::from(lane.pointer(row).cast_mut()),
            };
            (value, false)
        }
    }

    /// As [`Outlet::value`], for a row that the lane of a vector under evaluation contains, which is filled.
    #[inline]
    pub(in crate::pg) fn filled_value(self, lane: &Lane, row: usize) -> (pg_sys::Datum, bool) {
        // SAFETY: an evaluation fills the lanes of its vector, and they live as long as it.
        unsafe { self.value(lane, row) }
    }
}

/// How the values of each attribute of a row become datums.
pub fn outlets(descriptor: Descriptor<'_>, kinds: &[LaneKind]) -> Vec<Outlet> {
    let outlet = |(attribute, kind): (&super::Attribute, &LaneKind)| match kind {
        LaneKind::Absent => Outlet::Null,
        LaneKind::Bool => Outlet::Bool,
        LaneKind::Fixed { width, .. } if attribute.attbyval => Outlet::Value(*width as usize),
        LaneKind::Fixed { .. } | LaneKind::Varlena { .. } => Outlet::Pointer,
    };
    descriptor.attributes().zip(kinds).map(outlet).collect()
}

/// Lanes of some rows, ready to hand out datums.
pub struct RowOutlet {
    lanes: Vec<(Lane, Outlet)>,
}

impl RowOutlet {
    /// Pairs lanes with the way each is handed out. The lanes must outlive every use.
    pub fn new(outlets: &[Outlet], lanes: impl Iterator<Item = Lane>) -> Self {
        RowOutlet {
            lanes: lanes.zip(outlets.iter().copied()).collect(),
        }
    }

    /// The lanes of all attributes.
    pub fn lanes(&self) -> impl Iterator<Item = Lane> {
        self.lanes.iter().map(|(lane, _)| *lane)
    }

    /// Reads the attributes of a row, as many as there is room for: their datums, and which of them are NULL.
    pub fn read_row(&self, row: usize, values: &mut [pg_sys::Datum], nulls: &mut [bool]) {
        for (attribute, (value, is_null)) in values.iter_mut().zip(nulls).enumerate() {
            (*value, *is_null) = self.value(row, attribute);
        }
    }

    /// Writes attributes `from..to` of a row (counted from the lanes' first) into a slot's arrays.
    ///
    /// # Safety
    /// The lanes hold the row and are still alive; the arrays have `to` elements.
    pub unsafe fn read(
        &self,
        row: usize,
        from: usize,
        to: usize,
        values: *mut pg_sys::Datum,
        nulls: *mut bool,
    ) {
        for i in from..to {
            let (value, is_null) = self.value(row, i);
            // SAFETY: the caller's arrays have an element for the attribute.
            unsafe {
                *nulls.add(i) = is_null;
                *values.add(i) = value;
            }
        }
    }

    /// Reads an attribute of a row: its datum, and whether it is NULL. The lanes contain the row,
    /// and are alive and filled at its place, as whoever made the outlet promised.
    #[inline]
    pub fn value(&self, row: usize, attribute: usize) -> (pg_sys::Datum, bool) {
        let Some((lane, outlet)) = self.lanes.get(attribute) else {
            return (pg_sys::Datum::null(), true);
        };
        // SAFETY: the lanes outlive this, and the row is one of theirs.
        unsafe { outlet.value(lane, row) }
    }

    /// The datum of a value that is not in the lanes, NULL or not, where the attribute's type is
    /// passed by value; `None` where it is not.
    pub fn datum_of(&self, attribute: usize, value: Constant<'_>) -> Option<(pg_sys::Datum, bool)> {
        let (_, outlet) = self.lanes.get(attribute)?;
        let datum = match (outlet, value) {
            (Outlet::Bool | Outlet::Value(_), Constant::Null) => {
                return Some((pg_sys::Datum::null(), true));
            }
            (Outlet::Bool, Constant::Bits(bits)) => pg_sys::Datum::from(bits != 0),
            (Outlet::Value(width), Constant::Bits(bits)) => {
                let bytes = bits.to_le_bytes();
                // SAFETY: an integer has eight readable bytes, and no such type is wider.
                unsafe { by_value(bytes.as_ptr(), *width) }
            }
            _ => return None,
        };
        Some((datum, false))
    }
}

/// A by-value datum of `width` bytes, sign-extended as Postgres's `…GetDatum` macros do.
unsafe fn by_value(at: *const u8, width: usize) -> pg_sys::Datum {
    // SAFETY: the caller vouches for `width` readable bytes.
    unsafe {
        match width {
            1 => pg_sys::Datum::from(at.cast::<i8>().read_unaligned()),
            2 => pg_sys::Datum::from(at.cast::<i16>().read_unaligned()),
            4 => pg_sys::Datum::from(at.cast::<i32>().read_unaligned()),
            _ => pg_sys::Datum::from(at.cast::<i64>().read_unaligned()),
        }
    }
}

/// The bytes of a value of a column of fixed width, of at most `stride` bytes; `None` for NULL, and
/// for columns of other kinds.
///
/// # Panics
/// If the column has no such row.
pub fn fixed_bytes(column: &Column, row: usize) -> Option<&[u8]> {
    let LaneKind::Fixed { width, .. } = column.kind() else {
        return None;
    };
    assert!(row < column.rows(), "row {row} of {}", column.rows());
    let lane = column.lane();
    // SAFETY: the column is alive for as long as the slice, and has this row, of so many bytes.
    unsafe {
        (!lane.is_null(row)).then(|| std::slice::from_raw_parts(lane.pointer(row), width as usize))
    }
}
