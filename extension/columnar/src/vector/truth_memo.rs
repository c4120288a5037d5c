//! What was answered for values met before: a hash table from the bits of a value to its answer.

use super::external_predicate::Ternary;

/// Room for values at first: a scan that starts again and again meets few.
const ROOM_FIRST: usize = 64;

/// An answer as a number. Bit 0: true. Bit 1: false. Neither: NULL.
pub(super) type Code = u8;
/// The value was met and is still to be asked about.
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
    /// How many values there are.
    count: usize,
}

impl TruthMemo {
    /// How many values are known.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Forgets everything, and gives the memory back.
    pub(super) fn forget(&mut self) {
        *self = TruthMemo::default();
    }

    /// What is known of a value; one that is met for the first time is [`PENDING`] from now on and added to `unknown`.
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

    /// Notes the answer for a value that was met.
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
