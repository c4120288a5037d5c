//! External tests and functions: the values that are tested, how often, and the results for the rows.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use proptest::prelude::*;

use super::dictionaries::{Walk, any_steps};
use super::lanes::{
    ABSENT, ATTRIBUTES, BOOL, BYTES16, CODED, Cell, Column, PLAIN, Source, TYPES, TestLanes,
    any_rows,
};
use super::number_tree::any_rarity;
use crate::limits::VECTOR_ROWS;
use crate::test_support::cases;
use crate::vector::external_predicate::{
    ColumnValue, ExternalPredicate, NEW_VALUES_MIN, Ternary, VALUES_MAX, ValueTest,
};
use crate::vector::external_value::{ExternalValue, RowFunction};
use crate::vector::frame::Frame;
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::predicate::Predicate;
use crate::vector::selection::Selection;
use crate::vector::text::item_payload;
use crate::vector::value::Value;

/// The value that stands for NULL.
const OF_NULL: u64 = 0x5555_aaaa_0000_1111;

/// The number that stands for a text.
fn of_text(payload: &[u8]) -> u64 {
    payload.iter().fold(payload.len() as u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn answer(question: u64, salt: u64) -> Ternary {
    match Source(question ^ salt).below(3) {
        0 => Ternary::Null,
        1 => Ternary::True,
        _ => Ternary::False,
    }
}

/// The twin's result for a cell of an attribute of random lanes.
pub(crate) fn row(cell: &Cell, attribute: usize, salt: u64) -> Option<bool> {
    match answer(question(cell, TYPES.get(attribute / 2).copied()), salt) {
        Ternary::True => Some(true),
        Ternary::False => Some(false),
        Ternary::Null => None,
    }
}

/// The value that stands for a cell.
fn question(cell: &Cell, number: Option<NumberType>) -> u64 {
    match cell {
        Cell::Null => OF_NULL,
        Cell::Number(scalar) => {
            let width = number.map_or(8, NumberType::width);
            scalar.0 & u64::MAX >> (64 - 8 * width)
        }
        Cell::Truth(truth) => u64::from(*truth),
        Cell::Text(payload) => of_text(payload),
        Cell::Bytes16(bytes) => of_text(bytes),
    }
}

/// The form of the tested values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Value,
    /// Addresses of items.
    Item,
    /// Addresses of 16 bytes.
    Bytes16,
}

impl Form {
    /// The form of an attribute of random lanes.
    fn of(attribute: usize) -> Form {
        match attribute {
            CODED | PLAIN => Form::Item,
            BYTES16.. => Form::Bytes16,
            _ => Form::Value,
        }
    }
}

/// Who answers, and takes down the questions.
struct Witness {
    salt: u64,
    form: Form,
    questions: Rc<RefCell<Vec<u64>>>,
}

impl ValueTest for Witness {
    fn test(&mut self, values: &[ColumnValue<'_>], answers: &mut [Ternary]) {
        for (value, found) in values.iter().zip(answers) {
            let address = value.bits() as *const u8;
            let question = match self.form {
                Form::Value => value.bits(),
                // SAFETY: the address of an item.
                Form::Item => of_text(unsafe { item_payload(address) }),
                // SAFETY: the address of so many bytes.
                Form::Bytes16 => of_text(unsafe { std::slice::from_raw_parts(address, 16) }),
            };
            self.questions.borrow_mut().push(question);
            *found = answer(question, self.salt);
        }
    }

    fn test_null(&mut self) -> Ternary {
        self.questions.borrow_mut().push(OF_NULL);
        answer(OF_NULL, self.salt)
    }
}

/// A test of an attribute, with a record of the tested values.
fn witness(attribute: usize, form: Form, salt: u64) -> (Predicate, Rc<RefCell<Vec<u64>>>) {
    let questions = Rc::new(RefCell::new(Vec::new()));
    let test = Witness {
        salt,
        form,
        questions: questions.clone(),
    };
    let asked = ExternalPredicate::new(attribute, form == Form::Value, Box::new(test));
    (Predicate::External(asked), questions)
}

/// A test of an attribute of random lanes, without the record.
pub(crate) fn of_window(attribute: usize, salt: u64) -> Predicate {
    witness(attribute, Form::of(attribute), salt).0
}

fn any_attribute() -> impl Strategy<Value = usize> {
    prop_oneof![
        4 => 0..BOOL, 2 => BOOL..CODED, 2 => Just(CODED), 1 => Just(PLAIN), 1 => Just(ABSENT)
    ]
}

proptest! {
    #![proptest_config(cases(400))]

    /// Each value of a selected row is tested once, and no other value is tested.
    #[test]
    fn each_value_of_selected_rows_is_asked_about_once(
        attribute in any_attribute(), seed in any::<u64>(), rows in any_rows(), rarity in any_rarity(),
    ) {
        prop_assert!(attribute < ATTRIBUTES);
        let lanes = TestLanes::random(seed, rows, rarity);
        let mut source = Source(!seed);
        let (mut predicate, questions) = witness(attribute, Form::of(attribute), seed);
        let mut expected = BTreeSet::new();
        let number = TYPES.get(attribute / 2).copied();
        for _ in 0..3 {
            let selection = source.selection(rows);
            let truth = lanes.with_frame(|frame| predicate.evaluate(frame, &selection)).unwrap();
            for place in 0..rows {
                let found = (truth.yes.contains(place), truth.no.contains(place));
                if !selection.contains(place) {
                    prop_assert_eq!(found, (false, false), "row {} is not selected", place);
                    continue;
                }
                let cell = lanes.cell(attribute, place);
                expected.insert(question(cell, number));
                let told = row(cell, attribute, seed);
                prop_assert_eq!(found, (told == Some(true), told == Some(false)), "row {}", place);
            }
        }
        let mut asked = questions.borrow().clone();
        asked.sort_unstable();
        if attribute == PLAIN {
            // No results are kept for texts without a dictionary.
            asked.dedup();
        }
        prop_assert_eq!(asked, expected.into_iter().collect::<Vec<_>>());
    }

    /// The results for a dictionary's codes are kept for the segments that have the dictionary, and
    /// no longer.
    #[test]
    fn texts_are_asked_about_in_every_segment(steps in any_steps(), seed in any::<u64>(), rows in 1..300_usize) {
        let mut source = Source(seed);
        let (mut predicate, _) = witness(0, Form::Item, seed);
        let mut walk = Walk::new();
        for step in steps {
            let lanes = TestLanes::of(vec![walk.column(step, rows, &mut source)]);
            let selection = source.selection(rows);
            let truth = lanes.with_frame(|frame| predicate.evaluate(frame, &selection)).unwrap();
            for place in 0..rows {
                let told = selection.contains(place).then(|| answer(question(lanes.cell(0, place), None), seed));
                prop_assert_eq!(truth.yes.contains(place), told == Some(Ternary::True), "row {} after {:?}", place, step);
                prop_assert_eq!(truth.no.contains(place), told == Some(Ternary::False), "row {} after {:?}", place, step);
            }
        }
    }
}

/// Computes a number of the cells of a row, and takes down the rows.
struct Computer {
    cells: Vec<Vec<Cell>>,
    rows: Rc<RefCell<Vec<usize>>>,
}

/// The number of the cells of a row; NULL for some.
fn computed(cells: &[&Cell]) -> Option<i32> {
    let sum = cells.iter().fold(1, |sum: u64, cell| {
        sum.rotate_left(7) ^ question(cell, None)
    });
    (!sum.is_multiple_of(3)).then_some(sum as i32)
}

impl RowFunction for Computer {
    fn compute(
        &mut self,
        _frame: &Frame<'_>,
        rows: &Selection,
        take: &mut dyn FnMut(usize, Option<Scalar>),
    ) {
        rows.for_each(|row| {
            self.rows.borrow_mut().push(row);
            let cells: Vec<&Cell> = self.cells.iter().map(|column| &column[row]).collect();
            take(row, computed(&cells).map(Number::to_scalar));
        });
    }
}

proptest! {
    #![proptest_config(cases(400))]

    /// A function is computed for selected rows only, and once for each code where its only column has codes.
    #[test]
    fn functions_of_rows_agree_with_the_twin(
        attributes in prop::collection::btree_set(any_attribute(), 0..3), seed in any::<u64>(), rows in any_rows(),
    ) {
        let lanes = TestLanes::random(seed, rows, 3);
        let mut source = Source(!seed);
        let attributes: Vec<usize> = attributes.into_iter().collect();
        let cell = |attribute: &usize| (0..rows).map(|row| lanes.cell(*attribute, row).clone()).collect();
        let cells: Vec<Vec<Cell>> = attributes.iter().map(cell).collect();
        let witnessed = Rc::new(RefCell::new(Vec::new()));
        let computer = Computer { cells: cells.clone(), rows: witnessed.clone() };
        let function = ExternalValue::new(NumberType::I32, attributes.clone(), Box::new(computer));
        let mut value = Value::External(function);
        for _ in 0..2 {
            let selection = source.selection(rows);
            witnessed.borrow_mut().clear();
            lanes.with_frame(|frame| {
                let operand = value.evaluate(frame, &selection).unwrap();
                let valid = operand.valid(&selection);
                for row in (0..rows).filter(|row| selection.contains(*row)) {
                    let of_row: Vec<&Cell> = cells.iter().map(|column| &column[row]).collect();
                    // SAFETY: a row of the vector.
                    let found = valid.contains(row).then(|| unsafe { operand.get::<i32>(row) });
                    prop_assert_eq!(found, computed(&of_row), "row {}", row);
                }
                Ok(())
            })?;
            let rows = witnessed.borrow();
            prop_assert!(rows.iter().all(|row| selection.contains(*row)), "a row that does not count");
            if attributes == [CODED] {
                let cells = rows.iter().map(|row| question(&cells[0][*row], None));
                prop_assert_eq!(cells.collect::<BTreeSet<_>>().len(), rows.len(), "a code computed twice");
            }
        }
    }
}

/// Evaluates a test on vectors of 64-bit numbers, checks it, and returns the number of tested
/// values.
fn asked_of(values: impl Iterator<Item = u64>) -> usize {
    let (mut predicate, questions) = witness(0, Form::Value, 7);
    let values: Vec<u64> = values.collect();
    for vector in values.chunks(VECTOR_ROWS) {
        let scalars: Vec<_> = vector.iter().map(|value| Some(Scalar(*value))).collect();
        let column = Column::numbers(NumberType::I64, &scalars, &mut Source(1));
        let lanes = TestLanes::of(vec![column]);
        let selection = Selection::first(vector.len());
        let truth = lanes
            .with_frame(|frame| predicate.evaluate(frame, &selection))
            .unwrap();
        for (place, value) in vector.iter().enumerate() {
            let told = answer(*value, 7);
            assert_eq!(truth.yes.contains(place), told == Ternary::True);
            assert_eq!(truth.no.contains(place), told == Ternary::False);
        }
    }
    questions.borrow().len()
}

/// Values that lie far apart and near each other.
fn spread(value: u64) -> u64 {
    if value.is_multiple_of(2) {
        value
    } else {
        value << 40
    }
}

#[test]
fn values_that_hardly_repeat_are_asked_about_row_by_row() {
    let distinct = NEW_VALUES_MIN + 3 * VECTOR_ROWS as u64;
    let rows = (0..distinct).chain(0..distinct).map(spread);
    assert_eq!(asked_of(rows), 2 * distinct as usize);
}

#[test]
fn many_values_that_repeat_are_asked_about_once() {
    let distinct = NEW_VALUES_MIN - VECTOR_ROWS as u64;
    let rows = (0..distinct).chain(0..distinct).chain(0..distinct);
    assert_eq!(asked_of(rows.map(spread)), distinct as usize);
}

#[test]
fn what_is_remembered_is_bounded() {
    let distinct = VALUES_MAX as u64 + 10 * VECTOR_ROWS as u64;
    let rows = (0..distinct).flat_map(|value| [value; 3]);
    let late = distinct - 1;
    let asked = asked_of(rows.chain([0, late]).map(spread));
    // The first values were forgotten, the last ones are known.
    assert_eq!(asked, distinct as usize + 1);
}
