//! A list of items as one value. The items are compressed together, because each alone would be too
//! short.
//!
//! | bytes | |
//! |---|---|
//! | 1 | version, 1 |
//! | varint | number of items |
//! | | their lengths and marked bytes, in the form of a vector of items ([`format`](super::format)) |

use super::LANE_ROWS_MAX;
use super::bytes::{ByteReader, malformed, write_varint};
use super::format::SLACK_BYTES;
use super::item_bytes::{each_item, write_items};
use crate::error::{Error, Result};

const VERSION: u8 = 1;

/// Packs items into a value.
///
/// # Errors
/// If there are more than [`LANE_ROWS_MAX`].
pub fn pack_items<'i>(items: impl ExactSizeIterator<Item = &'i [u8]>) -> Result<Vec<u8>> {
    let count = items.len();
    if count > LANE_ROWS_MAX {
        return Err(Error::TooManyRows { rows: count as u64 });
    }
    let mut packed = vec![VERSION];
    write_varint(count as u64, &mut packed);
    write_items(items, &mut packed);
    Ok(packed)
}

/// Calls `visit` with each item that [`pack_items`] packed.
///
/// # Errors
/// If the bytes are not such a value, or are damaged. `visit` may have been called before.
pub fn unpack_items(packed: &[u8], visit: impl FnMut(&[u8])) -> Result<()> {
    // Kernels load whole words.
    let padded = [packed, &[0; SLACK_BYTES]].concat();
    let mut reader = ByteReader::new(&padded, 0, packed.len())?;
    let version = reader.byte()?;
    if version != VERSION {
        return Err(Error::Version { version });
    }
    let count = reader.count()?;
    if count > LANE_ROWS_MAX {
        return malformed("it has too many items");
    }
    let mut room = Vec::new();
    each_item(&mut reader, count, true, &mut room, visit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pack(items: &[Vec<u8>]) -> Vec<u8> {
        pack_items(items.iter().map(Vec::as_slice)).unwrap()
    }

    fn unpack(packed: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut items = Vec::new();
        unpack_items(packed, |item| items.push(item.to_vec()))?;
        Ok(items)
    }

    fn labels(count: usize) -> Vec<Vec<u8>> {
        let set = |place| format!(r#"{{"cpu":"{place}","instance":"host-7:9100","job":"node"}}"#);
        (0..count).map(|place| set(place).into_bytes()).collect()
    }

    #[test]
    fn what_is_alike_takes_little() {
        let items = labels(24);
        let plain: usize = items.iter().map(Vec::len).sum();
        let packed = pack(&items);
        assert!(packed.len() * 4 < plain, "{} of {plain}", packed.len());
        assert_eq!(unpack(&packed).unwrap(), items);
    }

    #[test]
    fn bytes_of_this_version_are_read_for_ever() {
        let golden = b"\x01\x02\x04\x09\x02\x01\x02\x00a\xc3\xa9";
        let items = [b"a".to_vec(), "é".as_bytes().to_vec()];
        assert_eq!(pack(&items), golden, "{:02x?}", pack(&items));
        assert_eq!(unpack(golden).unwrap(), items);
    }

    #[test]
    fn damage_does_no_harm() {
        let packed = pack(&labels(24));
        for length in 0..packed.len() {
            assert!(unpack(&packed[..length]).is_err(), "{length} bytes");
        }
        for place in 0..packed.len() {
            for bit in 0..8 {
                let mut damaged = packed.clone();
                damaged[place] ^= 1 << bit;
                let _ = unpack(&damaged);
            }
        }
        assert!(unpack(&[VERSION, 0xff, 0xff, 0xff, 0xff, 0x0f]).is_err());
        assert!(unpack(&[2, 0]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(
            items in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..50),
        ) {
            prop_assert_eq!(unpack(&pack(&items)).unwrap(), items);
        }
    }
}
