//! The rows of a vector whose items may put them among the first rows of an order.

use lanes_simd::Comparison;

use super::entry::Entry;
use super::item_order::{ItemOrder, ItemSort};
use super::rank::Order;
use crate::lane::LaneData;
use crate::vector::decimal::Decimal;
use crate::vector::decimal::comparison::DecimalLimit;
use crate::vector::frame::Frame;
use crate::vector::selection::Selection;
use crate::vector::text::{CodeMemo, item_payload};

/// The items that come too late.
#[derive(Default)]
pub(super) struct ItemCandidates {
    /// Codes whose items come too late. They do for the rest of the pass: the last row that is kept
    /// only moves forwards.
    late: CodeMemo<()>,
    /// For numerics.
    limit: Option<DecimalLimit>,
}

impl ItemCandidates {
    /// Of rows that are not NULL in an attribute, those whose items come before that of the first
    /// key of `last`, which is not NULL. With `ties`, also those that are equal to it.
    pub(super) fn before(
        &mut self,
        frame: &Frame<'_>,
        (attribute, sort, order): (usize, ItemSort, Order),
        valid: &Selection,
        last: &Entry,
        ties: bool,
    ) -> Selection {
        let numeric = (attribute, sort, order);
        if let Some(chosen) = self.numbers_before(frame, numeric, valid, last, ties) {
            return chosen;
        }
        let lane = frame.lane(attribute);
        let mut chosen = Selection::NONE;
        let mut choose = |row: usize| {
            // SAFETY: a row of the vector that is not NULL.
            let payload = unsafe { item_payload(lane.pointer(frame.place + row)) };
            let counted = sort.counted(payload);
            let rank = order.abbreviated(sort.abbreviation(counted));
            let found = rank
                .cmp(&last.ranks[0])
                .then_with(|| last.order_of_item(0, counted));
            let is_chosen = found.is_lt() || ties && found.is_eq();
            chosen.words[row / 64] |= u64::from(is_chosen) << (row % 64);
            is_chosen
        };
        match lane.data {
            LaneData::Codes { codes, .. } => {
                self.late.enter(&frame.dictionaries[attribute]);
                valid.for_each(|row| {
                    // SAFETY: the lane has a code for each row.
                    let code = unsafe { *codes.add(frame.place + row) };
                    if self.late.known(code).is_none() && !choose(row) {
                        self.late.learn(code, ());
                    }
                });
            }
            _ => valid.for_each(|row| {
                choose(row);
            }),
        }
        chosen
    }

    /// The rows of a column of `numeric` that come before the last entry, or tie with it if `ties`, found by comparing
    /// integers. `None` if the items are of another type, or a number does not fit into 64 bits.
    fn numbers_before(
        &mut self,
        frame: &Frame<'_>,
        (attribute, sort, order): (usize, ItemSort, Order),
        valid: &Selection,
        last: &Entry,
        ties: bool,
    ) -> Option<Selection> {
        if !matches!(sort.order, ItemOrder::Numeric) {
            return None;
        }
        let limit = Decimal::of_payload(last.counted(0)?)?;
        let comparison = match (order.descending, ties) {
            (false, false) => Comparison::Less,
            (false, true) => Comparison::LessOrEqual,
            (true, false) => Comparison::Greater,
            (true, true) => Comparison::GreaterOrEqual,
        };
        let column = self
            .limit
            .get_or_insert_with(|| DecimalLimit::new(attribute));
        column.rows(frame, valid, comparison, limit)
    }
}
