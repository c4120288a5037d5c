//! Decimals against integers of 128 bits, with items as PostgreSQL writes them.

use proptest::prelude::*;

use super::column::SharedColumn;
use super::comparison::DecimalComparison;
use super::operation::DecimalOperation;
use super::test_items::{Dictionary, Items, item, long_item};
use super::{Decimal, DecimalValue, Decimals, SCALE_MAX};
use crate::aggregate::Grouping;
use crate::aggregate::decimal::{DecimalExtremes, DecimalSum, DecimalSums};
use crate::aggregate::extreme::End;
use crate::lane::DictionaryView;
use crate::test_support::cases;
use crate::vector::choice::Condition;
use crate::vector::frame::Frame;
use crate::vector::predicate::Predicate;
use crate::vector::selection::Selection;
use lanes_simd::Comparison;

fn read(item: &[u8]) -> Option<Decimal> {
    // SAFETY: a whole item.
    unsafe { Decimal::of_item(item.as_ptr()) }
}

fn decimal(value: i64, scale: u8) -> Option<Decimal> {
    Some(Decimal { value, scale })
}

#[test]
fn short_heads_are_read() {
    // -12.50, 0.05 and 0.000, as PostgreSQL stores them.
    assert_eq!(
        read(&item(&[0x00, 0xA1, 12, 0, 0x88, 0x13])),
        decimal(-1_250, 2)
    );
    assert_eq!(read(&item(&[0x7F, 0x81, 0xF4, 0x01])), decimal(5, 2));
    assert_eq!(read(&item(&[0x80, 0x81])), decimal(0, 3));
    // A header of four bytes: 7.
    assert_eq!(read(&[32, 0, 0, 0, 0x00, 0x80, 7, 0]), decimal(7, 0));
}

#[test]
fn what_does_not_fit_is_refused() {
    let (nan, infinity) = ([0x00, 0xC0], [0x00, 0xD0]);
    assert_eq!(read(&item(&nan)), None);
    assert_eq!(read(&item(&infinity)), None);
    // Ten to the power of 20, and 19 digits after the point.
    assert_eq!(read(&item(&[0x05, 0x80, 1, 0])), None);
    assert_eq!(read(&long_item(1, 19)), None);
    assert_eq!(read(&long_item(1, SCALE_MAX.into())), decimal(1, SCALE_MAX));
    assert_eq!(read(&long_item(i64::MAX, 0)), decimal(i64::MAX, 0));
    // A digit after the places that the scale shows.
    assert_eq!(read(&item(&[0x7F, 0x80, 0xF4, 0x01])), None);
}

/// Runs a test on a frame of two columns.
fn with_frame<T>(
    a: &[Option<Decimal>],
    b: &[Option<Decimal>],
    test: impl FnOnce(&Frame<'_>, &Selection) -> T,
) -> T {
    let (left, right) = (Items::new(a), Items::new(b));
    let lanes = [left.lane(), right.lane()];
    let frame = Frame {
        lanes: &lanes,
        dictionaries: &[DictionaryView::default(); 2],
        ..Frame::of_nulls(a.len(), &[])
    };
    test(&frame, &Selection::first(a.len()))
}

/// The decimals with each row's own scale.
fn cells(decimals: &Decimals, rows: usize) -> Vec<Option<Decimal>> {
    let cell = |row| {
        // Nothing of another row means anything, its scale included.
        decimals.valid().contains(row).then(|| {
            let scale = decimals.scale_of(row);
            let zeros = 10_i64.pow(u32::from(decimals.scale() - scale));
            let value = decimals.values()[row];
            assert!(value.unsigned_abs() <= decimals.magnitude());
            assert_eq!(value % zeros, 0);
            Decimal {
                value: value / zeros,
                scale,
            }
        })
    };
    (0..rows).map(cell).collect()
}

/// The result of an operation on two cells; an error if it does not fit.
fn expected(
    operation: DecimalOperation,
    a: Option<Decimal>,
    b: Option<Decimal>,
) -> Option<(i128, u8)> {
    let (a, b) = (a?, b?);
    let scale = a.scale.max(b.scale);
    let at = |decimal: Decimal| {
        i128::from(decimal.value) * 10_i128.pow(u32::from(scale - decimal.scale))
    };
    Some(match operation {
        DecimalOperation::Add => (at(a) + at(b), scale),
        DecimalOperation::Subtract => (at(a) - at(b), scale),
        DecimalOperation::Multiply => {
            (i128::from(a.value) * i128::from(b.value), a.scale + b.scale)
        }
    })
}

/// The greatest magnitude that a result may have, as far as the magnitudes of both columns tell.
fn bound(operation: DecimalOperation, a: &[Option<Decimal>], b: &[Option<Decimal>]) -> i128 {
    let scale_of = |cells: &[Option<Decimal>]| {
        let scales = cells.iter().flatten().map(|cell| cell.scale);
        scales.max().unwrap_or(0)
    };
    let magnitude = |cells: &[Option<Decimal>], scale: u8| {
        let values = cells
            .iter()
            .flatten()
            .map(|cell| i128::from(cell.value.abs()) * 10_i128.pow(u32::from(scale - cell.scale)));
        values.max().unwrap_or(0)
    };
    let (of_a, of_b) = (scale_of(a), scale_of(b));
    match operation {
        DecimalOperation::Multiply => magnitude(a, of_a) * magnitude(b, of_b),
        _ => magnitude(a, of_a.max(of_b)) + magnitude(b, of_a.max(of_b)),
    }
}

fn any_decimal() -> impl Strategy<Value = Decimal> {
    let value = prop_oneof![
        8 => -1_000_000_i64..1_000_000,
        1 => Just(0),
        1 => -(1_i64 << 40)..1_i64 << 40,
    ];
    let scale = prop_oneof![4 => Just(2_u8), 1 => 0_u8..7];
    (value, scale).prop_map(|(value, scale)| Decimal { value, scale })
}

fn any_cells() -> impl Strategy<Value = Vec<(Option<Decimal>, Option<Decimal>)>> {
    let cell = || prop::option::weighted(0.9, any_decimal());
    prop::collection::vec((cell(), cell()), 1..200)
}

fn any_operation() -> impl Strategy<Value = DecimalOperation> {
    prop_oneof![
        Just(DecimalOperation::Add),
        Just(DecimalOperation::Subtract),
        Just(DecimalOperation::Multiply),
    ]
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn operations_are_exact_with_the_scale_of_each_row(
        rows in any_cells(),
        operation in any_operation(),
    ) {
        let (a, b): (Vec<_>, Vec<_>) = rows.iter().copied().unzip();
        let (left, right) = (DecimalValue::column(0), DecimalValue::column(1));
        let mut value = DecimalValue::operation(operation, left, right);
        let found = with_frame(&a, &b, |frame, selection| {
            let found = value.evaluate(frame, selection).unwrap();
            found.map(|found| cells(&found, a.len()))
        });
        let wanted: Vec<_> = rows.iter().map(|(a, b)| expected(operation, *a, *b)).collect();
        match found {
            Some(found) => for (found, wanted) in found.iter().zip(wanted) {
                prop_assert_eq!(found.map(|found| (i128::from(found.value), found.scale)), wanted);
            },
            None => prop_assert!(bound(operation, &a, &b) > i64::MAX.into()),
        }
    }

    #[test]
    fn sums_and_extremes_have_the_greatest_scale_of_their_group(
        rows in any_cells(),
        groups in 1_u32..5,
    ) {
        let (cells, _): (Vec<_>, Vec<_>) = rows.iter().copied().unzip();
        let ids: Vec<u32> = (0..cells.len() as u32).map(|row| row % groups).collect();
        let (mut sums, mut least) = (DecimalSums::default(), DecimalExtremes::new(End::Minimum));
        sums.resize(groups as usize);
        least.resize(groups as usize);
        // In parts, so that the scale grows.
        for (cells, ids) in cells.chunks(50).zip(ids.chunks(50)) {
            let mut value = DecimalValue::column(0);
            with_frame(cells, cells, |frame, selection| {
                let decimals = value.evaluate(frame, selection).unwrap().unwrap();
                let grouping = match groups {
                    1 => Grouping::One(0),
                    _ => Grouping::Each(ids),
                };
                assert!(sums.add(&grouping, &decimals, cells.len()));
                assert!(least.add(&grouping, &decimals, cells.len()));
            });
        }
        for group in 0..groups {
            let of_group = cells.iter().zip(&ids).filter(|(_, id)| **id == group);
            let of_group: Vec<Decimal> = of_group.filter_map(|(cell, _)| *cell).collect();
            let scale = of_group.iter().map(|cell| cell.scale).max();
            let wanted = scale.map(|scale| DecimalSum {
                count: of_group.len() as u64,
                sum: of_group.iter().map(|cell| {
                    i128::from(cell.value) * 10_i128.pow(u32::from(scale - cell.scale))
                }).sum(),
                scale,
            });
            prop_assert_eq!(sums.sum(group as usize), wanted);
            // Of equal values the last one counts.
            let key = |cell: &Decimal| i128::from(cell.value) * 10_i128.pow(u32::from(6 - cell.scale));
            let wanted = of_group.iter().rev().min_by_key(|cell| key(cell)).copied();
            prop_assert_eq!(least.extreme(group as usize), wanted);
        }
    }

    #[test]
    fn comparisons_do_not_depend_on_scales(rows in any_cells()) {
        let (a, b): (Vec<_>, Vec<_>) = rows.iter().copied().unzip();
        let general = Predicate::Scalar(0);
        let (left, right) = (DecimalValue::column(0), DecimalValue::column(1));
        let mut less = DecimalComparison::new(Comparison::Less, left, right, general);
        let truth = with_frame(&a, &b, |frame, selection| less.evaluate(frame, selection).unwrap());
        for (row, (a, b)) in rows.iter().enumerate() {
            let wanted = expected(DecimalOperation::Subtract, *a, *b).map(|(value, _)| value < 0);
            prop_assert_eq!(truth.yes.contains(row), wanted == Some(true));
            prop_assert_eq!(truth.no.contains(row), wanted == Some(false));
        }
    }
}

/// Numbers of which short items have any count of digits and any weight.
fn any_number() -> impl Strategy<Value = i64> {
    (0_u32..16, any::<i64>(), 0_u32..10).prop_map(|(digits, bits, zeros)| {
        let number = bits % 10_i64.pow(digits);
        number - number % 10_i64.pow(zeros)
    })
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn items_are_read_alike_alone_and_among_others(
        values in prop::collection::vec(prop::option::weighted(0.9, any_number()), 1..200),
        scale in 0_u8..=SCALE_MAX,
        odd in prop::option::weighted(0.3, (any::<prop::sample::Index>(), any_decimal())),
    ) {
        let cell = |value: &Option<i64>| value.map(|value| Decimal { value, scale });
        let mut all: Vec<Option<Decimal>> = values.iter().map(cell).collect();
        if let Some((row, other)) = odd {
            *row.get_mut(&mut all) = Some(other);
        }
        let mut value = DecimalValue::column(0);
        let found = with_frame(&all, &all, |frame, selection| {
            let found = value.evaluate(frame, selection).unwrap();
            found.map(|found| cells(&found, all.len()))
        });
        match found {
            Some(found) => prop_assert_eq!(found, all),
            // A number does not fit with the scale of another one.
            None => prop_assert!(odd.is_some()),
        }
    }

    #[test]
    fn a_dictionary_has_the_numbers_of_its_items(rows in any_cells(), of_each in 1_usize..20) {
        // Numbers repeat, so that there are fewer items than rows.
        let (some, _): (Vec<_>, Vec<_>) = rows.iter().copied().unzip();
        let mut value = DecimalValue::column(0);
        for (instance, some) in some.chunks(of_each).enumerate() {
            let all: Vec<_> = some.iter().cycle().take(150).copied().collect();
            let dictionary = Dictionary::new(&all);
            let frame = Frame {
                lanes: &[dictionary.lane()],
                dictionaries: &[dictionary.view(instance as u64 + 1)],
                ..Frame::of_nulls(all.len(), &[])
            };
            // A few rows, and then all of them.
            for count in [2, all.len()] {
                let found = value.evaluate(&frame, &Selection::first(count)).unwrap();
                prop_assert_eq!(cells(&found.unwrap(), count), &all[..count]);
            }
        }
    }
}

#[test]
fn a_choice_keeps_the_scale_of_the_branch_that_a_row_takes() {
    let cells_a = [decimal(125, 2), None, decimal(-5, 1)];
    let cells_b = [decimal(1, 0), decimal(7, 3), None];
    let mut value = DecimalValue::choice(vec![
        (Condition::IsPresent, DecimalValue::column(0)),
        (Condition::Always, DecimalValue::column(1)),
    ]);
    let found = with_frame(&cells_a, &cells_b, |frame, selection| {
        cells(&value.evaluate(frame, selection).unwrap().unwrap(), 3)
    });
    assert_eq!(found, [decimal(125, 2), decimal(7, 3), decimal(-5, 1)]);
}

#[test]
fn a_vector_with_a_product_that_may_overflow_is_refused() {
    let large = [decimal(i64::MAX / 2, 0)];
    let product = |by| {
        let (left, right) = (
            DecimalValue::column(0),
            DecimalValue::constant(decimal(by, 0)),
        );
        let mut value = DecimalValue::operation(DecimalOperation::Multiply, left, right);
        with_frame(&large, &large, |frame, selection| {
            let found = value.evaluate(frame, selection).unwrap();
            found.map(|found| found.values()[0])
        })
    };
    assert_eq!(product(2), Some(i64::MAX - 1));
    assert_eq!(product(3), None);
}

#[test]
fn sums_refuse_a_scale_at_which_they_do_not_fit() {
    let (large, small) = ([decimal(i64::MAX, 0); 64], [decimal(1, SCALE_MAX); 64]);
    let mut sums = DecimalSums::default();
    sums.resize(1);
    let mut add = |cells: &[Option<Decimal>]| {
        let mut value = DecimalValue::column(0);
        with_frame(cells, cells, |frame, selection| {
            let decimals = value.evaluate(frame, selection).unwrap().unwrap();
            sums.add(&Grouping::One(0), &decimals, cells.len())
        })
    };
    assert!(add(&large));
    assert!(!add(&small));
    let sum = i128::from(i64::MAX) * 64;
    let wanted = DecimalSum {
        count: 64,
        sum,
        scale: 0,
    };
    assert_eq!(sums.sum(0), Some(wanted));
}

#[test]
fn a_shared_column_is_read_again_for_other_rows_and_another_vector() {
    let (first, second) = (
        [decimal(1, 0), decimal(2, 0)],
        [decimal(3, 1), decimal(4, 1)],
    );
    let column = SharedColumn::new(0);
    let mut one = DecimalValue::Shared(column.share());
    let mut other = DecimalValue::Shared(column.share());
    let mut rows_of = |cells_now: &[Option<Decimal>], rows| {
        one.forget();
        with_frame(cells_now, cells_now, |frame, selection| {
            cells(&one.evaluate(frame, selection).unwrap().unwrap(), 2);
            let rows = Selection::first(rows);
            cells(&other.evaluate(frame, &rows).unwrap().unwrap(), 2)
        })
    };
    assert_eq!(rows_of(&first, 2), first);
    assert_eq!(rows_of(&second, 2), second);
    assert_eq!(rows_of(&second, 1), [second[0], None]);
}

#[test]
fn a_shared_column_is_read_aside_while_its_rows_are_in_use() {
    let (a, b) = ([decimal(1, 0), decimal(2, 0)], [decimal(5, 0), None]);
    let column = SharedColumn::new(0);
    let branch = vec![
        (Condition::IsPresent, DecimalValue::column(1)),
        (Condition::Always, DecimalValue::Shared(column.share())),
    ];
    let (left, right) = (DecimalValue::Shared(column), DecimalValue::choice(branch));
    let mut value = DecimalValue::operation(DecimalOperation::Add, left, right);
    let found = with_frame(&a, &b, |frame, selection| {
        cells(&value.evaluate(frame, selection).unwrap().unwrap(), 2)
    });
    assert_eq!(found, [decimal(6, 0), decimal(4, 0)]);
}
