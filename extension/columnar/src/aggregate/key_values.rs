//! The values of a key and their ids, which are dense and count from 0 in order of appearance. Readers of several
//! tables may share them: then equal values have one id in all.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::number_ids::NumberIds;
use super::text_ids::TextIds;
use crate::buffer::reserve_huge;
use crate::bytes16::Bytes16;
use crate::vector::number::Scalar;

/// The value of a key.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum KeyValue<'a> {
    /// NULL.
    Null,
    /// An item, header included.
    Text(&'a [u8]),
    /// A number.
    Number(Scalar),
    /// A truth.
    Truth(bool),
    /// 16 bytes.
    Bytes16(&'a [u8; 16]),
}

/// Multiplies and folds: the keys are few and nobody chooses them to collide across 2^64.
#[derive(Default)]
pub(crate) struct MixHasher(u64);

impl Hasher for MixHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= xxhash_rust::xxh3::xxh3_64(bytes);
    }
    fn write_u64(&mut self, value: u64) {
        let wide = u128::from(self.0 ^ value ^ 0x9e37_79b9_7f4a_7c15)
            .wrapping_mul(0xd6e8_feb8_6659_fd93_a5a3_56b1_0d2f_9c31);
        self.0 = (wide >> 64) as u64 ^ wide as u64;
    }
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

pub(crate) type MixMap<K> = HashMap<K, u32, BuildHasherDefault<MixHasher>>;

/// The id of a value that a [closed](KeyValues::close) [`KeyValues`] does not know.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// The values that a key has had so far.
#[derive(Default)]
pub(crate) struct KeyValues {
    /// Whether new values are refused an id.
    closed: bool,
    null: Option<u32>,
    numbers: NumberIds,
    pub(super) texts: TextIds,
    /// All texts, as items one after another.
    pub(super) items: Vec<u8>,
    bytes16: MixMap<Bytes16>,
    /// All values of 16 bytes, in the order of their ids.
    bytes16_values: Vec<[u8; 16]>,
    pub(super) values: Vec<OwnedValue>,
}

/// The value of an id. There are many of them: 16 bytes each.
#[derive(Clone, Copy)]
pub(super) enum OwnedValue {
    Null,
    /// An item among [`KeyValues::items`].
    Text {
        start: usize,
        length: u32,
    },
    Number(Scalar),
    Truth(bool),
    /// An index among [`KeyValues::bytes16_values`].
    Bytes16(u32),
}

const _: () = assert!(size_of::<OwnedValue>() == 16);

/// The text of an item. Two items of one text may differ in their headers: a column's storage decides
/// how short texts are kept.
#[inline]
pub(super) fn payload(item: &[u8]) -> &[u8] {
    &item[if item[0] & 1 == 1 { 1 } else { 4 }..]
}

impl KeyValues {
    /// Takes in no more values: from now on the id of a new value is [`UNKNOWN`].
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Frees the memory by which numbers are found. Their [values](Self::value) remain.
    pub(crate) fn free_number_ids(&mut self) {
        self.numbers = NumberIds::default();
    }

    /// Whether most numbers do not lie close together.
    pub(crate) fn has_scattered_numbers(&self) -> bool {
        self.numbers.are_scattered()
    }

    /// All integers and their ids; none if no value is an integer.
    pub(crate) fn integers(&self) -> Option<Vec<(i64, u32)>> {
        if self.numbers.is_empty() {
            return None;
        }
        let numbers = self.numbers.iter();
        Some(numbers.map(|(bits, id)| (bits as i64, id)).collect())
    }

    /// The id of NULL.
    pub(crate) fn null(&mut self) -> u32 {
        if self.closed {
            return self.null.unwrap_or(UNKNOWN);
        }
        *self.null.get_or_insert_with(|| {
            self.values.push(OwnedValue::Null);
            self.values.len() as u32 - 1
        })
    }

    /// The id of NULL, if one was met.
    pub(crate) fn null_if_any(&self) -> Option<u32> {
        self.null
    }

    /// The id of a number. Numbers that are equal have the same canonical bits.
    #[inline]
    pub(crate) fn number(&mut self, canonical: u64, value: Scalar) -> u32 {
        match self.numbers.get(canonical) {
            Some(id) => id,
            None => self.new_number(canonical, OwnedValue::Number(value)),
        }
    }

    /// The ids of integers that lie close together: see [`NumberIds::array`].
    pub(super) fn integer_array(&self) -> Option<(i64, &[u32])> {
        self.numbers.array()
    }

    /// The id of a truth.
    pub(crate) fn truth(&mut self, truth: bool) -> u32 {
        match self.numbers.get(truth.into()) {
            Some(id) => id,
            None => self.new_number(truth.into(), OwnedValue::Truth(truth)),
        }
    }

    /// The id of a number, or of a truth, that has none yet.
    #[cold]
    fn new_number(&mut self, canonical: u64, value: OwnedValue) -> u32 {
        if self.closed {
            return UNKNOWN;
        }
        let id = self.values.len() as u32;
        self.values.push(value);
        self.numbers.insert(canonical, id);
        id
    }

    /// The id of a number that mostly follows that of another id, as in rows that come in the order of
    /// those before. For the first one, [`UNKNOWN`] stands for the id before.
    #[inline]
    pub(crate) fn number_after(&mut self, before: u32, canonical: u64, value: Scalar) -> u32 {
        let next = before.wrapping_add(1);
        match self.values.get(next as usize) {
            Some(OwnedValue::Number(scalar)) if scalar.0 == canonical => next,
            _ => self.number(canonical, value),
        }
    }

    /// The id of a text, given as an item.
    pub(crate) fn text(&mut self, item: &[u8]) -> u32 {
        self.text_of_hash(self.texts.hash(payload(item)), item)
    }

    /// The id of a text, given as an item, of which the hash is known.
    pub(super) fn text_of_hash(&mut self, hash: u32, item: &[u8]) -> u32 {
        let text = payload(item);
        let (values, items) = (&self.values, &self.items);
        let is_text = |id: u32| match values[id as usize] {
            OwnedValue::Text { start, length } => {
                payload(&items[start..start + length as usize]) == text
            }
            _ => false,
        };
        let known = self.texts.find(hash, is_text);
        if known != UNKNOWN || self.closed {
            return known;
        }
        let id = self.values.len() as u32;
        self.texts.insert(hash, id);
        let end = self.items.len() + item.len();
        reserve_huge(&mut self.values, id as usize + 1);
        self.values.push(OwnedValue::Text {
            start: self.items.len(),
            length: item.len() as u32,
        });
        reserve_huge(&mut self.items, end);
        self.items.extend_from_slice(item);
        id
    }

    /// The id of 16 bytes.
    #[inline]
    pub(crate) fn bytes16(&mut self, value: Bytes16) -> u32 {
        if self.closed {
            return self.bytes16.get(&value).copied().unwrap_or(UNKNOWN);
        }
        let (values, all) = (&mut self.values, &mut self.bytes16_values);
        *self.bytes16.entry(value).or_insert_with(|| {
            values.push(OwnedValue::Bytes16(all.len() as u32));
            all.push(value.bytes());
            values.len() as u32 - 1
        })
    }

    /// All values of 16 bytes; none if no value is one.
    pub(crate) fn all_bytes16(&self) -> Option<impl Iterator<Item = Bytes16> + '_> {
        (!self.bytes16.is_empty()).then(|| self.bytes16.keys().copied())
    }

    /// How two values lie in a table that is sealed by them (see [`crate::sort`]): items by their bytes, integers, NULL
    /// last.
    pub(crate) fn order(&self, a: u32, b: u32) -> Ordering {
        use KeyValue::{Bytes16, Null, Number, Text, Truth};
        match (self.value(a), self.value(b)) {
            (Text(a), Text(b)) => a.cmp(b),
            (Number(a), Number(b)) => (a.0 as i64).cmp(&(b.0 as i64)),
            (Truth(a), Truth(b)) => a.cmp(&b),
            (Bytes16(a), Bytes16(b)) => a.cmp(b),
            (a, b) => matches!(a, Null).cmp(&matches!(b, Null)),
        }
    }

    /// The value of an id.
    pub(crate) fn value(&self, id: u32) -> KeyValue<'_> {
        match &self.values[id as usize] {
            OwnedValue::Null => KeyValue::Null,
            OwnedValue::Text { start, length } => {
                KeyValue::Text(&self.items[*start..*start + *length as usize])
            }
            OwnedValue::Number(scalar) => KeyValue::Number(*scalar),
            OwnedValue::Truth(truth) => KeyValue::Truth(*truth),
            OwnedValue::Bytes16(index) => KeyValue::Bytes16(&self.bytes16_values[*index as usize]),
        }
    }

    /// How many different values were met.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Bytes of all texts.
    pub(crate) fn item_bytes(&self) -> usize {
        self.items.len()
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.items.capacity()
            + self.values.capacity() * size_of::<OwnedValue>()
            + self.numbers.bytes()
            + self.texts.bytes()
            + self.bytes16.capacity() * 40
            + self.bytes16_values.capacity() * size_of::<Bytes16>()
    }
}
