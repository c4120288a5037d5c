//! The list of `x = ANY (list)`, and the rows whose number is in it.
//!
//! A short list is compared with the whole vector, element by element. A longer list of integers
//! that are close together becomes a bitmap, in which each row is looked up. A longer list of
//! distant integers is searched in order.

use lanes_simd::Comparison;

use super::frame::Frame;
use super::number::Scalar;
use super::predicate::compare;
use super::selection::Selection;
use super::value::{Operand, Value};
use super::{Evaluation, number::Number};
use crate::limits::VECTOR_ROWS;
use crate::with_number;

/// The most elements of a list that is compared element by element.
const COMPARED_MAX: usize = 8;
/// A bitmap has at most this many bits for each element.
const BITS_PER_ELEMENT_MAX: u64 = 64;
/// A bitmap may have this many bits, however few the elements are.
const BITS_MIN: u64 = 1 << 16;

/// The elements of a list, by their places among the scalars of a scan.
#[derive(Debug, Clone, Default)]
pub struct Members {
    list: Vec<usize>,
    lookup: Option<Lookup>,
}

/// The elements of a list that are not NULL, in the form in which they are looked up.
#[derive(Debug, Clone)]
enum Lookup {
    Compared,
    /// One bit for each integer, beginning with `least`.
    Bits {
        least: i64,
        words: Vec<u64>,
    },
    /// In ascending order.
    Sorted(Vec<i64>),
}

/// The results of a list for the rows of a vector.
pub(super) struct Membership {
    /// Rows whose number is in the list.
    pub found: Selection,
    /// Rows whose number is not NULL, or all if the list is empty: then nothing is compared.
    pub known: Selection,
    pub list_has_null: bool,
}

impl Membership {
    /// Rows whose number is known not to be in the list.
    pub fn missing(&self) -> Selection {
        match self.list_has_null {
            true => Selection::NONE,
            false => self.known.and_not(&self.found),
        }
    }
}

impl Members {
    /// A list of these scalars.
    pub fn new(list: Vec<usize>) -> Members {
        Members { list, lookup: None }
    }

    /// The elements that are not NULL.
    pub fn elements(&self, scalars: &[Option<Scalar>]) -> impl Iterator<Item = Scalar> {
        self.list.iter().filter_map(|place| scalars[*place])
    }

    /// The results of the list for the selected rows' numbers.
    ///
    /// # Errors
    /// The errors of the value.
    pub(super) fn evaluate(
        &mut self,
        value: &mut Value,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<Membership> {
        let operand = value.evaluate(frame, selection)?;
        if self.list.is_empty() {
            return Ok(Membership {
                found: Selection::NONE,
                known: *selection,
                list_has_null: false,
            });
        }
        let number = value.number();
        let known = operand.valid(selection);
        if self.lookup.is_none() {
            self.lookup = Some(self.prepare(frame.scalars, number.is_float()));
        }
        let found = match self.lookup.as_ref().unwrap_or(&Lookup::Compared) {
            Lookup::Compared => {
                let mut found = Selection::NONE;
                for scalar in self.elements(frame.scalars) {
                    let equal = with_number!(number, T => {
                        compare::<T>(Comparison::Equal, operand, Operand::Same(scalar), frame.rows)
                    });
                    found = found.or(&equal);
                }
                found.and(&known)
            }
            Lookup::Bits { least, words } => with_number!(number, T => {
                look_up::<T>(&operand, &known, |integer| {
                    let bit = integer.wrapping_sub(*least) as u64;
                    let word = words.get((bit / 64) as usize).copied().unwrap_or(0);
                    word >> (bit % 64) & 1 == 1
                })
            }),
            Lookup::Sorted(integers) => with_number!(number, T => {
                look_up::<T>(&operand, &known, |integer| integers.binary_search(&integer).is_ok())
            }),
        };
        let list_has_null = self
            .list
            .iter()
            .any(|place| frame.scalars[*place].is_none());
        Ok(Membership {
            found,
            known,
            list_has_null,
        })
    }

    fn prepare(&self, scalars: &[Option<Scalar>], is_float: bool) -> Lookup {
        if is_float || self.list.len() <= COMPARED_MAX {
            return Lookup::Compared;
        }
        let mut integers: Vec<i64> = self.elements(scalars).map(|s| s.0 as i64).collect();
        integers.sort_unstable();
        integers.dedup();
        let (Some(&least), Some(&greatest)) = (integers.first(), integers.last()) else {
            return Lookup::Compared;
        };
        let span = greatest.wrapping_sub(least) as u64;
        if span >= (integers.len() as u64 * BITS_PER_ELEMENT_MAX).max(BITS_MIN) {
            return Lookup::Sorted(integers);
        }
        let mut words = vec![0; (span / 64) as usize + 1];
        for integer in integers {
            let bit = integer.wrapping_sub(least) as u64;
            words[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        Lookup::Bits { least, words }
    }
}

/// The known rows whose integer is in a list.
fn look_up<T: Number>(
    operand: &Operand,
    known: &Selection,
    is_in: impl Fn(i64) -> bool,
) -> Selection {
    let mut found = [0_u64; VECTOR_ROWS / 64];
    for ((word, known), found) in known.words.iter().enumerate().zip(&mut found) {
        let first = 64 * word;
        if *known == u64::MAX {
            // SAFETY: all 64 rows are known, so they are rows of the vector, and none is NULL.
            let integer = |row: usize| unsafe { operand.get::<T>(first + row) };
            // Rows in the order of a key have one integer for many rows.
            if (1..64).fold(true, |all, row| all & (integer(row) == integer(0))) {
                let is_in = is_in(integer(0).to_scalar().0 as i64);
                *found = u64::from(is_in).wrapping_neg();
                continue;
            }
        }
        let mut rest = *known;
        while rest != 0 {
            let row = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            // SAFETY: the operand has a `T` for each row that is not NULL.
            let integer = unsafe { operand.get::<T>(first + row) }.to_scalar().0 as i64;
            *found |= u64::from(is_in(integer)) << row;
        }
    }
    Selection { words: found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_neighbours_are_looked_up_as_each_alone() {
        // Words of one integer, of two, and with a single other one at either end.
        let mut integers: Vec<i32> = (0..VECTOR_ROWS as i32).map(|row| row / 100).collect();
        (integers[64], integers[191]) = (-1, -1);
        let operand = Operand::Each {
            values: integers.as_ptr().cast(),
            validity: std::ptr::null(),
        };
        let is_in = |integer: i64| integer % 3 == 0;
        let mut known = Selection::first(VECTOR_ROWS - 7);
        known.words[3] &= !2;
        let found = look_up::<i32>(&operand, &known, is_in);
        let mut expected = Selection::NONE;
        known.for_each(|row| {
            if is_in(i64::from(integers[row])) {
                expected.insert(row, row + 1);
            }
        });
        assert_eq!(found, expected);
    }
}
