//! Aggregates over vectors, grouped or not.
//!
//! ```text
//! vector + selection ── keys ──► grouping: one group │ some stretches of rows, a group each │ a group id a row
//!                                    └── every aggregate: filter, argument, add to the states of the groups
//! ```
//!
//! The modules, in the order in which data flows:
//! - [`key`]: the keys of groups: numbers, bools, texts by their dictionary codes, uuids, time
//!   buckets.
//! - `bytes16_key`: keys of 16 bytes. `bucket_key`: time buckets. `bucket_memo`: the buckets of
//!   earlier rows. `repeated_times`: times that were cut into buckets before. `key_values`: the
//!   values of a key and their ids; `text_ids`: the ids of texts; `text_key`, `text_batch`: how the
//!   texts of a vector get their ids together.
//! - `known`: aggregation without new groups, when there is no memory for more; `key_hash`: hashes
//!   by which the rows of the other groups are put aside together.
//! - [`distinct`]: of rows of a group with equal values, the first one counts. `met_pairs`: the
//!   pairs of groups and values that were met. [`distinct_values`]: aggregates that take such
//!   values in their order.
//! - [`ordered_rows`]: the rows of an aggregate with ORDER BY. [`first_row`]: the first of them in
//!   each group.
//! - [`stretches`]: consecutive rows of one group.
//! - [`group`]: from the keys of a row to the id of its group, by `pairs` of ids. Ids are dense and
//!   count from 0 in order of appearance.
//! - `wide_groups`: groups when there are many, by `key_table`, a table of keys of a few words
//!   each.
//! - `argument`: the arguments of aggregates. `answers`: their answers.
//! - [`accumulator`]: the trait of the states of one aggregate. [`sum`], [`moments`], [`extreme`],
//!   [`edge`], [`weighted`], [`ema`], [`over_time`], [`histogram`], [`logic`] and [`percentile`]
//!   implement it, with one element for each group.
//! - [`item_extreme`]: extremes of texts, by their ranks in an order (`item_ranks`).
//! - [`decimal`]: sums and extremes of `numeric`, where they fit integers.
//! - `zone_answer`: whole vectors, and whole sealed runs, are added by their zones, without
//!   reading a row.
//! - [`Aggregation`]: the whole of an aggregation, which a scan feeds with vectors.
//!
//! *Order of addition of floats.* Integers are exact. For floats there are three cases:
//!
//! - Rows of one vector that are known to belong to one group go into sixteen interleaved stripes:
//!   row i of the vector to stripe i mod 16. That is known if there are no keys, or if the vector
//!   or a stretch of it has one value of each key or lies in one time bucket. The stripes are added
//!   up as [`lanes_simd::aggregate`] says. Stretches and vectors follow in row order.
//!
//! - Rows that have an id each are added one by one in row order, as PostgreSQL does.
//!
//! - In `sum(double precision)`, rows with ids are first summed in stripes where 64 rows (a whole
//!   word of the vector) are all selected and of one group. So are the rows of [short
//!   stretches](stretches).
//!
//! The order depends on the places of the rows, on the keys of their neighbours, on the zone maps
//! of time buckets and on the magnitude of the numbers (see below). It never depends on the
//! machine.
//!
//! *Overflow of floats.* While all numbers are of moderate magnitude, stripes overflow exactly when
//! PostgreSQL's order does, which is never. So the magnitude of each vector is checked first
//! ([`moments::MAGNITUDE_MAX`]). A vector with greater numbers is added row by row with
//! PostgreSQL's checks.

pub mod accumulator;
mod answers;
mod argument;
pub mod bits;
mod bucket_key;
mod bucket_memo;
mod bytes16_key;
pub mod decimal;
pub mod distinct;
pub mod distinct_values;
pub mod edge;
pub mod ema;
pub mod extreme;
pub mod first_row;
pub mod group;
pub mod histogram;
pub mod item_extreme;
mod item_ranks;
pub mod key;
mod key_hash;
pub(crate) mod key_table;
pub(crate) mod key_values;
mod known;
pub mod logic;
mod met_pairs;
pub mod moments;
mod number_ids;
pub mod ordered_rows;
pub mod over_time;
pub(crate) mod pairs;
pub mod percentile;
pub mod regression;
mod repeated_times;
pub mod stretches;
pub mod sum;
mod text_batch;
mod text_ids;
mod text_key;
pub mod weighted;
mod wide_groups;
pub mod wide_moments;
mod zone_answer;

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::predicate::Predicate;
use crate::vector::selection::Selection;
use crate::zone_map::Zone;

pub use accumulator::{Accumulator, Added, Answer, Grouping, Input, Numbers};
pub use argument::Argument;
#[cfg(test)]
use distinct::Seen;
use group::Groups;
pub use key::Key;
pub use key_values::KeyValue;

/// One aggregate of a query.
pub struct Aggregate {
    /// Only rows for which it holds are aggregated.
    pub filter: Option<Predicate>,
    /// Its argument.
    pub argument: Argument,
    /// Its states.
    pub accumulator: Box<dyn Accumulator>,
}

/// All aggregates of a query, and its groups.
pub struct Aggregation {
    groups: Groups,
    aggregates: Vec<Aggregate>,
    /// The aggregate that each answer is of, if answers share states.
    answers: Option<Vec<usize>>,
    /// Whether there are no keys, so that all rows belong to group 0.
    single: bool,
    spread: Spread,
    vectors_answered_by_zones: u64,
}

/// The group ids of a vector's rows, for accumulators that prefer ids to stretches.
struct Spread {
    ids: Box<[u32; VECTOR_ROWS]>,
    /// Whether they belong to the current vector.
    is_done: bool,
}

impl Spread {
    /// The grouping without stretches.
    fn each<'a>(&'a mut self, grouping: &Grouping<'a>) -> Grouping<'a> {
        let Grouping::Stretches(stretches) = grouping else {
            return *grouping;
        };
        if !std::mem::replace(&mut self.is_done, true) {
            stretches.spread(&mut self.ids[..]);
        }
        Grouping::Each(&self.ids[..])
    }
}

/// So many stretches, or fewer, are passed one by one to accumulators that do not take stretches.
const STRETCHES_ALONE_MAX: usize = 16;

impl Aggregation {
    /// An aggregation without rows. Without keys there is one group from the start, as in SQL.
    pub fn new(keys: Vec<Key>, aggregates: Vec<Aggregate>) -> Aggregation {
        let mut aggregation = Aggregation {
            single: keys.is_empty(),
            groups: Groups::new(keys),
            aggregates,
            answers: None,
            spread: Spread {
                ids: Box::new([0; VECTOR_ROWS]),
                is_done: false,
            },
            vectors_answered_by_zones: 0,
        };
        let groups = aggregation.groups.len();
        for aggregate in &mut aggregation.aggregates {
            aggregate.accumulator.resize(groups);
        }
        aggregation
    }

    /// Adds the selected rows of a vector.
    ///
    /// # Errors
    /// The errors of the expressions and of the aggregates. The caller handles
    /// [`crate::vector::EvaluationError::Disordered`]: see [`ema`].
    pub fn add(&mut self, frame: &Frame<'_>, selection: &Selection) -> Evaluation<()> {
        self.add_counted(frame, selection, selection.count())
    }

    /// Does as [`Self::add`], for a caller who knows how many rows are selected.
    ///
    /// # Errors
    /// As for [`Self::add`].
    pub fn add_counted(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
        count: usize,
    ) -> Evaluation<()> {
        debug_assert_eq!(selection.count(), count);
        if count == 0 {
            return Ok(());
        }
        for aggregate in self.aggregates.iter_mut().filter(|one| one.takes_rows()) {
            aggregate.accumulator.begin_vector();
        }
        let is_whole = zone_answer::is_whole(frame, count);
        let mut answered_by_zones = !self.aggregates.is_empty();
        if self.single {
            for aggregate in &mut self.aggregates {
                if is_whole && aggregate.add_zone(frame, 0) {
                    continue;
                }
                answered_by_zones = false;
                if !aggregate.add_count(frame, selection, count)? {
                    aggregate.add(frame, selection, &Grouping::One(0), &mut self.spread)?;
                }
            }
            self.vectors_answered_by_zones += u64::from(answered_by_zones);
            return Ok(());
        }
        self.spread.is_done = false;
        let known = self.groups.len();
        let grouping = self.groups.assign(frame, selection)?;
        let groups = grouping.groups;
        let whole = match grouping.grouping {
            Grouping::One(group) if is_whole => Some(group),
            _ => None,
        };
        for aggregate in &mut self.aggregates {
            if groups > known {
                aggregate.accumulator.resize(groups);
            }
            if !whole.is_some_and(|group| aggregate.add_zone(frame, group)) {
                answered_by_zones = false;
                aggregate.add(frame, selection, &grouping.grouping, &mut self.spread)?;
            }
        }
        self.vectors_answered_by_zones += u64::from(answered_by_zones);
        self.groups.end_vector();
        Ok(())
    }

    /// The zones to add for so many rows, one for each aggregate, if their stored zones answer all
    /// aggregates. There must be no keys.
    pub fn answered_by_zones(
        &self,
        rows: u32,
        zone: &dyn Fn(usize) -> Option<Zone>,
    ) -> Option<Vec<Zone>> {
        if !self.single || self.aggregates.is_empty() {
            return None;
        }
        let aggregates = self.aggregates.iter();
        aggregates
            .map(|aggregate| aggregate.stored_zone(rows, zone))
            .collect()
    }

    /// Adds so many rows by their stored zones, which are given by attribute. There must be no
    /// keys. False: the zones do not answer all aggregates, and nothing was added.
    pub fn add_stored_zones(&mut self, rows: u32, zone: &dyn Fn(usize) -> Option<Zone>) -> bool {
        let Some(zones) = self.answered_by_zones(rows, zone) else {
            return false;
        };
        for (aggregate, zone) in self.aggregates.iter_mut().zip(&zones) {
            let is_taken = zone.non_null == 0 || aggregate.accumulator.add_zone(0, zone);
            assert!(is_taken, "what was told can be taken");
        }
        true
    }

    /// The groups of the selected rows of a vector, and the number of groups so far.
    ///
    /// # Errors
    /// The errors of the keys' expressions.
    pub fn grouping(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<(Grouping<'_>, usize)> {
        let assigned = self.groups.assign(frame, selection)?;
        Ok((assigned.grouping, assigned.groups))
    }

    /// Whether [`add`](Self::add) of this vector will not read the times of a key that is a bucket.
    pub fn is_key_answered_by_zone(&self, key: usize, frame: &Frame<'_>) -> bool {
        self.groups.is_answered_by_zone(key, frame)
    }

    /// Whether a key accepts stretches of equal values instead of values.
    pub fn accepts_repeats(&self, key: usize) -> bool {
        self.groups.accepts_repeats(key)
    }

    /// Notes that there are no more rows. From now on answers may be read.
    pub fn finish(&mut self) {
        for aggregate in &mut self.aggregates {
            aggregate.accumulator.finish();
        }
    }

    /// The number of groups.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// A key of a group.
    pub fn key(&self, group: usize, key: usize) -> KeyValue<'_> {
        self.key_value(self.key_number(group, key), key)
    }

    /// From so many groups on, groups count as many.
    #[cfg(test)]
    pub(crate) fn widen_from(&mut self, groups: Option<usize>) {
        self.groups.wide_from = groups;
        let seen = self.aggregates.iter_mut().filter_map(Aggregate::seen);
        seen.for_each(|seen| seen.wide_from = groups);
    }

    /// Makes equal values of these keys have one number in all groups.
    pub fn share_key_numbers(&mut self, keys: impl IntoIterator<Item = usize>) {
        for key in keys {
            let place = self.groups.places[key];
            self.groups.keys[place].shares_numbers = true;
        }
    }

    /// The number of a group's value of a key. Groups with different values have different numbers.
    /// Groups with equal values have one number if numbers are [shared](Self::share_key_numbers).
    pub fn key_number(&self, group: usize, key: usize) -> u32 {
        self.groups.key_number(group, key)
    }

    /// Writes the numbers of some groups' values of a key, one after the other.
    pub fn key_numbers(&self, key: usize, groups: Range<usize>, out: &mut [u32]) {
        self.groups.key_numbers(key, groups, out);
    }

    /// The value of a key that has this number.
    pub fn key_value(&self, number: u32, key: usize) -> KeyValue<'_> {
        self.groups.key_value(number, key)
    }

    /// The number of numbers that the values of a key have. They count from 0.
    pub fn key_values(&self, key: usize) -> usize {
        self.groups.key_values(key)
    }

    /// The number of vectors of which no aggregate read a row.
    pub fn vectors_answered_by_zones(&self) -> u64 {
        self.vectors_answered_by_zones
    }

    /// The bytes of memory that groups and states take.
    pub fn bytes(&self) -> usize {
        let states = self.aggregates.iter().map(Aggregate::bytes);
        self.groups.bytes() + states.sum::<usize>()
    }
}

impl Aggregate {
    /// Whether its states read whole rows, and so may have any size.
    pub fn takes_rows(&self) -> bool {
        matches!(self.argument, Argument::Rows)
    }

    /// The values that each group has had, if each value counts once.
    #[cfg(test)]
    fn seen(&mut self) -> Option<&mut Seen> {
        match &mut self.argument {
            Argument::Distinct(distinct) => Some(&mut distinct.seen),
            _ => None,
        }
    }

    /// Bytes of memory.
    fn bytes(&self) -> usize {
        let seen = match &self.argument {
            Argument::Distinct(distinct) => distinct.seen.bytes(),
            _ => 0,
        };
        self.accumulator.bytes() + seen
    }

    /// Adds `count` selected rows of the only group, if it is enough to count them; false: it is
    /// not.
    #[inline]
    fn add_count(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
        count: usize,
    ) -> Evaluation<bool> {
        let (Argument::Nothing, Some(counts)) = (&self.argument, self.accumulator.counts()) else {
            return Ok(false);
        };
        counts[0] += match &mut self.filter {
            None => count as u64,
            Some(filter) => filter.count(frame, selection, count)? as u64,
        };
        Ok(true)
    }

    fn add(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
        grouping: &Grouping<'_>,
        spread: &mut Spread,
    ) -> Evaluation<()> {
        let (mut filtered, mut valid) = (None, None);
        let mut chosen = selection;
        if let Some(filter) = &mut self.filter {
            let filtered = filtered.insert(*selection);
            filter.narrow(frame, filtered)?;
            if filtered.is_empty() {
                return Ok(());
            }
            chosen = filtered;
        }
        let (argument, seen) = match &mut self.argument {
            Argument::Distinct(distinct) => (&mut distinct.argument, Some(&mut distinct.seen)),
            other => (other, None),
        };
        if matches!(argument, Argument::Rows) {
            let grouping = spread.each(grouping);
            return self.accumulator.add_rows(&grouping, frame, chosen);
        }
        if let Argument::Number(value) = argument
            && self.accumulator.uses_zone_hints()
        {
            let column = value.column();
            self.accumulator
                .set_zone_hint(column.and_then(|column| frame.zone(column)));
        }
        let (input, chosen) = argument.evaluate(frame, chosen, &mut valid)?;
        if chosen.is_empty() {
            return Ok(());
        }
        let added = |selection| Added {
            input: &input,
            selection,
            rows: frame.rows,
        };
        if let Some(seen) = seen {
            let grouping = spread.each(grouping);
            let new = seen.new_rows(&input, frame, chosen, &grouping)?;
            return match new.is_empty() {
                true => Ok(()),
                false => self.accumulator.add(&grouping, added(&new)),
            };
        }
        self.add_to_groups(grouping, added(chosen), spread)
    }

    /// Adds rows to their groups.
    fn add_to_groups(
        &mut self,
        grouping: &Grouping<'_>,
        added: Added<'_>,
        spread: &mut Spread,
    ) -> Evaluation<()> {
        let Grouping::Stretches(stretches) = grouping else {
            return self.accumulator.add(grouping, added);
        };
        if self.accumulator.add_stretches(*stretches, added)? {
            return Ok(());
        }
        if stretches.are_short || stretches.len() > STRETCHES_ALONE_MAX {
            let each = spread.each(grouping);
            return self.accumulator.add(&each, added);
        }
        for (group, of_group) in stretches.iter() {
            let selected = added.selection.within(of_group.start, of_group.end);
            if !selected.is_empty() {
                let selection = &selected;
                let of_group = Added { selection, ..added };
                self.accumulator.add(&Grouping::One(group), of_group)?;
            }
        }
        Ok(())
    }
}
