//! The first rows of an order.
//!
//! ```text
//! kept: a heap of at most `max` entries, the last of them on top
//! zone: best rank in it > the top's (with one key: ≥)           → no row of the vector
//! candidates = rows whose first key is before the top's (with several keys: or equal)
//! each candidate, in the direction of ties: entry > after, entry < top, accepted → in; the top goes
//! ```

use std::collections::BinaryHeap;

use lanes_simd::Comparison;

use super::entry::{Entry, Keys, SortBy, SortKey};
use super::item_candidates::ItemCandidates;
use super::rank::{Order, Rank};
use crate::lane::LaneData;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::predicate::compare;
use crate::vector::selection::Selection;
use crate::vector::value::Operand;
use crate::with_number;
use crate::zone_map::Zone;

/// The first rows, up to a limit, of the offered rows that follow a given row.
pub struct BestRows {
    keys: Keys,
    max: usize,
    after: Option<Entry>,
    kept: BinaryHeap<Entry>,
    /// Bytes that the items of the kept rows take, and may take.
    item_bytes: usize,
    item_bytes_max: usize,
    items: ItemCandidates,
    /// Whether a row that comes after `after` is not kept.
    incomplete: bool,
    /// Whether rows that tie with the last kept one by their keys count as before it.
    keeps_ties: bool,
}

/// Rows in order, by number.
pub struct Ordered {
    /// The rows.
    pub rows: Vec<u64>,
    /// Whether there may be more after them.
    pub more: bool,
}

impl BestRows {
    /// Bytes that a kept row takes.
    pub const ROW_BYTES: usize = size_of::<Entry>();

    /// No row yet. Without keys, rows are in the order of their numbers.
    pub fn new(keys: Vec<SortKey>) -> BestRows {
        BestRows {
            keys: Keys::new(keys),
            max: 0,
            after: None,
            kept: BinaryHeap::new(),
            item_bytes: 0,
            item_bytes_max: 0,
            items: ItemCandidates::default(),
            incomplete: false,
            keeps_ties: false,
        }
    }

    /// Begins a pass that keeps at most `max` rows, and fewer if their items take more than
    /// `item_bytes_max`. Rows must be offered vector by vector: backwards if the first key is
    /// descending, forwards otherwise.
    pub fn begin(&mut self, max: usize, item_bytes_max: usize) {
        self.max = max.max(1);
        self.kept.clear();
        (self.item_bytes, self.item_bytes_max) = (0, item_bytes_max);
        self.items = ItemCandidates::default();
        self.incomplete = false;
    }

    /// Whether vectors are to be offered from the last to the first.
    pub fn is_backward(&self) -> bool {
        self.keys.reversed()
    }

    /// The attribute whose zone [`BestRows::can_take`] needs.
    pub fn zone_attribute(&mut self) -> Option<usize> {
        self.keys.first()?.number_mut()?.column()
    }

    /// Whether a selected row of a vector may be kept. `zone` is the zone of
    /// [`BestRows::zone_attribute`]. If it is not exact, no row is read.
    pub fn can_take(&mut self, frame: &Frame<'_>, selection: &Selection, zone: &Zone) -> bool {
        let single = self.rejects_ties();
        let full = self.is_full();
        let Some(key) = self.keys.first() else {
            return true;
        };
        let order = key.order;
        let Some(attribute) = key.number_mut().and_then(|value| value.column()) else {
            return true;
        };
        let (best, worst) = if order.descending {
            (zone.maximum, zone.minimum)
        } else {
            (zone.minimum, zone.maximum)
        };
        let (Some(mut best), Some(mut worst)) = (order.bound(best), order.bound(worst)) else {
            return true;
        };
        let no_values = zone.non_null == 0;
        // A sorted zone has no NULLs. If the zone is not exact, the rows may not be readable yet.
        let has_nulls = || {
            if !zone.exact && !matches!(frame.lane(attribute).data, LaneData::Null) {
                return !frame.validity(attribute).is_null();
            }
            let present = frame.present(attribute, selection);
            !selection.and_not(&present).is_empty()
        };
        if no_values || !zone.sorted && has_nulls() {
            let null = order.null();
            best = if no_values { null } else { best.min(null) };
            worst = if no_values { null } else { worst.max(null) };
        }
        if self
            .after
            .as_ref()
            .is_some_and(|after| worst < after.ranks[0])
        {
            return false;
        }
        let Some(top) = self.kept.peek().filter(|_| full) else {
            return true;
        };
        let beaten = best > top.ranks[0] || single && best == top.ranks[0];
        self.incomplete |= beaten;
        !beaten
    }

    /// Offers the selected rows of a vector whose first row has the number `first_row`. A row that
    /// would be kept is kept only if `accept` returns true.
    ///
    /// # Errors
    /// The errors of the keys.
    pub fn offer(
        &mut self,
        frame: &Frame<'_>,
        first_row: u64,
        selection: &Selection,
        mut accept: impl FnMut(usize) -> bool,
    ) -> Evaluation<()> {
        let mut candidates = self.candidates(frame, selection)?;
        if candidates.is_empty() {
            return Ok(());
        }
        self.keys.evaluate(frame, &candidates)?;
        let backward = self.is_backward();
        let mut next = if backward {
            candidates.last()
        } else {
            candidates.next(0)
        };
        let mut was_full = self.is_full();
        while let Some(row) = next {
            self.offer_row(row, first_row, &mut accept);
            if !was_full && self.is_full() {
                was_full = true;
                // Now there is a last one kept, which rules most of the other rows out at once.
                let rest = match backward {
                    true => candidates.within(0, row),
                    false => candidates.within(row + 1, frame.rows),
                };
                candidates = self.candidates(frame, &rest)?;
            }
            next = if backward {
                candidates.previous(row)
            } else {
                candidates.next(row + 1)
            };
        }
        Ok(())
    }

    /// Whether a row is kept only in the place of another.
    fn is_full(&self) -> bool {
        self.kept.len() >= self.max
    }

    fn offer_row(&mut self, row: usize, first_row: u64, accept: &mut impl FnMut(usize) -> bool) {
        let full = self.is_full();
        if full
            && let Some(top) = self.kept.peek()
            && self.keys.first_rank(row) > top.ranks[0]
        {
            self.incomplete = true;
            return;
        }
        let keys = &self.keys;
        let is_before = |other: &Entry| keys.order(row, first_row, other).is_le();
        if self.after.as_ref().is_some_and(is_before) {
            return;
        }
        if !full {
            if accept(row) {
                self.keep(row, first_row);
            }
            return;
        }
        self.incomplete = true;
        if self.kept.peek().is_some_and(is_before) && accept(row) {
            self.drop_last();
            self.keep(row, first_row);
        }
    }

    /// Keeps one more row. Rows whose items have no room are left for another pass.
    fn keep(&mut self, row: usize, first_row: u64) {
        let entry = self.keys.entry(row, first_row);
        self.item_bytes += entry.item_bytes();
        self.kept.push(entry);
        while self.item_bytes > self.item_bytes_max && self.kept.len() > 1 {
            self.drop_last();
            self.max = self.kept.len();
            self.incomplete = true;
        }
    }

    /// Drops the last of the kept rows.
    fn drop_last(&mut self) {
        let last = self.kept.pop();
        self.item_bytes -= last.map_or(0, |last| last.item_bytes());
    }

    /// Whether a row whose first key equals that of the last kept row comes after it.
    fn rejects_ties(&self) -> bool {
        self.keys.len() == 1 && !self.keeps_ties
    }

    /// Ends a pass over rows with one key whose rows are not taken. From now on, [`BestRows::can_take`] and
    /// [`BestRows::candidates`] tell which rows are not after the last kept one. Returns false if the pass has kept all
    /// rows.
    pub fn keep_ties(&mut self) -> bool {
        self.keeps_ties = true;
        self.is_full()
    }

    /// The selected rows whose first key may put them among the first.
    ///
    /// # Errors
    /// The errors of the key.
    pub fn candidates(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<Selection> {
        let full = self.is_full();
        let single = self.rejects_ties();
        let (Some(top), Some(key)) = (self.kept.peek().filter(|_| full), self.keys.first()) else {
            return Ok(*selection);
        };
        let (limit, order) = (top.ranks[0], key.order);
        let (valid, values) = match &mut key.by {
            SortBy::Number(value) => {
                let operand = value.evaluate(frame, selection)?;
                let number = value.number();
                let values = order.number(limit, number).map(|scalar| {
                    let comparison = before(order, single);
                    with_number!(number, T => {
                        compare::<T>(comparison, operand, Operand::Same(scalar), frame.rows)
                    })
                });
                (operand.valid(selection), values)
            }
            SortBy::Item(attribute, sort) => {
                let valid = frame.present(*attribute, selection);
                let key = (*attribute, *sort, order);
                let before = || self.items.before(frame, key, &valid, top, !single);
                (valid, (!limit.is_null()).then(before))
            }
        };
        let values = match values {
            Some(before) => before.and(&valid),
            // The last row is NULL.
            None if order.nulls_first => Selection::NONE,
            None => valid,
        };
        let chosen = values.or(&nulls(order, limit, single, selection, &valid));
        self.incomplete |= chosen.count() < selection.count();
        Ok(chosen)
    }

    /// Ends the pass: its rows in order. The next pass begins after them.
    pub fn take(&mut self) -> Ordered {
        let entries = std::mem::take(&mut self.kept).into_sorted_vec();
        if let Some(last) = entries.last() {
            self.after = Some(last.clone());
        }
        let rows = entries.iter().map(|entry| self.keys.row(entry)).collect();
        Ordered {
            rows,
            more: self.incomplete,
        }
    }

    /// Bytes that the kept rows take.
    pub fn bytes(&self) -> usize {
        self.kept.capacity() * size_of::<Entry>() + self.item_bytes
    }
}

/// The comparison with the number of the last kept row that holds for rows before it. With a single
/// key, a row that ties is later and does not come before it.
fn before(order: Order, single: bool) -> Comparison {
    match (order.descending, single) {
        (false, true) => Comparison::Less,
        (false, false) => Comparison::LessOrEqual,
        (true, true) => Comparison::Greater,
        (true, false) => Comparison::GreaterOrEqual,
    }
}

/// The selected rows that are NULL, if NULL comes before the last one kept.
fn nulls(
    order: Order,
    limit: Rank,
    single: bool,
    selection: &Selection,
    valid: &Selection,
) -> Selection {
    let null = order.null();
    if null < limit || null == limit && !single {
        selection.and_not(valid)
    } else {
        Selection::NONE
    }
}
