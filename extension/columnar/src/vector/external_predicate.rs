//! A test that is evaluated outside of this crate, once for each distinct value of a column.
//!
//! ```text
//! selected rows ── NULL ──► one result
//!               ── codes ──► a result for each code of the dictionary
//!               ── values of up to 8 bytes ──► a result for each value, as long as values repeat
//!               ── other values ──► a result for each row
//! ```
//! The test is never evaluated for a value that no selected row has, because it may raise an error.
//! The new values of one vector are tested together.

use std::marker::PhantomData;

use super::VECTOR_WORDS;
use super::frame::Frame;
use super::predicate::Truth;
use super::selection::Selection;
use super::text::{CodeMemo, load_word};
use super::truth_memo::{Code, PENDING, TruthMemo, code};
use crate::lane::LaneData;

/// The number of values from which on new values are counted. If more than half of the rows have a
/// new value, the test is evaluated for each row.
pub(super) const NEW_VALUES_MIN: u64 = 32 << 10;
/// The most values whose results are kept. When there are more, all are dropped.
pub(super) const VALUES_MAX: usize = 256 << 10;

/// The answer of a test for one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ternary {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Neither.
    Null,
}

/// A value of the tested column, which is not NULL.
///
/// Invariant: the bits are those of a value of the column, extended by zeros, if values are kept by
/// value. Otherwise they are the address of a value, which stays as it is for the lifetime.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct ColumnValue<'a>(u64, PhantomData<&'a [u8]>);

impl<'a> ColumnValue<'a> {
    /// Values by their bits.
    ///
    /// # Safety
    /// The bits are those of values of the column, as the type's invariant states.
    unsafe fn all(bits: &'a [u64]) -> &'a [ColumnValue<'a>] {
        // SAFETY: the type is a transparent wrapper of the bits.
        unsafe { std::slice::from_raw_parts(bits.as_ptr().cast(), bits.len()) }
    }

    /// The bits of the value, extended by zeros, or its address.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }
}

/// The test. Equal bits of values always have the same result.
pub trait ValueTest {
    /// Tests values that are not NULL, one after the other.
    fn test(&mut self, values: &[ColumnValue<'_>], answers: &mut [Ternary]);

    /// Answers about NULL.
    fn test_null(&mut self) -> Ternary;
}

/// Whether a test holds for the value that a row has in a column.
pub struct ExternalPredicate {
    attribute: usize,
    /// Whether the column's values of fixed width are kept by value.
    by_value: bool,
    test: Box<dyn ValueTest>,
    null: Option<Ternary>,
    memo: TruthMemo,
    codes: CodeMemo<Code>,
    /// The number of rows whose values were looked up, and of those with a new value.
    looked_up: u64,
    new: u64,
    /// Whether values hardly repeat.
    is_distinct: bool,
    /// The values of the current call of the test, and their results.
    values: Vec<u64>,
    answers: Vec<Ternary>,
    /// The codes of these values.
    unknown_codes: Vec<u32>,
}

impl ExternalPredicate {
    /// A test on an attribute whose values of fixed width are kept by value or not.
    pub fn new(
        attribute: usize,
        by_value: bool,
        test: Box<dyn ValueTest>,
    ) -> Box<ExternalPredicate> {
        Box::new(ExternalPredicate {
            attribute,
            by_value,
            test,
            null: None,
            memo: TruthMemo::default(),
            codes: CodeMemo::default(),
            looked_up: 0,
            new: 0,
            is_distinct: false,
            values: Vec::new(),
            answers: Vec::new(),
            unknown_codes: Vec::new(),
        })
    }

    /// The results of the test for the selected rows.
    pub(super) fn evaluate(&mut self, frame: &Frame<'_>, selection: &Selection) -> Truth {
        let lane = frame.lane(self.attribute);
        let known = frame.present(self.attribute, selection);
        let place = frame.place;
        // SAFETY: the lane covers the rows of the vector, to which the selected rows belong.
        let mut truth = unsafe {
            match lane.data {
                _ if known.is_empty() => NOTHING,
                LaneData::Null => NOTHING,
                LaneData::Bool(words) => self.by_value(&known, |row| {
                    let row = place + row;
                    load_word(words, row / 64) >> (row % 64) & 1
                }),
                LaneData::Fixed { values, stride } if self.by_value => match stride {
                    1 => self.by_value(&known, |row| (*values.add(place + row)).into()),
                    2 => self.by_value(&known, |row| {
                        (*values.cast::<u16>().add(place + row)).into()
                    }),
                    4 => self.by_value(&known, |row| {
                        (*values.cast::<u32>().add(place + row)).into()
                    }),
                    _ => self.by_value(&known, |row| *values.cast::<u64>().add(place + row)),
                },
                LaneData::Codes { codes, slots, heap } => {
                    self.codes.enter(&frame.dictionaries[self.attribute]);
                    let code = |row: usize| *codes.add(place + row);
                    self.by_code(&known, code, |code| {
                        heap.add(*slots.add(code as usize) as usize) as u64
                    })
                }
                LaneData::Fixed { .. } | LaneData::Offsets { .. } => {
                    self.each(&known, |row| lane.pointer(place + row) as u64)
                }
            }
        };
        let nulls = selection.and_not(&known);
        if !nulls.is_empty() {
            let test = &mut self.test;
            match *self.null.get_or_insert_with(|| test.test_null()) {
                Ternary::True => truth.yes = truth.yes.or(&nulls),
                Ternary::False => truth.no = truth.no.or(&nulls),
                Ternary::Null => {}
            }
        }
        truth
    }

    /// By values of up to 8 bytes, which are remembered as long as they repeat.
    unsafe fn by_value(&mut self, known: &Selection, value: impl Fn(usize) -> u64) -> Truth {
        if self.is_distinct {
            // SAFETY: this function's contract.
            return unsafe { self.each(known, value) };
        }
        self.values.clear();
        let (memo, unknown) = (&mut self.memo, &mut self.values);
        let mut truth = told(known, &value, |value| memo.get(value, unknown));
        if !self.values.is_empty() {
            // SAFETY: values of the column.
            unsafe { self.ask() };
            for (value, answer) in self.values.iter().zip(&self.answers) {
                self.memo.set(*value, code(*answer));
            }
            self.new += self.values.len() as u64;
            let (memo, unknown) = (&mut self.memo, &mut Vec::new());
            truth = told(known, &value, |value| memo.get(value, unknown));
        }
        self.looked_up += known.count() as u64;
        self.is_distinct = self.new >= NEW_VALUES_MIN && self.new > self.looked_up / 2;
        if self.is_distinct || self.memo.len() >= VALUES_MAX {
            self.memo.forget();
        }
        truth
    }

    /// By codes of the dictionary that was entered.
    unsafe fn by_code(
        &mut self,
        known: &Selection,
        code_of: impl Fn(usize) -> u32,
        item: impl Fn(u32) -> u64,
    ) -> Truth {
        self.values.clear();
        self.unknown_codes.clear();
        let (values, unknown) = (&mut self.values, &mut self.unknown_codes);
        let codes = &mut self.codes;
        let value = |row| code_of(row).into();
        let truth = told(known, value, |code| {
            codes.get(code as u32, || {
                values.push(item(code as u32));
                unknown.push(code as u32);
                PENDING
            })
        });
        if self.values.is_empty() {
            return truth;
        }
        // SAFETY: addresses of the column's items.
        unsafe { self.ask() };
        for (unknown, answer) in self.unknown_codes.iter().zip(&self.answers) {
            self.codes.set(*unknown, code(*answer));
        }
        let codes = &mut self.codes;
        told(known, value, |code| codes.get(code as u32, || PENDING))
    }

    /// Evaluates the test for each row.
    unsafe fn each(&mut self, known: &Selection, value: impl Fn(usize) -> u64) -> Truth {
        self.values.clear();
        let values = &mut self.values;
        known.for_each(|row| values.push(value(row)));
        // SAFETY: values of the column.
        unsafe { self.ask() };
        let (mut truth, mut answers) = (NOTHING, self.answers.iter());
        known.for_each(|row| {
            let code = answers.next().map_or(0, |answer| code(*answer));
            truth.yes.words[row / 64] |= u64::from(code & 1) << (row % 64);
            truth.no.words[row / 64] |= u64::from(code >> 1) << (row % 64);
        });
        truth
    }

    /// # Safety
    /// `self.values` are values of the column.
    unsafe fn ask(&mut self) {
        self.answers.clear();
        self.answers.resize(self.values.len(), Ternary::Null);
        // SAFETY: this function's contract.
        let values = unsafe { ColumnValue::all(&self.values) };
        self.test.test(values, &mut self.answers);
    }
}

/// All rows are NULL.
const NOTHING: Truth = Truth {
    yes: Selection::NONE,
    no: Selection::NONE,
};

/// The truth of rows by the codes of their values. Often many rows after one another have the same
/// value.
#[inline(always)]
fn told(
    known: &Selection,
    value: impl Fn(usize) -> u64,
    mut code: impl FnMut(u64) -> Code,
) -> Truth {
    let mut truth = NOTHING;
    let mut last: Option<(u64, Code)> = None;
    for index in 0..VECTOR_WORDS {
        let (first, mut open) = (index * 64, known.words[index]);
        if open == u64::MAX {
            let one = value(first);
            // The last row is the most likely one to differ.
            let are_same = one == value(first + 63)
                && (first..first + 64).fold(0, |differs, row| differs | (one ^ value(row))) == 0;
            if are_same {
                let found = match last {
                    Some((value, found)) if value == one => found,
                    _ => code(one),
                };
                last = Some((one, found));
                truth.yes.words[index] = u64::from(found & 1).wrapping_neg();
                truth.no.words[index] = u64::from(found >> 1 & 1).wrapping_neg();
                continue;
            }
        }
        let (mut yes, mut no) = (0, 0);
        while open != 0 {
            let bit = open.trailing_zeros();
            open &= open - 1;
            let one = value(first + bit as usize);
            let found = match last {
                Some((value, found)) if value == one => found,
                _ => code(one),
            };
            last = Some((one, found));
            yes |= u64::from(found & 1) << bit;
            no |= u64::from(found >> 1 & 1) << bit;
        }
        truth.yes.words[index] = yes;
        truth.no.words[index] = no;
    }
    truth
}
