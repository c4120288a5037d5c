//! Protobuf's wire primitives over a borrowed buffer. Nothing is copied, nothing is read past the
//! end, and nothing recurses.

use thiserror::Error;

/// Why bytes are not protobuf.
#[derive(Debug, Error, PartialEq, Eq, Clone, Copy)]
pub enum ProtobufError {
    /// The buffer ends within a varint, a fixed-size value or a length-delimited field.
    #[error("protobuf message is truncated")]
    Truncated,
    /// A varint has more than 64 bits.
    #[error("protobuf varint is longer than 64 bits")]
    VarintTooLong,
    /// The field number is 0, or the key has more than 32 bits.
    #[error("protobuf field key {0} is not legal")]
    Key(u64),
    /// The wire type is a group, which remote write does not use, or is not assigned.
    #[error("protobuf wire type {0} is not supported")]
    WireType(u8),
    /// A known field has a wire type other than its own.
    #[error("protobuf field {field} has the wrong wire type {wire_type}")]
    FieldType {
        /// The field number.
        field: u32,
        /// The wire type found.
        wire_type: u8,
    },
}

/// The wire type of varints.
pub const VARINT: u8 = 0;
/// The wire type of eight-byte values.
pub const FIXED64: u8 = 1;
/// The wire type of strings, bytes and messages.
pub const DELIMITED: u8 = 2;
const FIXED32: u8 = 5;

/// The number and wire type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The field number, at least 1.
    pub field: u32,
    /// The wire type, not yet checked.
    pub wire_type: u8,
}

impl Key {
    /// Returns the error for a known field with a wrong wire type.
    pub fn mismatch(self) -> ProtobufError {
        ProtobufError::FieldType {
            field: self.field,
            wire_type: self.wire_type,
        }
    }
}

/// A reader from the front of a buffer.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes that have not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads a varint of up to 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, ProtobufError> {
        if let [first, rest @ ..] = self.rest
            && *first < 0x80
        {
            self.rest = rest;
            return Ok(u64::from(*first));
        }
        self.varint_long()
    }

    fn varint_long(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0u64;
        for (index, &byte) in self.rest.iter().take(10).enumerate() {
            // The tenth byte holds only bit 63.
            if index == 9 && byte > 1 {
                return Err(ProtobufError::VarintTooLong);
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(if self.rest.len() < 10 {
            ProtobufError::Truncated
        } else {
            ProtobufError::VarintTooLong
        })
    }

    /// Reads the key of the next field; `None` at the end.
    #[inline]
    pub fn key(&mut self) -> Result<Option<Key>, ProtobufError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let raw = self.varint()?;
        let key = u32::try_from(raw).map_err(|_| ProtobufError::Key(raw))?;
        if key >> 3 == 0 {
            return Err(ProtobufError::Key(raw));
        }
        Ok(Some(Key {
            field: key >> 3,
            wire_type: (key & 7) as u8,
        }))
    }

    /// Reads the payload of a length-delimited field.
    #[inline]
    pub fn delimited(&mut self) -> Result<&'a [u8], ProtobufError> {
        let length = self.varint()?;
        let length = usize::try_from(length).map_err(|_| ProtobufError::Truncated)?;
        let (payload, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(ProtobufError::Truncated)?;
        self.rest = rest;
        Ok(payload)
    }

    /// Reads eight little-endian bytes.
    #[inline]
    pub fn fixed64(&mut self) -> Result<u64, ProtobufError> {
        let (bytes, rest) = self
            .rest
            .split_first_chunk::<8>()
            .ok_or(ProtobufError::Truncated)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// Skips the value of an unknown field.
    pub fn skip(&mut self, wire_type: u8) -> Result<(), ProtobufError> {
        match wire_type {
            VARINT => self.varint().map(drop),
            FIXED64 => self.fixed64().map(drop),
            DELIMITED => self.delimited().map(drop),
            FIXED32 => {
                let (_, rest) = self
                    .rest
                    .split_at_checked(4)
                    .ok_or(ProtobufError::Truncated)?;
                self.rest = rest;
                Ok(())
            }
            other => Err(ProtobufError::WireType(other)),
        }
    }
}

/// Appends a varint.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The number of bytes that [`put_varint`] appends.
pub fn varint_bytes(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends the key of a field.
pub fn put_key(out: &mut Vec<u8>, field: u32, wire_type: u8) {
    put_varint(out, u64::from(field << 3 | u32::from(wire_type)));
}

/// Appends a length-delimited field.
pub fn put_delimited(out: &mut Vec<u8>, field: u32, payload: &[u8]) {
    put_key(out, field, DELIMITED);
    put_varint(out, payload.len() as u64);
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_at_every_length() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut bytes = Vec::new();
                put_varint(&mut bytes, value);
                assert_eq!(bytes.len(), varint_bytes(value), "{value}");
                let mut reader = Reader::new(&bytes);
                assert_eq!(reader.varint(), Ok(value));
                assert!(reader.is_empty());
            }
        }
    }

    #[test]
    fn varints_too_long_or_cut_are_refused() {
        assert_eq!(
            Reader::new(&[0x80; 9]).varint(),
            Err(ProtobufError::Truncated)
        );
        assert_eq!(
            Reader::new(&[0x80; 11]).varint(),
            Err(ProtobufError::VarintTooLong)
        );
        let mut past_64_bits = [0xff; 10];
        past_64_bits[9] = 0x02;
        assert_eq!(
            Reader::new(&past_64_bits).varint(),
            Err(ProtobufError::VarintTooLong)
        );
    }

    #[test]
    fn lengths_past_the_end_are_refused_without_wrapping() {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, u64::MAX);
        assert_eq!(
            Reader::new(&bytes).delimited(),
            Err(ProtobufError::Truncated)
        );
        assert_eq!(
            Reader::new(&[3, 1, 2]).delimited(),
            Err(ProtobufError::Truncated)
        );
    }

    #[test]
    fn groups_and_field_zero_are_refused() {
        assert_eq!(Reader::new(&[]).skip(3), Err(ProtobufError::WireType(3)));
        assert_eq!(Reader::new(&[0x02]).key(), Err(ProtobufError::Key(2)));
        let mut wide = Vec::new();
        put_varint(&mut wide, 1 << 33 | 2);
        assert_eq!(
            Reader::new(&wide).key(),
            Err(ProtobufError::Key(1 << 33 | 2))
        );
    }
}
