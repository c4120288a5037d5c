//! A protobuf message that is compressed while it is written.
//!
//! A message begins with lengths that are known only at its end, and so does snappy's block format.
//! Its parts refer to nothing outside of themselves, so they are compressed one by one, and what
//! goes before them is written when they are complete. So a message takes the memory of its
//! compressed bytes.
//!
//! | part | bytes |
//! |---|---|
//! | the length of the message before compression | a varint |
//! | its pieces | compressed, each from 64 KiB of the message or from what lies between two others |

use bytes::Bytes;

use crate::series::protobuf::{DELIMITED, put_key, put_varint};

/// The bytes from which on a piece is compressed: one block of snappy.
const PIECE_BYTES: usize = 64 << 10;

/// A message.
#[derive(Debug, Default)]
pub struct Message {
    /// The compressed pieces.
    pieces: Vec<Bytes>,
    /// The bytes of the pieces, compressed and before.
    packed_bytes: usize,
    plain_bytes: usize,
    /// The last bytes, which are not compressed yet.
    open: Vec<u8>,
}

impl Message {
    /// Appends bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.write(|out| out.extend_from_slice(bytes));
    }

    /// Appends the bytes that a function appends.
    pub fn write(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        append(&mut self.open);
        if self.open.len() >= PIECE_BYTES {
            self.pack();
        }
    }

    /// Appends a message as a field.
    pub fn nest(&mut self, field: u32, inner: Message) {
        put_key(&mut self.open, field, DELIMITED);
        put_varint(&mut self.open, inner.bytes() as u64);
        if inner.pieces.is_empty() {
            return self.extend(&inner.open);
        }
        self.pack();
        self.pieces.extend(inner.pieces);
        self.packed_bytes += inner.packed_bytes;
        self.plain_bytes += inner.plain_bytes;
        self.open = inner.open;
    }

    /// The bytes of the message before compression.
    pub fn bytes(&self) -> usize {
        self.plain_bytes + self.open.len()
    }

    /// The bytes that the message holds.
    pub fn held_bytes(&self) -> usize {
        self.packed_bytes + self.pieces.len() * size_of::<Bytes>() + self.open.capacity()
    }

    /// Returns the compressed message in pieces.
    pub fn finish(mut self) -> Vec<Bytes> {
        let mut length = Vec::new();
        put_varint(&mut length, self.bytes() as u64);
        self.pack();
        self.pieces.insert(0, length.into());
        self.pieces
    }

    fn pack(&mut self) {
        if self.open.is_empty() {
            return;
        }
        // The encoder fails only for more than 4 GiB, and a piece is short.
        let packed = snap::raw::Encoder::new().compress_vec(&self.open);
        let packed = without_length(packed.unwrap_or_default());
        self.plain_bytes += self.open.len();
        self.packed_bytes += packed.len();
        self.pieces.push(packed);
        self.open.clear();
    }
}

/// Returns a block without the varint at its front.
fn without_length(block: Vec<u8>) -> Bytes {
    let length = block.iter().take_while(|byte| **byte >= 0x80).count() + 1;
    let length = length.min(block.len());
    Bytes::from(block).slice(length..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::protobuf::put_delimited;

    fn unpacked(message: Message) -> Vec<u8> {
        let bytes = message.bytes();
        let body = message.finish().concat();
        let plain = snap::raw::Decoder::new().decompress_vec(&body).unwrap();
        assert_eq!(plain.len(), bytes);
        plain
    }

    fn of(bytes: &[u8]) -> Message {
        let mut message = Message::default();
        bytes.chunks(1000).for_each(|bytes| message.extend(bytes));
        message
    }

    #[test]
    fn messages_of_any_length_are_nested() {
        let texts = [
            0,
            1,
            1000,
            PIECE_BYTES - 1,
            PIECE_BYTES,
            5 * PIECE_BYTES + 7,
        ]
        .map(|bytes| (0..bytes).map(|n| (n / 3 % 251) as u8).collect::<Vec<u8>>());
        let mut outer = Message::default();
        let mut expected = Vec::new();
        for text in texts.iter().chain(texts.iter().rev()) {
            let mut middle = of(b"head");
            middle.nest(2, of(text));
            outer.nest(1, middle);
            let mut nested = b"head".to_vec();
            put_delimited(&mut nested, 2, text);
            put_delimited(&mut expected, 1, &nested);
        }
        assert!(outer.held_bytes() < expected.len() / 4, "it is compressed");
        assert!(unpacked(outer) == expected);
        assert_eq!(unpacked(Message::default()), b"");
    }
}
