//! Views of verified vectors. None assumes alignment.

/// Elements of `N` bytes each; the checked length leaves no rest.
pub(crate) fn chunks<const N: usize>(bytes: &[u8]) -> &[[u8; N]] {
    bytes.as_chunks().0
}

/// Bytes of a bitmap of `rows` bits.
pub(crate) const fn bitmap_bytes(rows: usize) -> usize {
    rows.div_ceil(8)
}

/// One bit a row, least significant bit first. Bits past the last row never show.
#[derive(Clone, Copy, Debug)]
pub struct Bitmap<'a> {
    bytes: &'a [u8],
    rows: usize,
}

impl<'a> Bitmap<'a> {
    /// `bytes` must be [`bitmap_bytes`] of `rows` long.
    pub(crate) fn new(bytes: &'a [u8], rows: usize) -> Self {
        debug_assert_eq!(bytes.len(), bitmap_bytes(rows));
        Bitmap { bytes, rows }
    }

    /// Number of bits.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes of all bits.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bit of `row`; false past the end.
    #[inline]
    pub fn get(&self, row: usize) -> bool {
        row < self.rows && self.bytes[row / 8] >> (row % 8) & 1 == 1
    }

    /// Number of ones.
    pub fn count_ones(&self) -> usize {
        self.words()
            .map(|word| word.count_ones() as usize)
            .sum::<usize>()
    }

    /// The bits in words of 64 rows, the rest of the last word zero.
    pub fn words(&self) -> impl Iterator<Item = u64> + use<'a> {
        let (whole, rest) = self.bytes.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let last = (!rest.is_empty()).then(|| u64::from_le_bytes(last));
        let rows = self.rows;
        whole
            .iter()
            .map(|bytes| u64::from_le_bytes(*bytes))
            .chain(last)
            .enumerate()
            .map(move |(index, word)| match rows - index * 64 {
                left @ 1..64 => word & (u64::MAX >> (64 - left)),
                _ => word,
            })
    }

    /// Replaces `words` by [`Self::words`].
    pub fn words_into(&self, words: &mut Vec<u64>) {
        words.clear();
        words.extend(self.words());
    }
}

/// A list of byte strings: end offsets into one byte vector.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a> {
    ends: &'a [[u8; 4]],
    bytes: &'a [u8],
    /// The bytes as text, if they are text.
    text: Option<&'a str>,
}

impl<'a> Items<'a> {
    /// Checks that the ends ascend to `bytes.len()`, and are between characters if there is a
    /// `text`.
    pub(crate) fn new(ends: &'a [[u8; 4]], bytes: &'a [u8], text: Option<&'a str>) -> Self {
        Items { ends, bytes, text }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all items together.
    pub fn bytes_total(&self) -> usize {
        self.bytes.len()
    }

    /// The end offsets, as they lie.
    pub(crate) fn ends_bytes(&self) -> &'a [u8] {
        self.ends.as_flattened()
    }

    /// The bytes of all items.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    fn range(&self, item: usize) -> std::ops::Range<usize> {
        let start = match item {
            0 => 0,
            _ => u32::from_le_bytes(self.ends[item - 1]),
        };
        start as usize..u32::from_le_bytes(self.ends[item]) as usize
    }

    /// The bytes of `item`, which must be below [`Self::len`].
    #[inline]
    pub fn get(&self, item: usize) -> &'a [u8] {
        &self.bytes[self.range(item)]
    }

    /// The item as text; `None` in a column of type `Bytes`. `item` must be below [`Self::len`].
    #[inline]
    pub fn text(&self, item: usize) -> Option<&'a str> {
        self.text.map(|text| &text[self.range(item)])
    }

    /// All items in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let items = *self;
        (0..items.len()).map(move |item| items.get(item))
    }
}

/// One dictionary code a row, each below the item count.
#[derive(Clone, Copy, Debug)]
pub enum Codes<'a> {
    /// One byte a code.
    U8(&'a [u8]),
    /// Two bytes a code, little-endian.
    U16(&'a [[u8; 2]]),
    /// Four bytes a code, little-endian.
    U32(&'a [[u8; 4]]),
}

impl Codes<'_> {
    /// Number of codes.
    pub fn len(&self) -> usize {
        match self {
            Codes::U8(codes) => codes.len(),
            Codes::U16(codes) => codes.len(),
            Codes::U32(codes) => codes.len(),
        }
    }

    /// Whether there is no code.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The code of `row`, which must be below [`Self::len`].
    #[inline]
    pub fn get(&self, row: usize) -> u32 {
        match self {
            Codes::U8(codes) => u32::from(codes[row]),
            Codes::U16(codes) => u32::from(u16::from_le_bytes(codes[row])),
            Codes::U32(codes) => u32::from_le_bytes(codes[row]),
        }
    }

    /// Replaces `wide` by the codes.
    pub fn widen_into(&self, wide: &mut Vec<u32>) {
        wide.clear();
        match self {
            Codes::U8(codes) => wide.extend(codes.iter().map(|code| u32::from(*code))),
            Codes::U16(codes) => wide.extend(
                codes
                    .iter()
                    .map(|code| u32::from(u16::from_le_bytes(*code))),
            ),
            Codes::U32(codes) => wide.extend(codes.iter().map(|code| u32::from_le_bytes(*code))),
        }
    }

    /// The greatest code; `None` without codes.
    pub(crate) fn max(&self) -> Option<u32> {
        // Folds, which unlike `Iterator::max` become vector code.
        let greatest = match self {
            Codes::U8(codes) => codes.iter().fold(0, |most, code| most.max(*code)).into(),
            Codes::U16(codes) => codes
                .iter()
                .fold(0, |most, code| most.max(u16::from_le_bytes(*code)))
                .into(),
            Codes::U32(codes) => codes
                .iter()
                .fold(0, |most, code| most.max(u32::from_le_bytes(*code))),
        };
        (!self.is_empty()).then_some(greatest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitmap_words_mask_the_rest() {
        let bytes = [0xff_u8; 17];
        for rows in [0, 1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 136] {
            let bitmap = Bitmap::new(&bytes[..bitmap_bytes(rows)], rows);
            assert_eq!(bitmap.count_ones(), rows, "{rows}");
            assert_eq!(bitmap.words().count(), rows.div_ceil(64), "{rows}");
            assert!(!bitmap.get(rows));
        }
    }
}
