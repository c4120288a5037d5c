//! The bytes of an encoded lane, written in order and read back without trusting them.

use super::format::SLACK_BYTES;
use crate::error::{Error, Result};

/// An error about the bytes of an encoded lane.
#[cold]
pub(super) fn malformed<T>(what: &'static str) -> Result<T> {
    Err(Error::EncodedLane(what))
}

/// The unread rest of one section. Invariant: `at <= end`, and [`SLACK_BYTES`] bytes follow `end`.
#[derive(Clone, Copy)]
pub(super) struct ByteReader<'a> {
    lane: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> ByteReader<'a> {
    /// Reads `lane[start..end]`.
    pub(super) fn new(lane: &'a [u8], start: usize, end: usize) -> Result<Self> {
        if start > end || lane.len().saturating_sub(SLACK_BYTES) < end {
            return malformed("a section is outside the lane");
        }
        Ok(ByteReader {
            lane,
            at: start,
            end,
        })
    }

    #[inline]
    pub(super) fn remaining(&self) -> usize {
        self.end - self.at
    }

    /// Fails unless everything has been read.
    pub(super) fn end(&self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            _ => malformed("bytes after the end of a section"),
        }
    }

    #[inline]
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.remaining() {
            return malformed("a section is cut short");
        }
        let bytes = &self.lane[self.at..self.at + count];
        self.at += count;
        Ok(bytes)
    }

    /// A reader of the next `count` bytes.
    pub(super) fn part(&mut self, count: usize) -> Result<ByteReader<'a>> {
        let start = self.at;
        self.bytes(count)?;
        ByteReader::new(self.lane, start, self.at)
    }

    /// Reads bytes like [`bytes`](Self::bytes), and includes the slack after them in the slice.
    #[inline]
    pub(super) fn bytes_and_slack(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.remaining() {
            return malformed("a section is cut short");
        }
        let bytes = &self.lane[self.at..self.at + count + SLACK_BYTES];
        self.at += count;
        Ok(bytes)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8> {
        if self.at == self.end {
            return malformed("a section is cut short");
        }
        let byte = self.lane[self.at];
        self.at += 1;
        Ok(byte)
    }

    /// An unsigned LEB128 number of at most 10 bytes.
    #[inline(always)]
    pub(super) fn varint(&mut self) -> Result<u64> {
        // Most are of one byte.
        if self.at < self.end && self.lane[self.at] < 0x80 {
            self.at += 1;
            return Ok(self.lane[self.at - 1].into());
        }
        let (value, rest) = self.long_varint()?;
        *self = rest;
        Ok(value)
    }

    /// Takes a copy and returns one, so that a reader in a loop can stay in registers.
    #[inline(never)]
    fn long_varint(mut self) -> Result<(u64, Self)> {
        let mut value = 0_u64;
        let mut shift = 0;
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return malformed("a varint exceeds 64 bits");
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok((value, self));
            }
            shift += 7;
            if shift > 63 {
                return malformed("a varint exceeds 10 bytes");
            }
        }
    }

    /// A signed number: zigzag, then LEB128.
    #[inline]
    pub(super) fn signed(&mut self) -> Result<i64> {
        Ok(unzigzag(self.varint()?))
    }

    /// A number that counts rows or bytes.
    #[inline]
    pub(super) fn count(&mut self) -> Result<usize> {
        usize::try_from(self.varint()?).or_else(|_| malformed("a count exceeds this machine"))
    }

    /// Bits for `rows` rows as words; bits past the last row are 0.
    pub(super) fn bitmap(&mut self, rows: usize, words: &mut [u64]) -> Result<()> {
        let bytes = self.bytes(rows.div_ceil(8))?;
        let (whole, rest) = bytes.as_chunks::<8>();
        for (word, bytes) in words.iter_mut().zip(whole) {
            *word = u64::from_le_bytes(*bytes);
        }
        if let Some(word) = words.get_mut(whole.len())
            && !rest.is_empty()
        {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            *word = u64::from_le_bytes(last);
        }
        if !rows.is_multiple_of(64)
            && let Some(last) = words.get_mut(rows / 64)
        {
            *last &= crate::bits::low_bits(rows % 64);
        }
        Ok(())
    }
}

/// Small numbers of either sign as small unsigned numbers.
#[inline]
pub(super) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[inline]
fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[inline]
pub(super) fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
pub(super) fn write_signed(value: i64, out: &mut Vec<u8>) {
    write_varint(zigzag(value), out);
}

/// Bytes that [`write_varint`] takes.
#[inline]
pub(super) fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Bytes that [`write_signed`] takes.
#[inline]
pub(super) fn signed_len(value: i64) -> usize {
    varint_len(zigzag(value))
}

/// Appends the first `rows` bits of a bitmap, whole bytes, the rest 0.
pub(super) fn write_bitmap(words: &[u64], rows: usize, out: &mut Vec<u8>) {
    let start = out.len();
    for word in &words[..crate::bits::words(rows)] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.truncate(start + rows.div_ceil(8));
    if !rows.is_multiple_of(8)
        && let Some(last) = out.last_mut()
    {
        *last &= (1 << (rows % 8)) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_as_many_bytes_as_said() {
        let numbers = [
            0,
            1,
            -1,
            63,
            64,
            -64,
            -65,
            1 << 20,
            i64::MAX,
            i64::MIN,
            i64::MAX - 1,
        ];
        for number in numbers {
            let mut bytes = Vec::new();
            write_signed(number, &mut bytes);
            let end = bytes.len();
            assert_eq!(end, signed_len(number), "{number}");
            bytes.extend_from_slice(&[0; SLACK_BYTES]);
            let mut reader = ByteReader::new(&bytes, 0, end).unwrap();
            assert_eq!(reader.signed(), Ok(number));
            assert_eq!(reader.end(), Ok(()));
        }
    }

    #[test]
    fn numbers_that_are_too_long_are_refused() {
        for bytes in [[0xff; 30], [0x80; 30]] {
            let mut reader = ByteReader::new(&bytes, 0, 14).unwrap();
            assert!(reader.varint().is_err());
        }
        let mut eleven = [0x80; 30];
        eleven[9] = 2;
        assert!(ByteReader::new(&eleven, 0, 14).unwrap().varint().is_err());
        assert!(
            ByteReader::new(&[0x80; 30], 0, 3)
                .unwrap()
                .varint()
                .is_err()
        );
    }
}
