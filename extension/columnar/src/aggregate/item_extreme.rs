//! `min` and `max` of texts.
//!
//! ```text
//! vector with a dictionary ── ranks ──► the best rank of each group ─┐
//! any other vector ────────── texts ──► the best text of each group ─┴► the better of both ──► result
//! ```
//! Of a dictionary each text is compared once, as long as its texts are few beside the rows: see `item_ranks`. Any
//! other text is compared with the best one of its group.
//!
//! The order tells all texts apart, so it makes no difference which of several equal texts is the result.

use super::accumulator::{Accumulator, Added, Answer, Grouping, each_row};
use super::extreme::End;
use super::item_ranks::{Entered, ItemRanks};
use super::key_values::payload;
use crate::lane::{Lane, LaneData};
use crate::limits::VECTOR_ROWS;
use crate::order::ItemSort;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::selection::Selection;
use crate::vector::text::{CodeMemo, Item, item_bytes};

/// So many texts get ranks before any row was read, and one more for so many rows.
const TEXTS_MIN: usize = 256;
const ROWS_A_TEXT: usize = 8;
/// Bytes that an allocation takes beside its content, roughly.
const ALLOCATION_BYTES: usize = 16;

/// The smallest or greatest text of each group.
pub struct ItemExtreme {
    attribute: usize,
    sort: ItemSort,
    end: End,
    ranks: ItemRanks,
    /// The best rank of each group among vectors with ranks, or [`nothing`](Self::nothing).
    best: Vec<i32>,
    /// The best text of each group among all other vectors, as an item; empty before the first of them.
    items: Vec<Option<Box<[u8]>>>,
    item_bytes: usize,
    /// Codes whose texts do not beat the text of a group.
    beaten: CodeMemo<()>,
    beaten_in: Option<u32>,
    /// The rows that were added.
    rows: usize,
    ranks_of_rows: Box<[i32; VECTOR_ROWS]>,
}

impl ItemExtreme {
    /// States without groups, of an attribute whose texts are equal in the order only if their bytes are.
    pub fn new(attribute: usize, sort: ItemSort, end: End) -> ItemExtreme {
        ItemExtreme {
            attribute,
            sort,
            end,
            ranks: ItemRanks::new(sort),
            best: Vec::new(),
            items: Vec::new(),
            item_bytes: 0,
            beaten: CodeMemo::default(),
            beaten_in: None,
            rows: 0,
            ranks_of_rows: Box::new([0; VECTOR_ROWS]),
        }
    }

    /// The rank that every rank beats.
    fn nothing(&self) -> i32 {
        match self.end {
            End::Minimum => i32::MAX,
            End::Maximum => i32::MIN,
        }
    }

    /// Goes on to the ranks of a vector's dictionary; false if it has none.
    fn enter(&mut self, frame: &Frame<'_>, slots: *const u64, heap: *const u8) -> bool {
        let dictionary = &frame.dictionaries[self.attribute];
        let most = TEXTS_MIN + self.rows / ROWS_A_TEXT;
        // SAFETY: a code of the dictionary, which has a slot for each; the lane lives as long as the frame.
        let item = |code: u32| unsafe { Item::new(heap.add(*slots.add(code as usize) as usize)) };
        match self.ranks.enter(dictionary, item, most) {
            Entered::Refused => return false,
            Entered::Same => {}
            Entered::Moved(ranks) => {
                let nothing = self.nothing();
                for best in self.best.iter_mut().filter(|best| **best != nothing) {
                    *best = ranks[*best as usize];
                }
            }
        }
        true
    }

    /// Compares the ranks of the valid rows with their groups'.
    fn offer_ranks(
        &mut self,
        grouping: &Grouping<'_>,
        codes: &[u32],
        valid: &Selection,
    ) -> Evaluation<()> {
        let (ranks, by_code) = (&mut self.ranks_of_rows, self.ranks.by_code());
        // The code of a row that is not valid may have no rank.
        for (rank, code) in ranks.iter_mut().zip(codes) {
            *rank = by_code.get(*code as usize).copied().unwrap_or(0);
        }
        let (values, rows, chosen) = (ranks.as_ptr(), codes.len(), valid.as_ptr());
        match *grouping {
            Grouping::One(group) => {
                // SAFETY: there is a rank for each row of the vector.
                let found = unsafe {
                    match self.end {
                        End::Minimum => lanes_simd::aggregate::minimum(values, rows, chosen),
                        End::Maximum => lanes_simd::aggregate::maximum(values, rows, chosen),
                    }
                };
                let best = &mut self.best[group as usize];
                let found = found.unwrap_or(*best);
                *best = match self.end {
                    End::Minimum => found.min(*best),
                    End::Maximum => found.max(*best),
                };
            }
            Grouping::Each(ids) => {
                let (ids, best) = (ids.as_ptr(), self.best.as_mut_ptr());
                // SAFETY: ids of selected rows are below the number of groups; there is a rank for each row.
                unsafe {
                    use lanes_simd::group::{group_maximum, group_minimum};
                    match self.end {
                        End::Minimum => group_minimum(ids, values, rows, chosen, best),
                        End::Maximum => group_maximum(ids, values, rows, chosen, best),
                    }
                }
            }
            Grouping::Stretches(_) => {}
        }
        Ok(())
    }

    /// Compares the texts of the valid rows with their groups'.
    fn offer_texts(
        &mut self,
        grouping: &Grouping<'_>,
        frame: &Frame<'_>,
        lane: &Lane,
        valid: &Selection,
    ) -> Evaluation<()> {
        self.items.resize(self.best.len(), None);
        // SAFETY: a row of the vector that is not NULL, whose lane lives as long as the frame.
        let item = |row: usize| unsafe { item_bytes(lane.pointer(frame.place + row)) };
        if let (Grouping::One(group), LaneData::Codes { codes, .. }) = (grouping, lane.data) {
            if self.beaten_in.replace(*group) != Some(*group) {
                self.beaten = CodeMemo::default();
            }
            self.beaten.enter(&frame.dictionaries[self.attribute]);
            valid.for_each(|row| {
                // SAFETY: the lane has a code for each row.
                let code = unsafe { *codes.add(frame.place + row) };
                if self.beaten.known(code).is_none() {
                    self.offer(*group as usize, item(row));
                    self.beaten.learn(code, ());
                }
            });
            return Ok(());
        }
        each_row(grouping, valid, |row, group| {
            self.offer(group, item(row));
            Ok(())
        })
    }

    /// Compares a text with a group's.
    #[inline]
    fn offer(&mut self, group: usize, item: &[u8]) {
        if let Some(best) = &self.items[group] {
            if !self.beats(item, best) {
                return;
            }
            self.item_bytes -= best.len() + ALLOCATION_BYTES;
        }
        self.item_bytes += item.len() + ALLOCATION_BYTES;
        self.items[group] = Some(item.into());
    }

    /// Whether an item is better than another one, and not equal to it.
    #[inline]
    fn beats(&self, item: &[u8], other: &[u8]) -> bool {
        let counted = |item| self.sort.counted(payload(item));
        let (item, other) = (counted(item), counted(other));
        // Most texts that a group meets repeatedly are compared without the collation.
        if item == other {
            return false;
        }
        let order = self.sort.compare(item, other);
        match self.end {
            End::Minimum => order.is_lt(),
            End::Maximum => order.is_gt(),
        }
    }

    /// The best text of a group as an item, if it has one.
    fn best_item(&self, group: usize) -> Option<&[u8]> {
        let rank = Some(self.best[group]).filter(|rank| *rank != self.nothing());
        let ranked = rank.map(|rank| self.ranks.item(rank));
        let other = self.items.get(group).and_then(Option::as_deref);
        match (ranked, other) {
            (Some(ranked), Some(other)) => Some(match self.beats(other, ranked) {
                true => other,
                false => ranked,
            }),
            (ranked, other) => ranked.or(other),
        }
    }
}

impl Accumulator for ItemExtreme {
    fn resize(&mut self, groups: usize) {
        self.best.resize(groups, self.nothing());
    }

    fn add(&mut self, _grouping: &Grouping<'_>, _added: Added<'_>) -> Evaluation<()> {
        unreachable!("an aggregate of rows")
    }

    fn add_rows(
        &mut self,
        grouping: &Grouping<'_>,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<()> {
        let valid = frame.present(self.attribute, selection);
        if valid.is_empty() {
            return Ok(());
        }
        self.rows += valid.count();
        let lane = frame.lane(self.attribute);
        if let LaneData::Codes { codes, slots, heap } = lane.data
            && self.enter(frame, slots, heap)
        {
            // SAFETY: the lane has a code for each row of the vector.
            let codes = unsafe { std::slice::from_raw_parts(codes.add(frame.place), frame.rows) };
            return self.offer_ranks(grouping, codes, &valid);
        }
        match lane.data {
            LaneData::Codes { .. } | LaneData::Offsets { .. } => {
                self.offer_texts(grouping, frame, &lane, &valid)
            }
            _ => Ok(()),
        }
    }

    fn clear(&mut self) {
        *self = ItemExtreme::new(self.attribute, self.sort, self.end);
    }

    fn answer(&self, group: usize) -> Answer {
        match self.best_item(group) {
            // The address of an item, which lives as long as the groups.
            Some(item) => Answer::Bits(item.as_ptr() as u64),
            None => Answer::Null,
        }
    }

    fn bytes(&self) -> usize {
        let items = self.items.capacity() * size_of::<Option<Box<[u8]>>>() + self.item_bytes;
        let beaten = self.beaten.bytes();
        items + beaten + self.best.capacity() * size_of::<i32>() + self.ranks.bytes()
    }
}
