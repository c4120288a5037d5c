//! Values of a history that are passed by reference.

/// Copies of values at fixed addresses, which are aligned for any type.
#[derive(Default)]
pub struct Values {
    /// No block ever grows beyond its capacity, so its values never move.
    blocks: Vec<Vec<u64>>,
    words: usize,
}

/// Words of a block, unless a single value needs more.
pub(super) const BLOCK_WORDS: usize = 8_192;

impl Values {
    /// Bytes that another value would allocate: none if the last block has room for it.
    pub fn more_bytes(&self, length: usize) -> usize {
        let words = length.div_ceil(8);
        let is_room = |block: &Vec<u64>| block.capacity() - block.len() >= words;
        match self.blocks.last().is_some_and(is_room) {
            true => 0,
            false => words.max(BLOCK_WORDS) * 8,
        }
    }

    /// Copies bytes, and returns their address.
    pub fn copy(&mut self, bytes: &[u8]) -> usize {
        let more = self.more_bytes(bytes.len()) / 8;
        if more > 0 || self.blocks.is_empty() {
            self.blocks.push(Vec::with_capacity(more));
            self.words += more;
        }
        let Some(block) = self.blocks.last_mut() else {
            return 0;
        };
        let at = block.len();
        let (whole, rest) = bytes.as_chunks::<8>();
        block.extend(whole.iter().map(|word| u64::from_ne_bytes(*word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            block.push(u64::from_ne_bytes(word));
        }
        block[at..].as_ptr() as usize
    }

    /// Bytes that the copies use.
    pub fn bytes(&self) -> usize {
        self.words * 8 + self.blocks.capacity() * size_of::<Vec<u64>>()
    }

    /// The bytes of a copy.
    #[cfg(test)]
    pub fn bytes_at(&self, address: usize, length: usize) -> Option<Vec<u8>> {
        let place = |block: &&Vec<u64>| {
            let first = block.as_ptr() as usize;
            (first..=first + block.len() * 8).contains(&address)
        };
        let block = self.blocks.iter().find(place)?;
        let bytes = block.iter().flat_map(|word| word.to_ne_bytes());
        let first = address - block.as_ptr() as usize;
        Some(bytes.skip(first).take(length).collect())
    }
}
