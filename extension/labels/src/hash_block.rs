//! A block of hashes of series, which the database stores and gateways read.
//!
//! ```text
//! block     version u8 = 1 | check u32 | span …      numbers are little-endian
//! span      first id u32 | series u32 | hash u32 …   series with consecutive ids
//! check     the low 32 bits of XXH3 over the spans, under the seed of the hashes
//! ```
//! Spans are in the order of their ids and do not overlap. The check also detects a block of
//! another seed, whose hashes would make every series a new one.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Malformed;

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 5;
const SPAN_HEAD_BYTES: usize = 8;
const HASH_BYTES: usize = 4;
/// Series after which a block is full: it is written anew each time that series are added to it.
const BLOCK_SERIES: usize = 8192;

/// A block under construction.
pub struct HashBlock {
    seed: u64,
    spans: Vec<u8>,
    /// Where the last span begins.
    last_span: usize,
    first_id: u32,
    next_id: u32,
}

impl HashBlock {
    /// A block without series.
    pub fn new(seed: u64) -> HashBlock {
        HashBlock {
            seed,
            spans: Vec::new(),
            last_span: 0,
            first_id: 0,
            next_id: 0,
        }
    }

    /// A block that was written, to be gone on with.
    ///
    /// # Errors
    /// If the bytes are no block of this seed.
    pub fn read(bytes: &[u8], seed: u64) -> Result<HashBlock, Malformed> {
        let mut block = HashBlock::new(seed);
        for span in spans(bytes, seed)? {
            span.hashes().for_each({
                let mut id = span.first_id;
                let block = &mut block;
                move |hash| {
                    block.push(id, hash);
                    id += 1;
                }
            });
        }
        Ok(block)
    }

    /// Appends the hash of a series whose id is larger than all before.
    pub fn push(&mut self, id: u32, hash: u32) {
        if self.spans.is_empty() || id != self.next_id {
            if self.spans.is_empty() {
                self.first_id = id;
            }
            self.last_span = self.spans.len();
            self.spans.extend_from_slice(&id.to_le_bytes());
            self.spans.extend_from_slice(&0u32.to_le_bytes());
        }
        self.spans.extend_from_slice(&hash.to_le_bytes());
        self.next_id = id + 1;
        let hashes = self.last_span + SPAN_HEAD_BYTES;
        let series = ((self.spans.len() - hashes) / HASH_BYTES) as u32;
        self.spans[hashes - 4..hashes].copy_from_slice(&series.to_le_bytes());
    }

    /// The first and the last id; `None` without series.
    pub fn ids(&self) -> Option<(u32, u32)> {
        (!self.spans.is_empty()).then(|| (self.first_id, self.next_id - 1))
    }

    /// Whether more series should go into the next block.
    pub fn is_full(&self) -> bool {
        self.spans.len() >= BLOCK_SERIES * HASH_BYTES
    }

    /// The block as bytes.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.spans.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&check(&self.spans, self.seed).to_le_bytes());
        bytes.extend_from_slice(&self.spans);
        bytes
    }
}

/// Series with consecutive ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<'b> {
    /// The id of the first one.
    pub first_id: u32,
    hashes: &'b [u8],
}

impl<'b> Span<'b> {
    /// Their hashes.
    pub fn hashes(self) -> impl ExactSizeIterator<Item = u32> + 'b {
        let hashes = self.hashes.chunks_exact(HASH_BYTES);
        hashes.map(|hash| u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]))
    }
}

/// The spans of a block.
///
/// # Errors
/// If the bytes are no block of this seed, or of another version.
pub fn spans(bytes: &[u8], seed: u64) -> Result<Vec<Span<'_>>, Malformed> {
    let Some((&[VERSION, a, b, c, d], mut rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
        return Err(Malformed("hashes of series are of an unknown version"));
    };
    if u32::from_le_bytes([a, b, c, d]) != check(rest, seed) {
        return Err(Malformed("hashes of series do not fit their check"));
    }
    let (mut found, mut next_id) = (Vec::new(), 0);
    while let Some((&[a, b, c, d, e, f, g, h], after)) = rest.split_first_chunk::<SPAN_HEAD_BYTES>()
    {
        let first_id = u32::from_le_bytes([a, b, c, d]);
        let series = u32::from_le_bytes([e, f, g, h]);
        let split = after.split_at_checked(series as usize * HASH_BYTES);
        let (Some((hashes, after)), Some(end), true) =
            (split, first_id.checked_add(series), first_id >= next_id)
        else {
            return Err(Malformed("hashes of series are not complete"));
        };
        found.push(Span { first_id, hashes });
        (rest, next_id) = (after, end);
    }
    match rest.is_empty() {
        true => Ok(found),
        false => Err(Malformed("hashes of series are not complete")),
    }
}

fn check(spans: &[u8], seed: u64) -> u32 {
    xxh3_64_with_seed(spans, seed) as u32
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_SERIES, HashBlock, spans};
    use proptest::prelude::*;

    fn read(bytes: &[u8], seed: u64) -> Vec<(u32, u32)> {
        let spans = spans(bytes, seed).unwrap();
        let pairs = spans
            .iter()
            .flat_map(|span| (span.first_id..).zip(span.hashes()));
        pairs.collect()
    }

    proptest! {
        #[test]
        fn hashes_are_read_back(
            series in prop::collection::btree_map(1u32..300, any::<u32>(), 0..200),
            cut in any::<prop::sample::Index>(),
            seed in any::<u64>(),
        ) {
            let series: Vec<(u32, u32)> = series.into_iter().collect();
            let (before, after) = series.split_at(cut.index(series.len() + 1));
            let mut block = HashBlock::new(seed);
            before.iter().for_each(|(id, hash)| block.push(*id, *hash));
            let mut block = HashBlock::read(&block.write(), seed).unwrap();
            after.iter().for_each(|(id, hash)| block.push(*id, *hash));
            prop_assert_eq!(read(&block.write(), seed), series.clone());
            let ends = series.first().zip(series.last());
            prop_assert_eq!(block.ids(), ends.map(|(first, last)| (first.0, last.0)));
            prop_assert!(spans(&block.write(), seed ^ 1).is_err() || series.is_empty());
        }

        #[test]
        fn damaged_bytes_are_refused(
            length in 1u32..50, place in any::<prop::sample::Index>(), flip in 1u8..,
        ) {
            let mut block = HashBlock::new(3);
            (1..=length).for_each(|id| block.push(id * 2, id));
            let mut bytes = block.write();
            let at = place.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert!(spans(&bytes, 3).is_err());
            prop_assert!(spans(&bytes[..at], 3).is_err());
        }

        #[test]
        fn no_bytes_end_in_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut whole = vec![super::VERSION];
            whole.extend_from_slice(&super::check(&bytes, 3).to_le_bytes());
            whole.extend_from_slice(&bytes);
            let _ = spans(&whole, 3);
        }
    }

    /// Blocks are stored on disk: blocks of earlier versions must stay readable.
    #[test]
    fn the_form_on_disk_stays() {
        let mut block = HashBlock::new(5);
        for (id, hash) in [(1, 10), (2, 11), (9, 12)] {
            block.push(id, hash);
        }
        let hex: String = block
            .write()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let expected = "01 1ab33141 01000000 02000000 0a000000 0b000000 09000000 01000000 0c000000";
        assert_eq!(hex, expected.replace(' ', ""));
    }

    #[test]
    fn a_block_is_full_some_time() {
        let mut block = HashBlock::new(5);
        let mut id = 0;
        while !block.is_full() {
            id += 1;
            block.push(id, 0);
        }
        assert!(
            (BLOCK_SERIES as u32 - 4..=BLOCK_SERIES as u32).contains(&id),
            "{id}"
        );
    }
}
