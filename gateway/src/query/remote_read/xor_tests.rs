//! Chunks, read by a decoder that follows the tables at the head of the encoder's file. That
//! Prometheus reads them is tested in `tests/tests/query_api`.

use proptest::prelude::*;

use super::*;

struct Reader<'a> {
    bytes: &'a [u8],
    place: usize,
}

impl Reader<'_> {
    fn bits(&mut self, count: u32) -> u64 {
        let mut number = 0;
        for _ in 0..count {
            let byte = self.bytes[self.place / 8];
            number = number << 1 | u64::from(byte >> (7 - self.place % 8) & 1);
            self.place += 1;
        }
        number
    }

    fn varint(&mut self) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let byte = self.bits(8);
            number |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }

    fn difference(&mut self) -> i64 {
        let mut ones = 0;
        while ones < 4 && self.bits(1) == 1 {
            ones += 1;
        }
        let count = [0, 14, 17, 20, 64][ones];
        let bits = self.bits(count);
        match count {
            14 | 17 | 20 if bits > 1 << (count - 1) => bits as i64 - (1 << count),
            _ => bits as i64,
        }
    }

    fn value(&mut self, before: u64, window: &mut (u32, u32)) -> u64 {
        if self.bits(1) == 0 {
            return before;
        }
        if self.bits(1) == 1 {
            let leading = self.bits(5) as u32;
            let length = match self.bits(6) as u32 {
                0 => 64,
                length => length,
            };
            *window = (length, 64 - leading - length);
        }
        before ^ self.bits(window.0) << window.1
    }
}

/// Returns the times and the bits of the values.
pub fn decoded(bytes: &[u8]) -> Vec<(i64, u64)> {
    let mut reader = Reader { bytes, place: 0 };
    let samples = reader.bits(16);
    let (mut time, mut distance, mut value) = (0i64, 0u64, 0u64);
    let mut window = (0, 0);
    let mut found = Vec::new();
    for number in 0..samples {
        match number {
            0 => {
                let zigzag = reader.varint();
                time = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
                value = reader.bits(64);
            }
            _ => {
                distance = match number {
                    1 => reader.varint(),
                    _ => distance.wrapping_add(reader.difference() as u64),
                };
                time = time.wrapping_add(distance as i64);
                value = reader.value(value, &mut window);
            }
        }
        found.push((time, value));
    }
    assert!(bytes.len() * 8 - reader.place < 8, "nothing follows");
    found
}

fn chunk(samples: &[(i64, u64)]) -> Chunk {
    let mut chunk = XorChunk::default();
    for (time, bits) in samples {
        chunk.push(*time, f64::from_bits(*bits));
    }
    chunk.take()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_bits_follow_the_tables() {
    let one = 1f64.to_bits();
    // 2 samples; time 1000 as zigzag 2000; the bits of 1.0; distance 15; an equal value.
    let two = chunk(&[(1000, one), (1015, one)]);
    assert_eq!(hex(&two.bytes), "0002d00f3ff00000000000000f00");
    assert_eq!(two.times, (1000, 1015));
    // The third distance is equal; 1.0 and 2.0 differ in 11 bits after one zero:
    // 0, 0, 11, 00001, 001011, 11111111111.
    let three = chunk(&[(1000, one), (1015, one), (1030, 2f64.to_bits())]);
    assert_eq!(hex(&three.bytes), "0003d00f3ff00000000000000f3097ffc0");
}

#[test]
fn a_taken_chunk_begins_anew() {
    let mut chunk = XorChunk::default();
    assert!(chunk.is_empty());
    for number in 0..SAMPLES_MAX {
        assert!(!chunk.is_full());
        chunk.push(i64::from(number), f64::from(number));
    }
    assert!(chunk.is_full());
    assert_eq!(chunk.take().times, (0, 119));
    assert!(chunk.is_empty());
    chunk.push(-5, 1.0);
    let alone = chunk.take();
    assert_eq!(decoded(&alone.bytes), [(-5, 1f64.to_bits())]);
}

#[test]
fn differences_at_the_edges_of_their_forms_return() {
    let mut samples = vec![(0, 0)];
    let (mut time, mut distance) = (0, 10_000_000);
    let edges = [13, 16, 19].map(|shift| 1i64 << shift);
    for edge in edges
        .into_iter()
        .flat_map(|edge| [edge, edge + 1, 1 - edge, -edge])
    {
        distance += edge;
        time += distance;
        samples.push((time, 0));
    }
    assert_eq!(decoded(&chunk(&samples).bytes), samples);
}

/// Distances of times: mostly regular, sometimes of any size.
fn distances() -> impl Strategy<Value = i64> {
    prop_oneof![
        Just(15_000i64),
        0..40_000i64,
        0..2_000_000i64,
        0..9_000_000_000_000_000i64
    ]
}

/// Bits of values: constants, counters, gauges and any bits.
fn values() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0x7ff0_0000_0000_0002),
        (0..1000u32).prop_map(|number| f64::from(number).to_bits()),
        any::<f64>().prop_map(f64::to_bits),
        any::<u64>()
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        start in -62_000_000_000_000i64..253_000_000_000_000,
        pairs in prop::collection::vec((distances(), values()), 1..=usize::from(SAMPLES_MAX)),
    ) {
        let mut time = start;
        let samples: Vec<(i64, u64)> = pairs
            .into_iter()
            .map(|(distance, value)| {
                time += distance;
                (time, value)
            })
            .collect();
        let chunk = chunk(&samples);
        prop_assert_eq!(chunk.times, (samples[0].0, time));
        prop_assert_eq!(decoded(&chunk.bytes), samples);
    }
}
