//! Few distinct numbers, and for each row which of them it has.

use super::block::FEW_MAX;
use super::bytes::{signed_len, write_signed, write_varint};
use super::format::FEW;
use super::integers::{Outliers, Start};
use super::packed::packed_len;
use super::residuals::{Head, pack, write_head, write_outliers};
use super::sample::{SAMPLE, sample};

/// The slots of the table of numbers, of which at most a quarter is used.
const SLOTS: usize = 4 * FEW_MAX;

/// The block that these numbers make.
pub(super) struct Few {
    /// In order.
    distinct: Vec<i64>,
    /// A row's place among them.
    places: Vec<u8>,
    width: u32,
}

impl Few {
    /// If that takes fewer than `bytes_max` bytes.
    pub(super) fn of(numbers: &[i64], bytes_max: usize) -> Option<Few> {
        if numbers.len() < SAMPLE || sample(numbers).is_mostly_distinct() {
            return None;
        }
        let (mut distinct, mut places) = (Vec::new(), Vec::with_capacity(numbers.len()));
        // One more than the place of the number in the slot; 0 for a free slot.
        let mut slots = [0_u16; SLOTS];
        for &number in numbers {
            let mut slot = hash(number);
            loop {
                match slots[slot] {
                    0 => {
                        let width = width_of(distinct.len() + 1);
                        let bytes = distinct.len() + packed_len(numbers.len(), width);
                        if distinct.len() + 1 >= FEW_MAX || bytes > bytes_max {
                            return None;
                        }
                        distinct.push(number);
                        slots[slot] = distinct.len() as u16;
                    }
                    place if distinct[usize::from(place) - 1] == number => {
                        places.push((place - 1) as u8);
                        break;
                    }
                    _ => slot = (slot + 1) % SLOTS,
                }
            }
        }
        let mut order: Vec<u8> = (0..distinct.len() as u8).collect();
        order.sort_unstable_by_key(|&place| distinct[usize::from(place)]);
        let mut ranks = [0; FEW_MAX];
        for (rank, &place) in order.iter().enumerate() {
            ranks[usize::from(place)] = rank as u8;
        }
        for place in &mut places {
            *place = ranks[usize::from(*place)];
        }
        distinct.sort_unstable();
        let width = width_of(distinct.len());
        let few = Few {
            distinct,
            places,
            width,
        };
        let table: usize = few.steps().map(signed_len).sum();
        let bytes = 2 + table + 1 + packed_len(numbers.len(), width);
        (bytes < bytes_max).then_some(few)
    }

    /// Each distinct number, less the one before.
    fn steps(&self) -> impl Iterator<Item = i64> {
        let mut before = 0_i64;
        self.distinct.iter().map(move |&number| {
            let step = number.wrapping_sub(before);
            before = number;
            step
        })
    }

    pub(super) fn write(&self, outliers: &Outliers, start: Start, out: &mut Vec<u8>) {
        start.write(FEW, self.places.len(), out);
        write_varint(self.distinct.len() as u64 - 1, out);
        for step in self.steps() {
            write_signed(step, out);
        }
        let head = Head {
            width: self.width,
            factor: 1,
            patches: 0,
        };
        write_head(&head, &[], outliers, out);
        let places = self.places.iter().map(|&place| u64::from(place));
        pack(self.width, self.places.len(), places, out);
        write_outliers(outliers, out);
    }
}

/// The number of bits of a place among so many numbers, at least one.
fn width_of(distinct: usize) -> u32 {
    usize::BITS - (distinct - 1).leading_zeros()
}

fn hash(number: i64) -> usize {
    let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - SLOTS.ilog2())) as usize
}
