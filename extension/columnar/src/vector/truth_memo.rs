//! The results of a test by value: a hash table from the bits of a value to its result.

use super::external_predicate::Ternary;

/// The initial capacity. Many scans that start again and again have few values.
const ROOM_FIRST: usize = 64;

/// An answer as a number. Bit 0: true. Bit 1: false. Neither: NULL.
pub(super) type Code = u8;
/// The value was met, and its test is pending.
pub(super) const PENDING: Code = 4;
/// There is no value here.
const VACANT: Code = 8;

/// The number of an answer.
pub(super) fn code(answer: Ternary) -> Code {
    match answer {
        Ternary::Null => 0,
        Ternary::True => 1,
        Ternary::False => 2,
    }
}

/// Values with their answers. At least half of the places are vacant.
#[derive(Default)]
pub(super) struct TruthMemo {
    values: Vec<u64>,
    codes: Vec<Code>,
    /// The number of values.
    count: usize,
}

impl TruthMemo {
    /// The number of known values.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Removes all values and releases the memory.
    pub(super) fn forget(&mut self) {
        *self = TruthMemo::default();
    }

    /// The result of a value. A new value is [`PENDING`] from now on, and is added to `unknown`.
    #[inline]
    pub(super) fn get(&mut self, value: u64, unknown: &mut Vec<u64>) -> Code {
        if self.count * 2 >= self.values.len() {
            self.grow();
        }
        let place = self.place(value);
        if self.codes[place] == VACANT {
            self.values[place] = value;
            self.codes[place] = PENDING;
            self.count += 1;
            unknown.push(value);
        }
        self.codes[place]
    }

    /// Stores the result of a value that was met.
    pub(super) fn set(&mut self, value: u64, code: Code) {
        let place = self.place(value);
        self.codes[place] = code;
    }

    /// Where a value is, or would be.
    #[inline]
    fn place(&self, value: u64) -> usize {
        let mask = self.values.len() - 1;
        // The high bits of the product depend on all bits of the value.
        let mixed = u128::from(value ^ value >> 32) * 0x9e37_79b9_7f4a_7c15;
        let mut place = (mixed as u64 ^ (mixed >> 64) as u64) as usize & mask;
        while self.codes[place] != VACANT && self.values[place] != value {
            place = (place + 1) & mask;
        }
        place
    }

    #[cold]
    fn grow(&mut self) {
        let room = (self.values.len() * 2).max(ROOM_FIRST);
        let values = std::mem::replace(&mut self.values, vec![0; room]);
        let codes = std::mem::replace(&mut self.codes, vec![VACANT; room]);
        for (value, code) in values.into_iter().zip(codes) {
            if code != VACANT {
                let place = self.place(value);
                self.values[place] = value;
                self.codes[place] = code;
            }
        }
    }
}
