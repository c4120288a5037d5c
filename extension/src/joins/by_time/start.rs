//! How a join by time begins: its keys and bounds, and the algorithm that suits the order of the right side.

use lanes_columnar::join::by_key::ByKey;
use lanes_columnar::join::keys::{JoinKey, JoinKeys};
use lanes_columnar::join::reading::Reading;
use lanes_columnar::join::sliding;
use lanes_columnar::join::window::WindowCall;
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::vector::value::Value;

use super::plan::{JoinPlan, TimeBound, Wanted};
use super::right_side::RightSide;
use super::stage::{Find, in_series};
use crate::error;
use crate::expressions::aggregate_call;
use crate::expressions::translate::{Translation, Translator};
use crate::pg::snapshot::Snapshot;

/// The keys of both sides. Takes those of the right side.
pub(super) fn join_keys(
    plan: &JoinPlan,
    right: &mut RightSide,
    translator: &mut Translator,
) -> Translation<JoinKeys> {
    let mut keys = Vec::new();
    let right_keys = std::mem::take(&mut right.keys);
    for ((left, column), right) in plan.left_keys.iter().zip(&plan.keys).zip(right_keys) {
        keys.push(JoinKey {
            left: aggregate_call::key(translator, *left)?.0,
            right,
            nulls_match: column.nulls_match,
        });
    }
    Ok(JoinKeys::new(keys))
}

/// A bound of the right side's time, over the left side, and whether it is inclusive.
pub(super) fn bound(
    bound: Option<TimeBound>,
    translator: &mut Translator,
) -> Translation<Option<(Value, bool)>> {
    let Some(bound) = bound else {
        return Ok(None);
    };
    Ok(Some((translator.value(bound.time)?, bound.inclusive)))
}

/// Whether a bound is inclusive, if its times are integers.
pub(super) fn inclusive_time(bound: Option<&(Value, bool)>) -> Option<bool> {
    let integers = bound.filter(|(value, _)| value.number() == NumberType::I64);
    integers.map(|bound| bound.1)
}

/// The choice of an algorithm when a join begins.
pub(super) struct Start<'a> {
    pub plan: &'a JoinPlan,
    pub snapshot: Option<Snapshot<'static>>,
    /// Whether the bound is inclusive, if there is one and its times are integers.
    pub lower: Option<bool>,
    pub upper: Option<bool>,
    pub has_lower: bool,
    pub limit: usize,
}

impl Start<'_> {
    /// The algorithm that suits the order of the right side.
    ///
    /// # Errors
    /// The right side takes too much memory, or its keys cannot be evaluated.
    pub fn find(
        &self,
        right: &mut RightSide,
        keys: &mut JoinKeys,
        numbers: &[NumberType],
        calls: Option<Vec<WindowCall>>,
    ) -> Evaluation<Find> {
        let reading = self.side_by_side(right, numbers, calls.as_deref());
        if reading.is_some() {
            right.open(self.snapshot);
        }
        let is_nearest = reading.is_some() && matches!(self.plan.wanted, Wanted::Nearest { .. });
        let reading = reading.filter(|_| right.is_in_order());
        let mut is_by_key = || {
            let found = right.is_by_key(keys);
            found.unwrap_or_else(|failure| error::evaluation(failure))
        };
        match (reading, self.upper) {
            (None, Some(inclusive)) if is_nearest && is_by_key() => {
                Ok(Find::ByKey(Box::new(ByKey::new(inclusive, numbers))))
            }
            (Some(reading), _) => Ok(Find::SideBySide { reading, calls }),
            _ => {
                let backward = matches!(self.plan.wanted, Wanted::Nearest { backward: true, .. });
                in_series(right, self.snapshot, keys, calls, backward, self.limit)
            }
        }
    }

    /// Reading both sides side by side, if the join allows it and both sides should turn out to be in order.
    fn side_by_side(
        &self,
        right: &RightSide,
        numbers: &[NumberType],
        calls: Option<&[WindowCall]>,
    ) -> Option<Reading> {
        if right.time_type() != NumberType::I64 || !right.has_plain_columns() {
            return None;
        }
        match (&self.plan.wanted, calls) {
            (Wanted::Nearest { backward: true, .. }, _) if !self.has_lower => {
                Some(Reading::latest(self.upper?, numbers))
            }
            (_, Some(calls)) if numbers.len() <= sliding::COLUMNS_MAX => {
                let inclusive = self.lower.zip(self.upper)?;
                Some(Reading::windows(
                    inclusive,
                    calls.to_vec(),
                    numbers.to_vec(),
                ))
            }
            _ => None,
        }
    }
}
