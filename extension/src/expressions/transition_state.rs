//! The transition states of PostgreSQL's aggregates, as workers hand them over.
//!
//! Workers of a parallel aggregation return a state for each of their groups, and PostgreSQL's `Finalize Aggregate`
//! combines them. A state that PostgreSQL keeps as `internal` travels in the form that its serialisation function
//! writes:
//!
//! ```text
//! count: int64 │ the sum of the numbers [│ the sum of their squares]       all in network byte order
//! sum: digits int32 │ weight int32 │ sign int32 │ scale int32 │ digit int16 …      digits to the base of 10,000
//! ```

use lanes_columnar::aggregate::Answer;
use pgrx::IntoDatum;
use pgrx::pg_sys::{self, Datum};

use super::regression::OfPairs;
use crate::pg::numeric_digits::NumericDigits;

/// A transition state that is not the aggregate's result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TransitionState {
    /// `int8[]` of count and sum.
    CountAndSum,
    /// `float8[]` of count, sum, and sum of squares of differences from the mean.
    Floats,
    /// `float8[]` of the moments of pairs.
    Pairs,
    /// `internal`: count and sum of integers.
    IntegerSum,
    /// `internal`: count, sum and sum of squares of integers.
    IntegerMoments,
}

impl TransitionState {
    /// The state of an aggregate, by its OID. `None` for an aggregate whose state is its result, and for aggregates
    /// that have no state here.
    pub fn of(function: u32) -> Option<TransitionState> {
        use TransitionState::*;
        use pg_sys::*;
        Some(match function {
            F_AVG_INT2 | F_AVG_INT4 => CountAndSum,
            F_SUM_INT8 | F_AVG_INT8 => IntegerSum,
            F_AVG_FLOAT4 | F_AVG_FLOAT8 => Floats,
            F_VAR_POP_FLOAT4 | F_VAR_POP_FLOAT8 | F_VAR_SAMP_FLOAT4 | F_VAR_SAMP_FLOAT8
            | F_VARIANCE_FLOAT4 | F_VARIANCE_FLOAT8 | F_STDDEV_POP_FLOAT4 | F_STDDEV_POP_FLOAT8
            | F_STDDEV_SAMP_FLOAT4 | F_STDDEV_SAMP_FLOAT8 | F_STDDEV_FLOAT4 | F_STDDEV_FLOAT8 => {
                Floats
            }
            F_VAR_POP_INT2 | F_VAR_POP_INT4 | F_VAR_SAMP_INT2 | F_VAR_SAMP_INT4
            | F_VARIANCE_INT2 | F_VARIANCE_INT4 | F_STDDEV_POP_INT2 | F_STDDEV_POP_INT4
            | F_STDDEV_SAMP_INT2 | F_STDDEV_SAMP_INT4 | F_STDDEV_INT2 | F_STDDEV_INT4 => {
                IntegerMoments
            }
            _ if OfPairs::of(function).is_some() => Pairs,
            _ => return None,
        })
    }

    /// The datum of a group's state, in the current memory context. `None` is NULL, as of a group without numbers.
    pub fn datum(self, answer: Answer) -> Option<Datum> {
        match (self, answer) {
            (TransitionState::CountAndSum, Answer::Average { count, sum }) => {
                // PostgreSQL adds in 64 bits too.
                vec![count as i64, sum as i64].into_datum()
            }
            (TransitionState::CountAndSum, _) => vec![0_i64; 2].into_datum(),
            (
                TransitionState::Floats,
                Answer::Moments {
                    count,
                    sum,
                    squares,
                },
            ) => vec![count, sum, squares].into_datum(),
            (TransitionState::Floats, _) => vec![0.0_f64; 3].into_datum(),
            (TransitionState::Pairs, Answer::PairMoments(moments)) => vec![
                moments.count,
                moments.sum_x,
                moments.squares_x,
                moments.sum_y,
                moments.squares_y,
                moments.products,
            ]
            .into_datum(),
            (TransitionState::Pairs, _) => vec![0.0_f64; 6].into_datum(),
            (TransitionState::IntegerSum, Answer::Average { count, sum }) => {
                serialised(count, &[sum]).into_datum()
            }
            (
                TransitionState::IntegerMoments,
                Answer::IntegerMoments {
                    count,
                    sum,
                    squares,
                },
            ) => serialised(count, &[sum, squares]).into_datum(),
            (TransitionState::IntegerSum | TransitionState::IntegerMoments, _) => None,
        }
    }
}

/// A state of integers as `int8_avg_serialize` and `numeric_poly_serialize` write it.
fn serialised(count: u64, sums: &[i128]) -> Vec<u8> {
    let mut bytes = count.to_be_bytes().to_vec();
    for sum in sums {
        NumericDigits::of(*sum, 0).push_state(&mut bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_a_count_and_sums() {
        let state = serialised(3, &[0, 1]);
        assert_eq!(state[..8], [0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(state[8..24], [0; 16]);
        assert_eq!(state.len(), 8 + 16 + 18);
    }
}
