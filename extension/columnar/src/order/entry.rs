//! A row in an order.

use std::cmp::Ordering;

use super::item_order::ItemSort;
use super::rank::{Order, Rank};
use crate::lane::Lane;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::number::{Number, NumberType};
use crate::vector::selection::Selection;
use crate::vector::text::item_payload;
use crate::vector::value::{Operand, Value};
use crate::with_number;

/// Keys of one order at most.
pub const KEYS_MAX: usize = 4;

/// What rows are ordered by.
pub enum SortBy {
    /// A number a row.
    Number(Value),
    /// The items of a column.
    Item(usize, ItemSort),
}

/// Bytes that an allocation takes beside its content, roughly.
const ALLOCATION_BYTES: usize = 16;

/// A key of an order.
pub struct SortKey {
    /// What of a row.
    pub by: SortBy,
    /// In which direction.
    pub order: Order,
}

impl SortKey {
    /// The number, if it is one.
    pub(super) fn number_mut(&mut self) -> Option<&mut Value> {
        match &mut self.by {
            SortBy::Number(value) => Some(value),
            SortBy::Item(..) => None,
        }
    }
}

/// A row with the ranks of its keys; the ranks past the last key are all equal. The row that comes
/// first is the least.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(super) ranks: [Rank; KEYS_MAX],
    /// The row's number; if tied rows follow in descending order, its complement.
    place: u64,
    /// The items of the keys, if any key is one.
    items: Option<Box<[Option<Item>; KEYS_MAX]>>,
}

/// What counts of an item of a row. The items of one key are all compared in the same way.
#[derive(Clone, Debug)]
struct Item {
    sort: ItemSort,
    descending: bool,
    counted: Box<[u8]>,
}

impl Item {
    /// Where an item of the same key comes, compared with this one.
    fn order_of(&self, counted: &[u8]) -> Ordering {
        let order = self.sort.compare(counted, &self.counted);
        if self.descending {
            order.reverse()
        } else {
            order
        }
    }
}

impl Entry {
    /// The item of a key of which the row is not NULL; `None` also for numbers.
    fn item(&self, key: usize) -> Option<&Item> {
        self.items.as_ref()?[key].as_ref()
    }

    /// What counts of the item of a key.
    pub(super) fn counted(&self, key: usize) -> Option<&[u8]> {
        self.item(key).map(|item| &*item.counted)
    }

    /// Where an item of a key comes, compared with this row's, if the ranks of both are equal.
    pub(super) fn order_of_item(&self, key: usize, counted: &[u8]) -> Ordering {
        let item = self.item(key);
        item.map_or(Ordering::Equal, |item| item.order_of(counted))
    }

    /// Bytes of memory that its items take.
    pub(super) fn item_bytes(&self) -> usize {
        let Some(items) = &self.items else {
            return 0;
        };
        let bytes = items.iter().flatten();
        let bytes = bytes.map(|item| item.counted.len() + ALLOCATION_BYTES);
        size_of_val(&**items) + ALLOCATION_BYTES + bytes.sum::<usize>()
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        if self.items.is_none() {
            return (self.ranks, self.place).cmp(&(other.ranks, other.place));
        }
        let order = (0..KEYS_MAX).map(|key| {
            let order = self.ranks[key].cmp(&other.ranks[key]);
            order.then_with(|| match self.item(key) {
                Some(item) => other.order_of_item(key, &item.counted),
                None => Ordering::Equal,
            })
        });
        let decided = order.into_iter().find(|order| order.is_ne());
        decided.unwrap_or_else(|| self.place.cmp(&other.place))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

/// What a key has for the rows of a vector.
enum Read {
    Numbers(Operand),
    /// A lane, and its row that is the first of the vector.
    Items(Lane, usize),
}

/// The keys of an order.
pub(super) struct Keys {
    keys: Vec<SortKey>,
    read: Vec<Read>,
    validities: Vec<Selection>,
}

impl Keys {
    /// Between one and [`KEYS_MAX`] keys; more are of no effect.
    pub(super) fn new(mut keys: Vec<SortKey>) -> Keys {
        keys.truncate(KEYS_MAX);
        Keys {
            read: Vec::with_capacity(keys.len()),
            validities: Vec::with_capacity(keys.len()),
            keys,
        }
    }

    pub(super) fn first(&mut self) -> Option<&mut SortKey> {
        self.keys.first_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether tied rows follow in descending order.
    pub(super) fn reversed(&self) -> bool {
        self.keys.first().is_some_and(|key| key.order.descending)
    }

    /// Computes the keys of the selected rows, for [`Keys::entry`].
    pub(super) fn evaluate(&mut self, frame: &Frame<'_>, selection: &Selection) -> Evaluation<()> {
        self.read.clear();
        self.validities.clear();
        for key in &mut self.keys {
            match &mut key.by {
                SortBy::Number(value) => {
                    let operand = value.evaluate(frame, selection)?;
                    self.read.push(Read::Numbers(operand));
                    self.validities.push(operand.valid(selection));
                }
                SortBy::Item(attribute, _) => {
                    let lane = frame.lane(*attribute);
                    self.read.push(Read::Items(lane, frame.place));
                    self.validities.push(frame.present(*attribute, selection));
                }
            }
        }
        Ok(())
    }

    /// The rank of a row's first key.
    #[inline]
    pub(super) fn first_rank(&self, row: usize) -> Rank {
        if self.keys.is_empty() {
            return Rank::default();
        }
        self.rank(0, row)
    }

    /// The type of the first key, if that is a number.
    pub(super) fn first_number(&self) -> Option<NumberType> {
        match &self.keys.first()?.by {
            SortBy::Number(value) => Some(value.number()),
            SortBy::Item(..) => None,
        }
    }

    /// The rank of the first key like [`Keys::first_rank`], where its type is known.
    #[inline]
    pub(super) fn first_rank_as<T: Number>(&self, row: usize) -> Rank {
        let key = &self.keys[0];
        match &self.read[0] {
            Read::Numbers(operand) if self.validities[0].contains(row) => {
                // SAFETY: the operand was computed for the vector of `evaluate`, and this is one of
                // its rows.
                key.order.rank::<T>(unsafe { operand.get::<T>(row) })
            }
            _ => key.order.null(),
        }
    }

    /// No row of a selection has a lower rank of the first key, a number of this type. `None`: that is not known at a
    /// glance, or no row is selected.
    pub(super) fn least_first_rank<T: Number>(
        &self,
        selection: &Selection,
        rows: usize,
    ) -> Option<Rank> {
        let Read::Numbers(Operand::Each { values, .. }) = self.read[0] else {
            return None;
        };
        if self.validities[0] != *selection {
            return None;
        }
        let (values, words, order) = (values.cast::<T>(), selection.as_ptr(), self.keys[0].order);
        // SAFETY: the operand was computed for the vector of `evaluate`, which has so many rows.
        let first = unsafe {
            match order.descending {
                true => lanes_simd::aggregate::maximum::<T>(values, rows, words),
                false => lanes_simd::aggregate::minimum::<T>(values, rows, words),
            }
        };
        first.map(|first| order.rank::<T>(first))
    }

    #[inline]
    fn rank(&self, index: usize, row: usize) -> Rank {
        let key = &self.keys[index];
        if !self.validities[index].contains(row) {
            return key.order.null();
        }
        match (&self.read[index], &key.by) {
            (Read::Numbers(operand), SortBy::Number(value)) => {
                with_number!(value.number(), T => {
                    // SAFETY: the operand was computed for the vector of `evaluate`, and this is
                    // one of its rows.
                    key.order.rank::<T>(unsafe { operand.get::<T>(row) })
                })
            }
            _ => match self.counted(index, row) {
                Some((sort, counted)) => key.order.abbreviated(sort.abbreviation(counted)),
                None => key.order.null(),
            },
        }
    }

    /// What counts of a row's item, and how it is compared. `None` for NULL and for numbers.
    #[inline]
    fn counted(&self, index: usize, row: usize) -> Option<(ItemSort, &[u8])> {
        match (&self.read[index], &self.keys[index].by) {
            (Read::Items(lane, place), SortBy::Item(_, sort))
                if self.validities[index].contains(row) =>
            {
                // SAFETY: a row of the vector of `evaluate` that is not NULL.
                let payload = unsafe { item_payload(lane.pointer(place + row)) };
                Some((*sort, sort.counted(payload)))
            }
            _ => None,
        }
    }

    /// Where a row of the vector comes, compared with another row.
    pub(super) fn order(&self, row: usize, first_row: u64, other: &Entry) -> Ordering {
        for index in 0..self.keys.len() {
            let order = self.rank(index, row).cmp(&other.ranks[index]);
            let order = order.then_with(|| match self.counted(index, row) {
                Some((_, counted)) => other.order_of_item(index, counted),
                None => Ordering::Equal,
            });
            if order.is_ne() {
                return order;
            }
        }
        self.place(row, first_row).cmp(&other.place)
    }

    /// A row of the vector, whose first row has the number `first_row`.
    pub(super) fn entry(&self, row: usize, first_row: u64) -> Entry {
        let mut ranks = [Rank::default(); KEYS_MAX];
        for (index, rank) in ranks.iter_mut().enumerate().take(self.keys.len()) {
            *rank = self.rank(index, row);
        }
        let is_item = |read: &Read| matches!(read, Read::Items(..));
        let items = self.read.iter().any(is_item).then(|| {
            let item = |index: usize| {
                let (sort, counted) = (index < self.keys.len())
                    .then(|| self.counted(index, row))
                    .flatten()?;
                Some(Item {
                    sort,
                    descending: self.keys[index].order.descending,
                    counted: counted.into(),
                })
            };
            Box::new(std::array::from_fn(item))
        });
        Entry {
            ranks,
            place: self.place(row, first_row),
            items,
        }
    }

    /// The place of a row among those that are equal by all keys.
    fn place(&self, row: usize, first_row: u64) -> u64 {
        let number = first_row + row as u64;
        if self.reversed() { !number } else { number }
    }

    /// The number of an entry's row.
    pub(super) fn row(&self, entry: &Entry) -> u64 {
        if self.reversed() {
            !entry.place
        } else {
            entry.place
        }
    }
}
