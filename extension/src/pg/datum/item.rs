//! Items: values of variable length as lanes hold them.
//!
//! An item is a complete varlena, never compressed and never out of line. It has a one-byte header
//! if the value is short and the column's storage allows that, and a four-byte header otherwise. So
//! reading a lane returns pointers and copies nothing.
//!
//! Whoever reads a lane trusts its items. They came from datums of the column's type, or from a
//! verified batch from which this module made them. Since then they lay in pages of the table, or
//! in object storage under a digest that the table keeps. Items of an image without such a history
//! are checked first, by [`is_item`].

use lanes_columnar::bytes16::Bytes16;
use pgrx::pg_sys;

use crate::pg::descriptor::Attribute;
use crate::pg::{call_ports, executor};

unsafe extern "C-unwind" {
    // It raises no ERROR.
    #[link_name = "datumIsEqual"]
    fn is_equal(a: pg_sys::Datum, b: pg_sys::Datum, by_value: bool, length: i32) -> bool;
}

/// The largest size of a varlena with a one-byte header, header included, plus one.
const SHORT_BYTES_MAX: usize = 0x7f;
const HEADER_BYTES: usize = 4;

/// Calls `take` with a value of a type of variable length in the form that lanes hold.
pub(super) fn with_item(
    value: pg_sys::Datum,
    packed: bool,
    scratch: &mut Vec<u8>,
    take: impl FnOnce(&[u8]),
) {
    // SAFETY: such a value is a varlena; detoasting returns a plain one with a header of either kind.
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

/// A copy of bytes that are a value of a type by reference, in the current memory context.
pub fn allocated(bytes: &[u8]) -> pg_sys::Datum {
    // SAFETY: the memory is as large as the bytes.
    unsafe {
        let value = pg_sys::palloc(bytes.len()).cast::<u8>();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value, bytes.len());
        pg_sys::Datum::from(value)
    }
}

/// The bytes of a value by reference of a type of this length, which came out of a table or was just made, so that it
/// is not an expanded one. The slice is valid as long as the value is.
#[inline]
pub fn bytes_of<'a>(value: pg_sys::Datum, length: i16) -> &'a [u8] {
    // SAFETY: the value is in memory as a whole.
    unsafe { executor::bytes(value, i32::from(length)) }
}

/// What follows the header of a value of variable length. It is detoasted if need be, in the current memory context.
pub fn payload<'a>(value: pg_sys::Datum) -> &'a [u8] {
    // SAFETY: a value of variable length is a live varlena.
    unsafe {
        let item: *mut pg_sys::varlena = value.cast_mut_ptr();
        let is_plain = pgrx::varlena::varatt_is_4b_u(item)
            || pgrx::varlena::varatt_is_1b(item) && !pgrx::varlena::varatt_is_1b_e(item);
        let item = match is_plain {
            true => item,
            false => pg_sys::pg_detoast_datum_packed(item),
        };
        pgrx::varlena::varlena_to_byte_slice(item)
    }
}

/// Whether two values of an attribute have the same bytes.
pub fn have_equal_bytes(a: pg_sys::Datum, b: pg_sys::Datum, attribute: &Attribute) -> bool {
    // SAFETY: both are live values of this attribute.
    unsafe { is_equal(a, b, attribute.attbyval, attribute.attlen.into()) }
}

/// The bytes of a value by reference of a type of this length that is flat in memory; `None` if it is a reference to
/// somewhere else.
pub fn flat_size(value: pg_sys::Datum, length: i16) -> Option<usize> {
    let at = value.cast_mut_ptr::<u8>();
    // SAFETY: a varlena's first byte says how its length is written.
    unsafe {
        match length {
            -1 if *at == 1 => None,
            -1 if *at & 1 == 1 => Some((*at >> 1) as usize),
            -1 => Some((at.cast::<u32>().read_unaligned() >> 2) as usize),
            length => usize::try_from(length).ok(),
        }
    }
}

/// Writes so many bytes of a value by reference over another value, which was allocated for as many at least.
pub fn overwrite(old: pg_sys::Datum, value: pg_sys::Datum, bytes: usize) {
    // SAFETY: two live values, which do not overlap: one of them was allocated for a copy.
    unsafe {
        let (from, to) = (value.cast_mut_ptr::<u8>(), old.cast_mut_ptr::<u8>());
        std::ptr::copy_nonoverlapping(from, to, bytes);
    }
}

/// Frees a [copy](copied).
pub fn free(value: pg_sys::Datum) {
    // SAFETY: the value was allocated, and nobody uses it any more.
    unsafe { pg_sys::pfree(value.cast_mut_ptr()) }
}

/// Appends a value's bytes, in a form that another process of the server can read.
pub fn serialise(value: Option<pg_sys::Datum>, by_value: bool, length: i16, bytes: &mut Vec<u8>) {
    // SAFETY: the value is live and of such a type.
    unsafe { call_ports::datumSerialize(value, by_value, length, bytes) };
}

/// The value that [`serialise`] wrote, in the current memory context. The bytes come from an argument that PostgreSQL
/// passes from a call of the serialisation function.
pub fn restore(bytes: &[u8]) -> Option<pg_sys::Datum> {
    // SAFETY: SQL declares such functions for arguments of type internal only, so nobody else can call them with other
    // bytes.
    unsafe { call_ports::datumRestore(bytes) }
}

/// A copy of a value by reference of a type of this length, in the current memory context.
pub fn copied(value: pg_sys::Datum, length: i16) -> pg_sys::Datum {
    // SAFETY: a live value of such a type.
    unsafe { call_ports::datumCopy(value, false, length) }
}

/// The bytes of a [copy](copied) of a value.
pub fn copied_size(value: pg_sys::Datum, length: i16) -> usize {
    // SAFETY: a live value of such a type.
    unsafe { call_ports::datumGetSize(value, false, length) }
}

/// The value that a datum of an interval points to.
pub fn interval(value: pg_sys::Datum) -> pg_sys::Interval {
    // SAFETY: a live value of this type.
    unsafe { *value.cast_mut_ptr::<pg_sys::Interval>() }
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

/// The bytes of a text, without its header.
pub fn text_payload(value: pg_sys::Datum) -> Box<[u8]> {
    let mut bytes = Vec::new();
    with_item(value, false, &mut Vec::new(), |item| {
        bytes.extend_from_slice(&item[HEADER_BYTES..])
    });
    bytes.into_boxed_slice()
}

/// Writes a text as a lane of packed items holds it.
pub fn text_item(value: pg_sys::Datum, item: &mut Vec<u8>) {
    item.clear();
    with_item(value, true, &mut Vec::new(), |bytes| {
        item.extend_from_slice(bytes)
    });
}

/// The bytes of a uuid.
pub fn bytes16(value: pg_sys::Datum) -> Bytes16 {
    // SAFETY: the caller passes a value of this type.
    unsafe { Bytes16::read(value.cast_mut_ptr()) }
}

/// The elements, which are of this type, of an array of any dimensions; `None` is NULL.
pub fn array_elements(value: pg_sys::Datum, element: pg_sys::Oid) -> Vec<Option<pg_sys::Datum>> {
    // SAFETY: a live array of such elements; what is palloc'd goes with the current memory context.
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

/// A new array of one dimension of elements of this type, in the current memory context; `None` is NULL.
pub fn list(elements: &[Option<pg_sys::Datum>], element: pg_sys::Oid) -> pg_sys::Datum {
    let mut values: Vec<_> = elements
        .iter()
        .map(|e| e.unwrap_or(pg_sys::Datum::null()))
        .collect();
    let mut nulls: Vec<_> = elements.iter().map(Option::is_none).collect();
    let (mut count, mut first) = (elements.len() as i32, 1);
    let dimensions = i32::from(count > 0);
    // SAFETY: as many values and NULLs as the dimension has, all of the element's type.
    unsafe {
        let (mut length, mut by_value, mut align) = (0, false, 0);
        pg_sys::get_typlenbyvalalign(element, &raw mut length, &raw mut by_value, &raw mut align);
        let array = pg_sys::construct_md_array(
            values.as_mut_ptr(),
            nulls.as_mut_ptr(),
            dimensions,
            &raw mut count,
            &raw mut first,
            element,
            length.into(),
            by_value,
            align,
        );
        pg_sys::Datum::from(array)
    }
}

/// Whether an array has one dimension, and counts its elements from 1.
pub fn is_list(value: pg_sys::Datum) -> bool {
    // SAFETY: a live array. After the structure come how many elements each dimension has, then the first place of each.
    unsafe {
        let array = pg_sys::pg_detoast_datum(value.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
        (*array).ndim == 1 && *array.add(1).cast::<i32>().add(1) == 1
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
