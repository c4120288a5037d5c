//! A function of the columns of a row that is computed outside of this crate.
//!
//! ```text
//! no column ─────────────► one result a vector
//! one column of codes ──► a result for each code of the dictionary, and one for NULL
//! other columns ─────────► a result for each row
//! ```
//! The function is never computed for a row that is not selected, because it may raise an error. By codes it is
//! computed for the first selected row of each new code, and all new codes of a vector are computed together.

use super::frame::Frame;
use super::number::{NumberType, Scalar};
use super::row_numbers::RowNumbers;
use super::selection::Selection;
use super::text::CodeMemo;
use super::value::Operand;
use crate::lane::LaneData;
use crate::with_number;

/// The function. Rows with equal bits in all of its columns always have the same result.
pub trait RowFunction {
    /// Computes the result of each row of a frame's vector, and passes it to `take` in the order of the rows; `None` is
    /// NULL. The frame's lanes are filled, as for every evaluation.
    fn compute(
        &mut self,
        frame: &Frame<'_>,
        rows: &Selection,
        take: &mut dyn FnMut(usize, Option<Scalar>),
    );

    /// Forgets results that it has kept: from now on, equal rows may have other results.
    fn forget(&mut self) {}
}

/// A result: NULL or a number.
type Outcome = Option<Scalar>;

/// A number a row that a function computes.
pub struct ExternalValue {
    number: NumberType,
    /// The columns that the function reads.
    attributes: Vec<usize>,
    function: Box<dyn RowFunction>,
    codes: CodeMemo<Outcome>,
    /// The result of a row whose only column is NULL.
    null: Option<Outcome>,
    results: RowNumbers,
}

impl ExternalValue {
    /// A function of these columns, with results of a type.
    pub fn new(
        number: NumberType,
        attributes: Vec<usize>,
        function: Box<dyn RowFunction>,
    ) -> Box<ExternalValue> {
        Box::new(ExternalValue {
            number,
            attributes,
            function,
            codes: CodeMemo::default(),
            null: None,
            results: RowNumbers::new(),
        })
    }

    /// The type of the results.
    pub fn number(&self) -> NumberType {
        self.number
    }

    /// Forgets all results, where the function is to give equal rows other results than before.
    pub(crate) fn forget(&mut self) {
        self.codes = CodeMemo::default();
        self.null = None;
        self.function.forget();
    }

    /// The results for the selected rows.
    pub(super) fn evaluate(&mut self, frame: &Frame<'_>, selection: &Selection) -> Operand {
        match self.attributes[..] {
            [] => self.once(frame, selection),
            [attribute] => match frame.lane(attribute).data {
                LaneData::Codes { codes, .. } => {
                    // SAFETY: the lane has a code for each row of the vector.
                    let codes = unsafe { codes.add(frame.place) };
                    self.codes.enter(&frame.dictionaries[attribute]);
                    // SAFETY: as above.
                    self.by_code(frame, attribute, selection, |row| unsafe {
                        *codes.add(row)
                    })
                }
                _ => self.each(frame, selection),
            },
            _ => self.each(frame, selection),
        }
    }

    /// The result that all rows have.
    fn once(&mut self, frame: &Frame<'_>, selection: &Selection) -> Operand {
        let Some(first) = selection.next(0) else {
            return Operand::Null;
        };
        let mut result = None;
        let mut one = Selection::NONE;
        one.insert(first, first + 1);
        self.function
            .compute(frame, &one, &mut |_, found| result = found);
        result.map_or(Operand::Null, Operand::Same)
    }

    /// A result for each row.
    fn each(&mut self, frame: &Frame<'_>, selection: &Selection) -> Operand {
        let results = &mut self.results;
        results.clear();
        with_number!(self.number, T => {
            let mut store = |row, result| results.set::<T>(row, result);
            self.function.compute(frame, selection, &mut store);
        });
        results.operand(selection)
    }

    /// A result for each code.
    fn by_code(
        &mut self,
        frame: &Frame<'_>,
        attribute: usize,
        selection: &Selection,
        code_of: impl Fn(usize) -> u32,
    ) -> Operand {
        let known = frame.present(attribute, selection);
        let mut unknown = Selection::NONE;
        let codes = &mut self.codes;
        known.for_each(|row| {
            // A code without a result gets one below.
            codes.get(code_of(row), || {
                unknown.insert(row, row + 1);
                None
            });
        });
        let nulls = selection.and_not(&known);
        if self.null.is_none()
            && let Some(row) = nulls.next(0)
        {
            unknown.insert(row, row + 1);
        }
        if !unknown.is_empty() {
            let null = &mut self.null;
            let mut set = |row: usize, result: Outcome| match known.contains(row) {
                true => codes.set(code_of(row), result),
                false => *null = Some(result),
            };
            self.function.compute(frame, &unknown, &mut set);
        }
        let (results, null) = (&mut self.results, self.null.flatten());
        results.clear();
        with_number!(self.number, T => {
            known.for_each(|row| results.set::<T>(row, codes.known(code_of(row)).flatten()));
            nulls.for_each(|row| results.set::<T>(row, null));
        });
        results.operand(selection)
    }
}
