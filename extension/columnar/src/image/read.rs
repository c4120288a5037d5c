//! Reading an image's bytes without trusting them.

use crate::bits;
use crate::error::{Error, Result};

/// The unread rest of an image.
#[derive(Clone)]
pub(super) struct ImageReader<'a> {
    bytes: &'a [u8],
}

impl<'a> ImageReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        ImageReader { bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Everything that is left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// Fails unless everything has been read.
    pub(super) fn end(&self) -> Result<()> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(Error::Malformed("bytes after the end of a column"))
        }
    }

    #[inline]
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self.bytes.split_at_checked(count).ok_or(Error::Truncated)?;
        self.bytes = rest;
        Ok(bytes)
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (array, rest) = self
            .bytes
            .split_first_chunk::<N>()
            .ok_or(Error::Truncated)?;
        self.bytes = rest;
        Ok(*array)
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Result<u32> {
        let mut value = 0_u64;
        for shift in (0..35).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value)
                    .map_err(|_| Error::Malformed("a varint exceeds 32 bits"));
            }
        }
        Err(Error::Malformed("a varint exceeds 5 bytes"))
    }

    /// A bitmap of `rows` bits, as words.
    pub(super) fn bitmap(&mut self, rows: usize) -> Result<Vec<u64>> {
        let bytes = self.bytes(rows.div_ceil(8))?;
        let (whole, rest) = bytes.as_chunks::<8>();
        let mut words = Vec::with_capacity(bits::words(rows));
        words.extend(whole.iter().map(|&word| u64::from_le_bytes(word)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            words.push(u64::from_le_bytes(last));
        }
        if let Some(last) = words.last()
            && last & !bits::low_bits((rows - 1) % 64 + 1) != 0
        {
            return Err(Error::Malformed("a bitmap has bits past the last row"));
        }
        Ok(words)
    }

    /// `count` unsigned integers of `width` bytes: 1, 2 or 4.
    pub(super) fn integers(
        &mut self,
        count: usize,
        width: usize,
    ) -> Result<impl Iterator<Item = u32> + Clone + use<'a>> {
        let bytes = self.bytes(count.checked_mul(width).ok_or(Error::Truncated)?)?;
        Ok(bytes.chunks_exact(width).map(|bytes| match *bytes {
            [a] => u32::from(a),
            [a, b] => u32::from(u16::from_le_bytes([a, b])),
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
            _ => 0,
        }))
    }

    /// `count` items: first all their lengths, then all their bytes.
    pub(super) fn items(
        &mut self,
        count: usize,
        length_width: usize,
    ) -> Result<impl Iterator<Item = &'a [u8]> + use<'a>> {
        let lengths = self.integers(count, length_width)?;
        // At most 2^30 lengths of at most 2^32 bytes: no overflow.
        let total = lengths.clone().map(u64::from).sum::<u64>();
        let total = usize::try_from(total).map_err(|_| Error::Truncated)?;
        let mut items = ImageReader::new(self.bytes(total)?);
        Ok(lengths.map(move |length| items.bytes(length as usize).unwrap_or_default()))
    }
}
