//! The codes of expressions over the small sides of a hash join, as a translator of expressions finds them in a frame.
//!
//! ```text
//! codes of grouping expressions │ of conditions │ of counted values │ the join's columns
//! ```

use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::value::Value;
use lanes_simd::Comparison;

use super::condition_code;
use super::joined_columns::CodedExpressions;
use super::translate::Translator;
use crate::pg::tree::{Expr, plan_node};

impl Translator {
    /// Adds expressions over the small sides of a hash join. A frame holds their codes after the codes of groups.
    pub fn with_coded(mut self, coded: CodedExpressions) -> Translator {
        if let Some(joined) = &mut self.joined {
            joined.joined_before += coded.len();
            joined.coded = coded;
        }
        self
    }

    /// The expressions over the small sides of a hash join whose codes a frame holds.
    pub fn coded(&self) -> Option<&CodedExpressions> {
        self.joined.as_ref().map(|joined| &joined.coded)
    }

    /// The place in a frame of the code of a value over the small sides of a hash join; `None` for any other
    /// expression.
    pub fn given_code(&self, expr: Expr<'_>) -> Option<usize> {
        let joined = self.joined.as_ref()?;
        let mut values = joined.coded.values.iter();
        let value = values.position(|value| expr.is_at(*value))?;
        Some(joined.joined_before - joined.coded.values.len() + value)
    }

    /// The number of operands that a frame holds before the join's columns.
    pub fn codes_before(&self) -> usize {
        self.joined
            .as_ref()
            .map_or(0, |joined| joined.joined_before)
    }

    /// The places in a frame of the codes of those conditions on the small sides of a hash join that `is_part` chooses.
    pub fn codes_in(&self, is_part: impl Fn(Expr<'_>) -> bool) -> Vec<usize> {
        let Some(joined) = &self.joined else {
            return Vec::new();
        };
        let first = joined.joined_before - joined.coded.len();
        let conditions = joined.coded.conditions.iter().enumerate();
        let parts = conditions.filter(|(_, condition)| is_part(plan_node(**condition)));
        parts.map(|(index, _)| first + index).collect()
    }

    /// The predicate of a condition on the small sides of a hash join; `None` for any other expression.
    pub fn given_condition(&mut self, expr: Expr<'_>) -> Option<Predicate> {
        let joined = self.joined.as_ref()?;
        let mut conditions = joined.coded.conditions.iter();
        let condition = conditions.position(|condition| expr.is_at(*condition))?;
        let place = joined.joined_before - joined.coded.len() + condition;
        let mut is = |code| {
            let code = self.scalar(Some(Scalar(code)));
            let (given, code) = (
                Value::Joined(NumberType::I64, place),
                Value::Scalar(NumberType::I64, code),
            );
            Predicate::Compare(Comparison::Equal, given, code)
        };
        let (holds, is_null) = (is(condition_code::TRUE), is(condition_code::NULL));
        let null = Predicate::Scalar(self.scalar(None));
        Some(Predicate::Or(vec![
            holds,
            Predicate::And(vec![is_null, null]),
        ]))
    }
}
