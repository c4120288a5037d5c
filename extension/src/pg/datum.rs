//! Values between Postgres's datums and lanes.
//!
//! | attribute | lane |
//! |---|---|
//! | dropped | absent |
//! | bool | bitmap |
//! | any type of fixed length | its bytes, at a stride that keeps the type's alignment |
//! | text, varchar, bpchar and domains over them | items, dictionary-coded while that pays |
//! | any other type of variable length | items |
//!
//! Of int2, int4, int8, date, time, timestamp, timestamptz and money, a lane knows that they are signed integers, of float4
//! and float8 that they are floats, of uuid that its bytes are in order, and so of domains over these.
//!
//! An item is a complete varlena: one-byte header where the value is short and the column's storage allows it, four-
//! byte header else; never compressed, never out of line. So reading a lane hands out pointers and copies nothing.
//!
//! Who reads a lane trusts its items. They came from datums of the column's type, or from a verified batch of which
//! this module made them; then they lay in pages of the table, or in object storage under a digest that the table
//! keeps. Items of an image that nothing of that vouches for are checked first, by [`is_item`].

use lanes_columnar::bytes16::Bytes16;
use lanes_columnar::column::Column;
use lanes_columnar::encoding::Constant;
use lanes_columnar::kind::{LaneKind, Number};
use lanes_columnar::lane::Lane;
use pgrx::pg_sys;

use super::ports;
use crate::error;

/// A varlena with a one-byte header is at most this long, header included.
const SHORT_BYTES_MAX: usize = 0x7f;
const HEADER_BYTES: usize = 4;

/// The lane kinds of a table's attributes.
///
/// # Safety
/// `descriptor` is a live tuple descriptor.
pub unsafe fn kinds(descriptor: pg_sys::TupleDesc) -> Vec<LaneKind> {
    // SAFETY: the caller's promise.
    unsafe {
        (0..(*descriptor).natts as usize)
            .map(|i| kind(ports::TupleDescAttr(descriptor, i)))
            .collect()
    }
}

fn kind(attribute: &pg_sys::FormData_pg_attribute) -> LaneKind {
    if attribute.attisdropped {
        return LaneKind::Absent;
    }
    match attribute.attlen {
        -1 => {
            let base = match attribute.atttypid {
                pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID => attribute.atttypid,
                // SAFETY: a catalogue look-up of an existing type.
                other => unsafe { pg_sys::getBaseType(other) },
            };
            LaneKind::Varlena {
                dictionary: matches!(
                    base,
                    pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID
                ),
                packed: attribute.attstorage != pg_sys::TYPSTORAGE_PLAIN as std::ffi::c_char,
            }
        }
        1 if attribute.atttypid == pg_sys::BOOLOID => LaneKind::Bool,
        length if length > 0 => {
            let width = length as u16;
            let align = match attribute.attalign as u8 {
                b'd' => 8,
                b'i' => 4,
                b's' => 2,
                _ => 1,
            };
            LaneKind::Fixed {
                width,
                stride: width.next_multiple_of(align),
                number: number(attribute.atttypid),
            }
        }
        length => error::refuse(
            &format!("lanes tables hold no columns of type length {length}"),
            "Use a type of fixed or variable length, such as text.",
        ),
    }
}

/// What the bytes of a type of fixed width are; a domain's are those of its base type.
fn number(type_id: pg_sys::Oid) -> Number {
    let of_base = |base| match base {
        pg_sys::INT2OID
        | pg_sys::INT4OID
        | pg_sys::INT8OID
        | pg_sys::DATEOID
        | pg_sys::TIMEOID
        | pg_sys::TIMESTAMPOID
        | pg_sys::TIMESTAMPTZOID
        | pg_sys::MONEYOID => Number::Signed,
        pg_sys::FLOAT4OID | pg_sys::FLOAT8OID => Number::Float,
        pg_sys::UUIDOID => Number::Bytes16,
        _ => Number::Opaque,
    };
    match of_base(type_id) {
        // SAFETY: a catalogue look-up of an existing type.
        Number::Opaque => of_base(unsafe { pg_sys::getBaseType(type_id) }),
        number => number,
    }
}

/// How a column takes datums in.
#[derive(Clone, Copy)]
enum Intake {
    Absent,
    Bool,
    /// By value, of so many bytes.
    Value(usize),
    /// By reference, of so many bytes.
    Reference(usize),
    Item {
        packed: bool,
    },
}

/// Takes rows of datums into columns.
pub struct RowIntake {
    intakes: Vec<Intake>,
    scratch: Vec<u8>,
}

impl RowIntake {
    /// # Safety
    /// `descriptor` is a live tuple descriptor whose attributes are of `kinds`.
    pub unsafe fn new(descriptor: pg_sys::TupleDesc, kinds: &[LaneKind]) -> RowIntake {
        // SAFETY: the caller's promise.
        let intakes = kinds
            .iter()
            .enumerate()
            .map(|(i, kind)| unsafe { intake(ports::TupleDescAttr(descriptor, i), *kind) });
        RowIntake {
            intakes: intakes.collect(),
            scratch: Vec::new(),
        }
    }

    /// Appends one row.
    ///
    /// # Safety
    /// `values` and `nulls` have an element an attribute, valid for the attribute's type.
    pub unsafe fn push(
        &mut self,
        columns: &mut [Column],
        values: *const pg_sys::Datum,
        nulls: *const bool,
    ) {
        for (i, column) in columns.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                if *nulls.add(i) {
                    column.push_null();
                } else {
                    push_value(column, self.intakes[i], *values.add(i), &mut self.scratch);
                }
            }
        }
    }
}

fn intake(attribute: &pg_sys::FormData_pg_attribute, kind: LaneKind) -> Intake {
    match kind {
        LaneKind::Absent => Intake::Absent,
        LaneKind::Bool => Intake::Bool,
        LaneKind::Fixed { width, .. } if attribute.attbyval => Intake::Value(width as usize),
        LaneKind::Fixed { width, .. } => Intake::Reference(width as usize),
        LaneKind::Varlena { packed, .. } => Intake::Item { packed },
    }
}

unsafe fn push_value(
    column: &mut Column,
    intake: Intake,
    value: pg_sys::Datum,
    scratch: &mut Vec<u8>,
) {
    // SAFETY: the caller vouches for the datum's type.
    unsafe {
        match intake {
            Intake::Absent => column.push_null(),
            Intake::Bool => column.push_bool(value.value() != 0),
            Intake::Value(width) => column.push_fixed(&value.value().to_ne_bytes()[..width]),
            Intake::Reference(width) => column.push_fixed(std::slice::from_raw_parts(
                value.cast_mut_ptr::<u8>(),
                width,
            )),
            Intake::Item { packed } => {
                with_item(value, packed, scratch, |item| column.push_item(item))
            }
        }
    }
}

/// Calls `take` with the varlena in the form that lanes hold.
unsafe fn with_item(
    value: pg_sys::Datum,
    packed: bool,
    scratch: &mut Vec<u8>,
    take: impl FnOnce(&[u8]),
) {
    // SAFETY: the caller vouches for a varlena datum; detoasting gives a plain one of either header.
    unsafe {
        let original = value.cast_mut_ptr::<pg_sys::varlena>();
        let plain = pg_sys::pg_detoast_datum_packed(original);
        let start = plain.cast::<u8>();
        let short = *start & 1 == 1;
        let (header, length) = if short {
            (1, (*start >> 1) as usize)
        } else {
            (
                HEADER_BYTES,
                (start.cast::<u32>().read_unaligned() >> 2) as usize,
            )
        };
        let payload = std::slice::from_raw_parts(start.add(header), length - header);
        let wants_short = packed && payload.len() < SHORT_BYTES_MAX;
        if short == wants_short {
            take(std::slice::from_raw_parts(start, length));
        } else {
            scratch.clear();
            if wants_short {
                scratch.push(((payload.len() + 1) << 1) as u8 | 1);
            } else {
                scratch.extend_from_slice(
                    &(((payload.len() + HEADER_BYTES) << 2) as u32).to_ne_bytes(),
                );
            }
            scratch.extend_from_slice(payload);
            take(scratch);
        }
        if plain != original {
            pg_sys::pfree(plain.cast());
        }
    }
}

/// Whether bytes are an item: a varlena that says its own length, and is neither compressed, nor a pointer to a value
/// elsewhere.
pub fn is_item(bytes: &[u8]) -> bool {
    match *bytes {
        // A header of one byte and a length of 0 is that of a pointer.
        [head, ..] if head & 1 == 1 => usize::from(head >> 1) == bytes.len(),
        [a, b, c, d, ..] if a & 0b11 == 0 => {
            u32::from_ne_bytes([a, b, c, d]) as usize >> 2 == bytes.len()
        }
        _ => false,
    }
}

/// What follows the header of an item.
pub fn payload_of_item(item: &[u8]) -> &[u8] {
    let header = match item.first() {
        Some(head) if head & 1 == 1 => 1,
        _ => HEADER_BYTES,
    };
    item.get(header..).unwrap_or_default()
}

/// A plain payload (the bytes of a text or bytea) as the item that a lane of this packing holds.
pub fn item_from_payload(payload: &[u8], packed: bool, item: &mut Vec<u8>) {
    item.clear();
    if packed && payload.len() < SHORT_BYTES_MAX {
        item.push(((payload.len() + 1) << 1) as u8 | 1);
    } else {
        item.extend_from_slice(&(((payload.len() + HEADER_BYTES) << 2) as u32).to_ne_bytes());
    }
    item.extend_from_slice(payload);
}

/// One datum as the bytes that a column of `kind` repeats.
///
/// # Safety
/// `value` is a datum of the attribute's type.
pub unsafe fn to_bytes(
    value: pg_sys::Datum,
    attribute: &pg_sys::FormData_pg_attribute,
    kind: LaneKind,
) -> Vec<u8> {
    // SAFETY: the caller's promise.
    unsafe {
        match intake(attribute, kind) {
            Intake::Absent => Vec::new(),
            Intake::Bool => vec![(value.value() != 0) as u8],
            Intake::Value(width) => value.value().to_ne_bytes()[..width].to_vec(),
            Intake::Reference(width) => {
                std::slice::from_raw_parts(value.cast_mut_ptr::<u8>(), width).to_vec()
            }
            Intake::Item { packed } => {
                let mut bytes = Vec::new();
                with_item(value, packed, &mut Vec::new(), |item| {
                    bytes.extend_from_slice(item)
                });
                bytes
            }
        }
    }
}

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

/// How each attribute of a row is handed out.
///
/// # Safety
/// `descriptor` is a live tuple descriptor whose attributes are of `kinds`.
pub unsafe fn outlets(descriptor: pg_sys::TupleDesc, kinds: &[LaneKind]) -> Vec<Outlet> {
    let outlet = |(i, kind): (usize, &LaneKind)| {
        // SAFETY: the caller's promise.
        let attribute = unsafe { ports::TupleDescAttr(descriptor, i) };
        match kind {
            LaneKind::Absent => Outlet::Null,
            LaneKind::Bool => Outlet::Bool,
            LaneKind::Fixed { width, .. } if attribute.attbyval => Outlet::Value(*width as usize),
            LaneKind::Fixed { .. } | LaneKind::Varlena { .. } => Outlet::Pointer,
        }
    };
    kinds.iter().enumerate().map(outlet).collect()
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

    /// Reads an attribute of a row: its datum, and whether it is NULL.
    ///
    /// The lanes contain the row, and are alive and filled at its place, as whoever made this promised.
    #[inline]
    pub fn value(&self, row: usize, attribute: usize) -> (pg_sys::Datum, bool) {
        let Some((lane, outlet)) = self.lanes.get(attribute) else {
            return (pg_sys::Datum::null(), true);
        };
        // SAFETY: the lanes outlive this, and the row is one of theirs.
        unsafe {
            if matches!(outlet, Outlet::Null) || lane.is_null(row) {
                return (pg_sys::Datum::null(), true);
            }
            let value = match outlet {
                Outlet::Null => pg_sys::Datum::null(),
                Outlet::Bool => pg_sys::Datum::from(lane.bool(row)),
                Outlet::Value(width) => by_value(lane.pointer(row), *width),
                Outlet::Pointer => pg_sys::Datum::from(lane.pointer(row).cast_mut()),
            };
            (value, false)
        }
    }

    /// The datum of a value that is not in the lanes, NULL or not, where the attribute's type is passed by value; `None`
    /// where it is not.
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

/// The bytes of a text, without its header.
///
/// # Safety
/// `value` is a text.
pub unsafe fn text_payload(value: pg_sys::Datum) -> Box<[u8]> {
    let mut bytes = Vec::new();
    // SAFETY: the caller's promise; unpacked, an item has a header of four bytes.
    unsafe {
        with_item(value, false, &mut Vec::new(), |item| {
            bytes.extend_from_slice(&item[HEADER_BYTES..])
        })
    };
    bytes.into_boxed_slice()
}

/// Writes a text as a lane of packed items holds it.
pub fn text_item(value: pg_sys::Datum, item: &mut Vec<u8>) {
    item.clear();
    // SAFETY: the caller's promise.
    unsafe {
        with_item(value, true, &mut Vec::new(), |bytes| {
            item.extend_from_slice(bytes)
        })
    }
}

/// The bytes of a uuid.
pub fn bytes16(value: pg_sys::Datum) -> Bytes16 {
    // SAFETY: the caller's promise.
    unsafe { Bytes16::read(value.cast_mut_ptr()) }
}

/// The elements of an array of any dimensions; `None` is NULL.
///
/// # Safety
/// `value` is an array of elements of this type.
pub unsafe fn array_elements(
    value: pg_sys::Datum,
    element: pg_sys::Oid,
) -> Vec<Option<pg_sys::Datum>> {
    // SAFETY: the caller's promise; what is palloc'd goes with the current memory context.
    unsafe {
        let (mut length, mut by_value, mut align) = (0, false, 0);
        pg_sys::get_typlenbyvalalign(element, &raw mut length, &raw mut by_value, &raw mut align);
        let array = pg_sys::pg_detoast_datum(value.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
        let (mut values, mut nulls, mut count) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
        pg_sys::deconstruct_array(
            array,
            element,
            length.into(),
            by_value,
            align,
            &raw mut values,
            &raw mut nulls,
            &raw mut count,
        );
        (0..count as usize)
            .map(|i| (!*nulls.add(i)).then(|| *values.add(i)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_says_its_own_length() {
        let mut item = Vec::new();
        for (payload, packed) in [(0, true), (1, true), (125, true), (126, true), (7, false)] {
            item_from_payload(&vec![0xff; payload], packed, &mut item);
            assert!(is_item(&item), "{payload} bytes");
            assert_eq!(payload_of_item(&item).len(), payload);
            assert!(!is_item(&item[..item.len() - 1]), "{payload} bytes, cut");
            item.push(0);
            assert!(!is_item(&item), "{payload} bytes, and one more");
        }
    }

    #[test]
    fn pointers_and_compressed_values_are_no_items() {
        // A pointer to a value out of line has 18 bytes in all; the second byte says of which sort.
        let mut pointer = [0; 18];
        (pointer[0], pointer[1]) = (1, 18);
        assert!(!is_item(&pointer));
        assert!(!is_item(&pointer[..1]));
        let mut compressed = [0; 20];
        compressed[..4].copy_from_slice(&(20 << 2 | 0b10_u32).to_ne_bytes());
        assert!(!is_item(&compressed));
        for bytes in [&[][..], &[0], &[0; 3], &[0; 4]] {
            assert!(!is_item(bytes), "{bytes:?}");
        }
    }
}
