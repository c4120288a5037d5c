//! `CASE` and `COALESCE` of random branches against a twin that computes a row at a time.

use proptest::prelude::*;

use super::lanes::{Source, TYPES, TestLanes, any_rows};
use super::number_tree::{NumberTree, any_number, any_rarity, operand_number, same};
use super::truth_tree::{TruthTree, any_truth};
use crate::test_support::cases;
use crate::vector::Evaluation;
use crate::vector::choice::{Choice, Condition};
use crate::vector::number::{NumberType, Scalar};
use crate::vector::value::Value;

/// The twin of a condition.
#[derive(Clone, Debug)]
enum Taken {
    Holds(TruthTree),
    IsPresent,
    Always,
}

type Branches = Vec<(Taken, NumberTree)>;

/// The number of a row, and the error of the first part that is evaluated for it.
fn row(branches: &Branches, lanes: &TestLanes, row: usize) -> Evaluation<Option<Scalar>> {
    for (taken, value) in branches {
        match taken {
            Taken::Holds(condition) if condition.row(lanes, row)? == Some(true) => {
                return value.row(lanes, row);
            }
            Taken::Holds(_) => {}
            Taken::IsPresent => {
                if let Some(found) = value.row(lanes, row)? {
                    return Ok(Some(found));
                }
            }
            Taken::Always => return value.row(lanes, row),
        }
    }
    Ok(None)
}

fn build(number: NumberType, branches: &Branches) -> Value {
    let branches = branches.iter().map(|(taken, value)| {
        let condition = match taken {
            Taken::Holds(condition) => Condition::Holds(condition.build()),
            Taken::IsPresent => Condition::IsPresent,
            Taken::Always => Condition::Always,
        };
        (condition, value.build())
    });
    Value::Choice(Box::new(Choice::new(number, branches.collect())))
}

fn any_branches() -> impl Strategy<Value = (NumberType, Branches)> {
    (0..TYPES.len()).prop_flat_map(|index| {
        let number = TYPES[index];
        let taken = prop_oneof![
            4 => any_truth().prop_map(Taken::Holds),
            2 => Just(Taken::IsPresent),
            1 => Just(Taken::Always),
        ];
        let branch = (taken, any_number(number, 2));
        prop::collection::vec(branch, 1..4).prop_map(move |branches| (number, branches))
    })
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn choices_agree_with_the_twin(
        (number, branches) in any_branches(),
        seed in any::<u64>(), rows in any_rows(), rarity in any_rarity(),
    ) {
        let lanes = TestLanes::random(seed, rows, rarity);
        let mut source = Source(!seed);
        let mut value = build(number, &branches);
        // The room for results is used again for other rows.
        for _ in 0..2 {
            let selection = source.selection(rows);
            let expected: Vec<_> = (0..rows)
                .map(|place| selection.contains(place).then(|| row(&branches, &lanes, place)))
                .collect();
            let errors: Vec<_> = expected.iter().flatten().filter_map(|r| r.err()).collect();
            lanes.with_frame(|frame| {
                match value.evaluate(frame, &selection) {
                    Err(error) => prop_assert!(errors.contains(&error), "{error} not in {errors:?}"),
                    Ok(operand) => {
                        prop_assert!(errors.is_empty(), "missed {:?}", errors[0]);
                        let valid = operand.valid(&selection);
                        for (place, expected) in expected.iter().enumerate() {
                            let Some(Ok(expected)) = expected else {
                                continue;
                            };
                            prop_assert_eq!(valid.contains(place), expected.is_some(), "NULL of row {}", place);
                            if let Some(expected) = expected {
                                let found = operand_number(number, &operand, place);
                                prop_assert!(same(number, found, *expected), "row {place}: {found:?}, not {expected:?}");
                            }
                        }
                    }
                }
                Ok(())
            })?;
        }
    }
}
