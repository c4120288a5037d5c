//! Functions whose results are kept by a number, against the functions themselves.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;

use crate::lane::{DictionaryView, Lane, LaneData};
use crate::test_support::cases;
use crate::vector::decimal::test_items::Items;
use crate::vector::decimal::{Decimal, DecimalValue};
use crate::vector::external_value::RowFunction;
use crate::vector::frame::Frame;
use crate::vector::keyed_function::{KeyedFunction, ResultKey};
use crate::vector::number::{NumberType, Scalar};
use crate::vector::selection::Selection;
use crate::vector::value::Value;

/// The results of the rows of a vector, and the rows for which they are computed.
struct Listed {
    results: Rc<RefCell<Vec<Option<Scalar>>>>,
    computed: Rc<RefCell<Vec<usize>>>,
}

impl RowFunction for Listed {
    fn compute(
        &mut self,
        _frame: &Frame<'_>,
        rows: &Selection,
        take: &mut dyn FnMut(usize, Option<Scalar>),
    ) {
        let results = self.results.borrow();
        rows.for_each(|row| {
            self.computed.borrow_mut().push(row);
            take(row, results[row]);
        });
    }
}

fn any_cell() -> impl Strategy<Value = Option<Decimal>> {
    let value = prop_oneof![8 => -20_i64..20, 1 => Just(i64::MAX - 4), 1 => any::<i64>()];
    let value = value.prop_filter("the least has no magnitude", |value| *value != i64::MIN);
    let decimal = (value, prop_oneof![8 => Just(2_u8), 1 => 0_u8..3]);
    let decimal = decimal.prop_map(|(value, scale)| Decimal { value, scale });
    prop::option::weighted(0.9, decimal)
}

/// A result that some numbers share and some have none of.
fn result_of(cell: &Option<Decimal>) -> Option<Scalar> {
    let Some(Decimal { value, scale }) = cell else {
        return Some(Scalar(7));
    };
    (value % 5 != 0).then(|| Scalar((value / 3) as u64 ^ u64::from(*scale)))
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn equal_decimals_have_the_result_of_the_first(
        vectors in prop::collection::vec(prop::collection::vec(any_cell(), 1..100), 1..6),
        few in any::<bool>(),
    ) {
        let (results, computed) = (Rc::default(), Rc::default());
        let listed = Listed { results: Rc::clone(&results), computed: Rc::clone(&computed) };
        let key = ResultKey::Decimal(DecimalValue::column(0));
        let mut function = KeyedFunction::new(key, Box::new(listed));
        for cells in &vectors {
            *results.borrow_mut() = cells.iter().map(result_of).collect();
            computed.borrow_mut().clear();
            let items = Items::new(cells);
            let frame = Frame {
                lanes: &[items.lane()],
                dictionaries: &[DictionaryView::default()],
                ..Frame::of_nulls(cells.len(), &[])
            };
            let mut rows = Selection::first(cells.len());
            if few {
                rows.remove(0);
            }
            let mut found = Vec::new();
            function.compute(&frame, &rows, &mut |row, result| found.push((row, result)));
            let all = cells.iter().enumerate().skip(usize::from(few));
            let wanted: Vec<_> = all.map(|(row, cell)| (row, result_of(cell))).collect();
            prop_assert_eq!(found, wanted);
            prop_assert!(computed.borrow().is_sorted());
        }
        // All of the last vector are known, but for those that do not fit.
        let cells = vectors.last().unwrap();
        if cells.iter().flatten().all(|cell| cell.value.unsigned_abs() < 1 << 40) {
            computed.borrow_mut().clear();
            let items = Items::new(cells);
            let frame = Frame {
                lanes: &[items.lane()],
                dictionaries: &[DictionaryView::default()],
                ..Frame::of_nulls(cells.len(), &[])
            };
            let mut rows = Selection::first(cells.len());
            if few {
                rows.remove(0);
            }
            function.compute(&frame, &rows, &mut |_, _| {});
            prop_assert!(computed.borrow().is_empty());
            function.forget();
            function.compute(&frame, &rows, &mut |_, _| {});
            prop_assert_eq!(computed.borrow().is_empty(), rows.is_empty());
        }
    }
}

#[test]
fn doubles_that_round_alike_share_a_result() {
    let doubles = [
        1.234,
        1.2301,
        f64::NAN,
        1.235,
        1.2349,
        f64::NAN,
        -1.23,
        1e300,
    ];
    let wanted = [1, 1, 9, 2, 1, 9, 3, 4].map(|result| Some(Scalar(result)));
    let (results, computed) = (Rc::new(RefCell::new(wanted.to_vec())), Rc::default());
    let listed = Listed {
        results,
        computed: Rc::clone(&computed),
    };
    let key = ResultKey::Rounded(Value::Column(NumberType::F64, 0), 2);
    let mut function = KeyedFunction::new(key, Box::new(listed));
    let values = doubles.as_ptr().cast();
    let data = LaneData::Fixed { values, stride: 8 };
    let frame = Frame {
        lanes: &[Lane::new(data, std::ptr::null())],
        dictionaries: &[DictionaryView::default()],
        ..Frame::of_nulls(doubles.len(), &[])
    };
    for computed_rows in [vec![0, 2, 3, 5, 6, 7], vec![2, 5, 7]] {
        let mut found = Vec::new();
        let rows = Selection::first(doubles.len());
        function.compute(&frame, &rows, &mut |_, result| found.push(result));
        assert_eq!(found, wanted);
        assert_eq!(std::mem::take(&mut *computed.borrow_mut()), computed_rows);
    }
}

#[test]
fn more_numbers_than_are_kept_have_their_results() {
    let count = if cfg!(miri) { 5_000 } else { 300_000_i64 };
    let (results, computed) = (Rc::default(), Rc::default());
    let listed = Listed {
        results: Rc::clone(&results),
        computed,
    };
    let key = ResultKey::Decimal(DecimalValue::column(0));
    let mut function = KeyedFunction::new(key, Box::new(listed));
    let numbers: Vec<i64> = (0..count).chain(0..count).collect();
    for numbers in numbers.chunks(2_000) {
        let cells: Vec<_> = numbers
            .iter()
            .map(|&value| Some(Decimal { value, scale: 3 }))
            .collect();
        *results.borrow_mut() = cells.iter().map(result_of).collect();
        let items = Items::new(&cells);
        let frame = Frame {
            lanes: &[items.lane()],
            dictionaries: &[DictionaryView::default()],
            ..Frame::of_nulls(cells.len(), &[])
        };
        let mut found = Vec::new();
        let rows = Selection::first(cells.len());
        function.compute(&frame, &rows, &mut |_, result| found.push(result));
        assert_eq!(found, *results.borrow());
    }
}
