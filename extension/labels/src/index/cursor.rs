//! Numbers and texts in bytes, written and read back.

use crate::Malformed;

/// Appends a number, seven bits a byte.
pub fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a text as how much of its beginning is that of the text before, and the rest.
pub fn write_after(before: &str, text: &str, out: &mut Vec<u8>) {
    let same = |(a, b): &(u8, u8)| a == b;
    let shared = before.bytes().zip(text.bytes()).take_while(same).count();
    write_number(shared as u64, out);
    write_number((text.len() - shared) as u64, out);
    out.extend_from_slice(&text.as_bytes()[shared..]);
}

/// Bytes, read from their beginning.
#[derive(Clone, Copy)]
pub struct Cursor<'b>(pub &'b [u8]);

impl<'b> Cursor<'b> {
    /// A number.
    ///
    /// # Errors
    /// If the bytes end, or the number has more than 64 bits.
    pub fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes(1)?.first().unwrap_or(&0);
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Malformed("a number is too long"))
    }

    /// A number of 32 bits.
    ///
    /// # Errors
    /// If the bytes end, or the number has more.
    pub fn small(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed("a number is too large"))
    }

    /// A number of things that take at least a byte each.
    ///
    /// # Errors
    /// If there are fewer bytes left.
    pub fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.small()? as usize;
        match count <= self.0.len() {
            true => Ok(count),
            false => Err(Malformed("there is less than is counted")),
        }
    }

    /// Bytes.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn bytes(&mut self, count: usize) -> Result<&'b [u8], Malformed> {
        let split = self.0.split_at_checked(count);
        let (bytes, rest) = split.ok_or(Malformed("the bytes end too early"))?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Replaces the text before by the next text, as [`write_after`] wrote it.
    ///
    /// # Errors
    /// If the bytes are not such a text.
    pub fn text_after(&mut self, text: &mut Text) -> Result<(), Malformed> {
        let shared = self.small()? as usize;
        let length = self.count()?;
        if shared > text.0.len() {
            return Err(Malformed("a text shares more than the text before has"));
        }
        text.0.truncate(shared);
        text.0.extend_from_slice(self.bytes(length)?);
        Ok(())
    }
}

/// A text under construction.
#[derive(Default)]
pub struct Text(Vec<u8>);

impl Text {
    /// The text.
    ///
    /// # Errors
    /// If it is no UTF-8.
    pub fn as_str(&self) -> Result<&str, Malformed> {
        std::str::from_utf8(&self.0).map_err(|_| Malformed("a text is not valid UTF-8"))
    }
}
