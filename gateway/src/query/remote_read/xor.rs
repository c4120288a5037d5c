//! Samples as Prometheus's XOR chunks: times as differences of differences, values as the bits that
//! differ from the value before. The method is that of Facebook's Gorilla (VLDB 2015).
//!
//! | part of a chunk | bits |
//! |---|---|
//! | number of samples | 16, big-endian |
//! | first time | a zigzag varint of whole bytes, in milliseconds since 1970 |
//! | first value | 64 |
//! | second time | its distance to the first, a varint of whole bytes |
//! | each later time | the difference of the last two distances, as below |
//! | each value but the first | its exclusive or with the value before, as below |
//!
//! All bits follow each other without gaps, the highest bit of a byte first. Zero bits fill the last
//! byte.
//!
//! | difference `d` of distances | bits |
//! |---|---|
//! | 0 | `0` |
//! | -8,191 to 8,192 | `10`, then the lowest 14 bits of `d` |
//! | -65,535 to 65,536 | `110`, then the lowest 17 bits of `d` |
//! | -524,287 to 524,288 | `1110`, then the lowest 20 bits of `d` |
//! | any other | `1111`, then the 64 bits of `d` |
//!
//! The window of an exclusive or is what remains without some zeros at its two ends.
//!
//! | exclusive or | bits |
//! |---|---|
//! | 0 | `0` |
//! | it fits the window of the last one that had a window of its own | `10`, then that window |
//! | any other | `11`, the number of leading zeros in 5 bits (31 at most), the length of the window in 6 bits (0 for 64), then the window |

use crate::series::protobuf::put_varint;

/// The maximum number of samples of a chunk, as in Prometheus.
pub const SAMPLES_MAX: u16 = 120;

/// The short forms of a difference of distances: its bits, the prefix and the bits of the prefix.
const SHORT_FORMS: [(u32, u64, u32); 3] = [(14, 0b10, 2), (17, 0b110, 3), (20, 0b1110, 4)];
/// The prefix of the long form, and its bits.
const LONG_FORM: (u64, u32) = (0b1111, 4);
/// The most leading zeros that 5 bits can say.
const LEADING_MAX: u32 = 31;

/// Bits in a row.
#[derive(Debug, Default)]
struct Bits {
    bytes: Vec<u8>,
    /// The bits of the last byte that are not used yet.
    free: u32,
}

impl Bits {
    /// Appends the lowest `count` bits of a number, 64 at most.
    fn push(&mut self, number: u64, count: u32) {
        let mut left = count;
        while left > 0 {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            let taken = left.min(self.free);
            left -= taken;
            self.free -= taken;
            let part = (number >> left) as u8 & (0xff >> (8 - taken));
            if let Some(last) = self.bytes.last_mut() {
                *last |= part << self.free;
            }
        }
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.push(u64::from(*byte), 8);
        }
    }
}

/// The place of the bits that differ between two values.
#[derive(Debug, Clone, Copy)]
struct Window {
    leading: u32,
    trailing: u32,
}

impl Window {
    fn of(difference: u64) -> Self {
        Self {
            leading: difference.leading_zeros().min(LEADING_MAX),
            trailing: difference.trailing_zeros(),
        }
    }

    fn length(self) -> u32 {
        64 - self.leading - self.trailing
    }

    fn covers(self, other: Self) -> bool {
        self.leading <= other.leading && self.trailing <= other.trailing
    }
}

/// A chunk that is being written.
#[derive(Debug, Default)]
pub struct XorChunk {
    bits: Bits,
    samples: u16,
    /// The first and the last time.
    times: (i64, i64),
    distance: u64,
    value_bits: u64,
    window: Option<Window>,
}

/// A chunk that is complete.
#[derive(Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The times of the first and of the last sample, in milliseconds since 1970.
    pub times: (i64, i64),
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl XorChunk {
    /// Appends a sample. Times do not descend.
    pub fn push(&mut self, time: i64, value: f64) {
        let distance = time.wrapping_sub(self.times.1) as u64;
        match self.samples {
            0 => {
                // The number of samples is filled in at the end.
                self.bits.push(0, 16);
                self.push_varint((time << 1 ^ time >> 63) as u64);
                self.bits.push(value.to_bits(), 64);
                self.times.0 = time;
            }
            1 => {
                self.push_varint(distance);
                self.push_value(value.to_bits());
                self.distance = distance;
            }
            _ => {
                self.push_difference(distance.wrapping_sub(self.distance) as i64);
                self.push_value(value.to_bits());
                self.distance = distance;
            }
        }
        self.times.1 = time;
        self.value_bits = value.to_bits();
        self.samples += 1;
    }

    /// Whether the chunk has no samples.
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// Whether the chunk takes no more samples.
    pub fn is_full(&self) -> bool {
        self.samples >= SAMPLES_MAX
    }

    /// Returns the chunk, and begins another one.
    pub fn take(&mut self) -> Chunk {
        let Self {
            mut bits,
            samples,
            times,
            ..
        } = std::mem::take(self);
        if let Some(count) = bits.bytes.first_chunk_mut() {
            *count = samples.to_be_bytes();
        }
        Chunk {
            times,
            bytes: bits.bytes,
        }
    }

    fn push_varint(&mut self, number: u64) {
        let mut bytes = Vec::with_capacity(10);
        put_varint(&mut bytes, number);
        self.bits.push_bytes(&bytes);
    }

    fn push_difference(&mut self, difference: i64) {
        if difference == 0 {
            return self.bits.push(0, 1);
        }
        for (count, prefix, prefix_bits) in SHORT_FORMS {
            let greatest = 1i64 << (count - 1);
            if (1 - greatest..=greatest).contains(&difference) {
                self.bits.push(prefix, prefix_bits);
                return self.bits.push(difference as u64, count);
            }
        }
        self.bits.push(LONG_FORM.0, LONG_FORM.1);
        self.bits.push(difference as u64, 64);
    }

    fn push_value(&mut self, value_bits: u64) {
        let difference = value_bits ^ self.value_bits;
        if difference == 0 {
            return self.bits.push(0, 1);
        }
        let own = Window::of(difference);
        let window = match self.window {
            Some(last) if last.covers(own) => {
                self.bits.push(0b10, 2);
                last
            }
            _ => {
                self.bits.push(0b11, 2);
                self.bits.push(u64::from(own.leading), 5);
                // 64 has 7 bits, so that the lowest 6 are 0.
                self.bits.push(u64::from(own.length()), 6);
                self.window = Some(own);
                own
            }
        };
        self.bits
            .push(difference >> window.trailing, window.length());
    }
}

#[cfg(test)]
#[path = "xor_tests.rs"]
pub(super) mod tests;
