//! Aggregates over vectors, grouped or not.
//!
//! ```text
//! vector + selection ── keys ──► grouping: one group │ some stretches of rows, a group each │ a group id a row
//!                                    └── every aggregate: filter, argument, add to the states of the groups
//! ```
//!
//! The cast, in the order in which data flow:
//! - [`key`]: what is grouped by: numbers, bools, text by its dictionary codes, uuids, time buckets.
//! - `bytes16_key`: those of 16 bytes. `bucket_key`: time buckets. `bucket_memo`: the buckets met before.
//!   `repeated_times`: the times cut before. `key_values`: the values of a key and their ids; `text_ids`: those of
//!   texts; `text_key`, `text_batch`: how a vector's texts get them together.
//! - `known`: aggregation without new groups, for when there is no memory for more; `key_hash`: which of the other
//!   groups are aggregated together later.
//! - [`distinct`]: rows of a group with equal values, of which the first one counts.
//! - [`stretches`]: rows in a row that are of one group.
//! - [`group`]: from the keys of a row to the id of its group, by `pairs` of ids; ids are dense and count from 0 in
//!   order of appearance.
//! - `wide_groups`: groups of which there are many, by `key_table`, a table of keys that are some words each.
//! - [`accumulator`]: the trait that the states of one aggregate implement; [`sum`], [`moments`], [`extreme`],
//!   [`edge`], [`weighted`], [`ema`], [`over_time`], [`histogram`], [`logic`], [`percentile`] are those states: one
//!   element a group, side by side.
//! - [`zone_answer`]: whole vectors, and whole sealed stretches, taken in by their zones, without a look at a row.
//! - [`Aggregation`]: all of it, as a scan drives it.
//!
//! *Order of addition of floats.* Integers are exact. Rows of one vector that are known to be of one group (there are no
//! keys, or the vector or a stretch of it has one value of them or lies in one time bucket) go into sixteen interleaved stripes
//! (row i of the vector to stripe i mod 16), which are added up as [`lanes_simd::aggregate`] says; stretches and vectors follow in
//! row order. Rows that have an id each are added one by one in row order, as PostgreSQL does, but for
//! `sum(double precision)`, where 64 rows (a whole word of the vector), all selected and of one group, are summed in stripes
//! first. So are the rows of [short stretches](stretches). The order depends on the rows' places, on the keys of their neighbours, on
//! the zone maps of time buckets and on the magnitude of the numbers (see below), never on the machine.
//!
//! *Overflow of floats.* Stripes cannot overflow where PostgreSQL's order does not, nor the reverse, while all numbers
//! are of moderate magnitude, so that is checked first, a vector at a time ([`moments::MAGNITUDE_MAX`]). A vector that
//! has greater ones is added row by row with PostgreSQL's checks.

pub mod accumulator;
mod bucket_key;
mod bucket_memo;
mod bytes16_key;
pub mod distinct;
pub mod edge;
pub mod ema;
pub mod extreme;
pub mod group;
pub mod histogram;
pub mod key;
mod key_hash;
pub(crate) mod key_table;
pub(crate) mod key_values;
mod known;
pub mod logic;
pub mod moments;
mod number_ids;
pub mod over_time;
pub(crate) mod pairs;
pub mod percentile;
mod repeated_times;
pub mod stretches;
pub mod sum;
mod text_batch;
mod text_ids;
mod text_key;
pub mod weighted;
mod wide_groups;
mod zone_answer;

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::predicate::Predicate;
use crate::vector::selection::Selection;
use crate::vector::value::{Operand, Value};
use crate::zone_map::Zone;

pub use accumulator::{Accumulator, Answer, Grouping, Input, Numbers};
use distinct::{Distinct, Seen};
use group::Groups;
pub use key::Key;
pub use key_values::KeyValue;

/// What an aggregate takes.
pub enum Argument {
    /// Nothing: `count(*)`.
    Nothing,
    /// A number.
    Number(Value),
    /// A truth.
    Truth(Predicate),
    /// A column of any type, of which only NULLs matter.
    Presence(usize),
    /// Two numbers.
    Pair(Value, Value),
    /// A number, a parameter, and a time where the order of rows is asked for.
    Timed(Value, Value, Option<Value>),
    /// Whole rows, which the accumulator reads itself.
    Rows,
    /// One of the above, each value of which counts once in a group.
    Distinct(Box<Distinct>),
}

/// One aggregate of a query.
pub struct Aggregate {
    /// Rows for which it does not hold are left out.
    pub filter: Option<Predicate>,
    /// What it takes.
    pub argument: Argument,
    /// Its states.
    pub accumulator: Box<dyn Accumulator>,
}

/// All aggregates of a query with their groups.
pub struct Aggregation {
    groups: Groups,
    aggregates: Vec<Aggregate>,
    /// Whether there are no keys, so that all rows are of group 0.
    single: bool,
    spread: Spread,
    vectors_answered_by_zones: u64,
}

/// The groups of a vector's rows where an accumulator had rather have one each than stretches of them.
struct Spread {
    ids: Box<[u32; VECTOR_ROWS]>,
    /// Whether they are those of the vector under way.
    is_done: bool,
}

impl Spread {
    /// A grouping without stretches.
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

/// Stretches up to here reach accumulators that do not take stretches one by one.
const STRETCHES_ALONE_MAX: usize = 16;

impl Aggregation {
    /// Nothing read yet. Without keys there is one group from the start, as in SQL.
    pub fn new(keys: Vec<Key>, aggregates: Vec<Aggregate>) -> Aggregation {
        let mut aggregation = Aggregation {
            single: keys.is_empty(),
            groups: Groups::new(keys),
            aggregates,
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

    /// Takes in the selected rows of a vector.
    ///
    /// # Errors
    /// Those of the expressions, and of the aggregates themselves. [`crate::vector::EvaluationError::Disordered`] is the
    /// caller's to mend: see [`ema`].
    pub fn add(&mut self, frame: &Frame<'_>, selection: &Selection) -> Evaluation<()> {
        self.add_counted(frame, selection, selection.count())
    }

    /// As [`Self::add`], for a caller who knows how many rows are selected.
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

    /// What to take in of so many rows, an aggregate each, if the zones that are stored of them tell all that is asked for without keys.
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

    /// Takes in so many rows without keys by the zones that are stored of them, by attribute. False, and nothing is taken in, if they do
    /// not tell all that is asked for.
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

    /// To which groups the selected rows of a vector belong, and how many groups there are now.
    ///
    /// # Errors
    /// Those of the keys' expressions.
    pub fn grouping(
        &mut self,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<(Grouping<'_>, usize)> {
        let assigned = self.groups.assign(frame, selection)?;
        Ok((assigned.grouping, assigned.groups))
    }

    /// Whether [`add`](Self::add) of this vector is not going to read what a key, a bucket, is made of.
    pub fn is_key_answered_by_zone(&self, key: usize, frame: &Frame<'_>) -> bool {
        self.groups.is_answered_by_zone(key, frame)
    }

    /// Whether a key takes stretches of equal values for values.
    pub fn accepts_repeats(&self, key: usize) -> bool {
        self.groups.accepts_repeats(key)
    }

    /// There are no more rows. Answers may be asked for from now on.
    pub fn finish(&mut self) {
        for aggregate in &mut self.aggregates {
            aggregate.accumulator.finish();
        }
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// A key of a group.
    pub fn key(&self, group: usize, key: usize) -> KeyValue<'_> {
        self.key_value(self.key_number(group, key), key)
    }

    /// So many groups count as many.
    #[cfg(test)]
    pub(crate) fn widen_from(&mut self, groups: Option<usize>) {
        self.groups.wide_from = groups;
        let seen = self.aggregates.iter_mut().filter_map(Aggregate::seen);
        seen.for_each(|seen| seen.wide_from = groups);
    }

    /// Equal values of a key get the same number in all groups.
    pub fn share_key_numbers(&mut self) {
        self.groups.shares_numbers = true;
    }

    /// The number of a group's value of a key. Groups with different values have different numbers. Groups with
    /// equal values have the same if numbers are [shared](Self::share_key_numbers).
    pub fn key_number(&self, group: usize, key: usize) -> u32 {
        self.groups.key_number(group, key)
    }

    /// The numbers of some groups' values of a key, one after the other.
    pub fn key_numbers(&self, key: usize, groups: Range<usize>, out: &mut [u32]) {
        self.groups.key_numbers(key, groups, out);
    }

    /// The value of a key that has this number.
    pub fn key_value(&self, number: u32, key: usize) -> KeyValue<'_> {
        self.groups.key_value(number, key)
    }

    /// How many numbers the values of a key have. They count from 0.
    pub fn key_values(&self, key: usize) -> usize {
        self.groups.key_values(key)
    }

    /// The answer of an aggregate for a group.
    pub fn answer(&self, group: usize, aggregate: usize) -> Answer {
        self.aggregates[aggregate].accumulator.answer(group)
    }

    /// The answer of an aggregate for a group for which it is [`Answer::List`].
    pub fn list(&self, group: usize, aggregate: usize) -> &[u32] {
        self.aggregates[aggregate].accumulator.list(group)
    }

    /// The answers of an aggregate for some groups, as [`Accumulator::numbers`] writes them; false if it does not.
    pub fn numbers(&self, aggregate: usize, groups: Range<usize>, out: &mut Numbers<'_>) -> bool {
        self.aggregates[aggregate].accumulator.numbers(groups, out)
    }

    /// Vectors of which no aggregate read a row.
    pub fn vectors_answered_by_zones(&self) -> u64 {
        self.vectors_answered_by_zones
    }

    /// Bytes of memory that groups and states take.
    pub fn bytes(&self) -> usize {
        let states = self.aggregates.iter().map(Aggregate::bytes);
        self.groups.bytes() + states.sum::<usize>()
    }
}

impl Aggregate {
    /// Whether its states read whole rows, and so may be of any size.
    pub fn takes_rows(&self) -> bool {
        matches!(self.argument, Argument::Rows)
    }

    /// The values that groups have had, if each value counts once.
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

    /// Takes in `count` selected rows of the only group, if it is enough to count them; false if it is not.
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
        let input = match argument {
            Argument::Nothing | Argument::Distinct(_) => Input::Nothing,
            Argument::Presence(attribute) => {
                chosen = valid.insert(frame.present(*attribute, chosen));
                Input::Nothing
            }
            Argument::Number(value) => {
                if self.accumulator.uses_zone_hints() {
                    let column = value.column();
                    self.accumulator
                        .set_zone_hint(column.and_then(|column| frame.zone(column)));
                }
                let operand = value.evaluate(frame, chosen)?;
                chosen = operand.valid_in(chosen, &mut valid);
                Input::Number(operand)
            }
            Argument::Truth(predicate) => {
                let truth = predicate.evaluate(frame, chosen)?;
                chosen = valid.insert(truth.yes.or(&truth.no));
                Input::Truth(truth.yes)
            }
            Argument::Pair(a, b) => {
                let a = a.evaluate(frame, chosen)?;
                let b = b.evaluate(frame, chosen)?;
                Input::Pair(a, b)
            }
            Argument::Timed(x, parameter, time) => {
                let x = x.evaluate(frame, chosen)?;
                let parameter = parameter.evaluate(frame, chosen)?;
                let time = match time {
                    Some(time) => time.evaluate(frame, chosen)?,
                    None => Operand::Null,
                };
                Input::Timed(x, parameter, time)
            }
            Argument::Rows => {
                let grouping = spread.each(grouping);
                return self.accumulator.add_rows(&grouping, frame, chosen);
            }
        };
        if chosen.is_empty() {
            return Ok(());
        }
        if let Some(seen) = seen {
            let grouping = spread.each(grouping);
            let new = seen.new_rows(frame, chosen, &grouping)?;
            return match new.is_empty() {
                true => Ok(()),
                false => self.accumulator.add(&grouping, &input, &new, frame.rows),
            };
        }
        match grouping {
            Grouping::Stretches(stretches) => {
                if self.accumulator.add_stretches(*stretches, &input, chosen)? {
                    return Ok(());
                }
                if stretches.are_short || stretches.len() > STRETCHES_ALONE_MAX {
                    let each = spread.each(grouping);
                    return self.accumulator.add(&each, &input, chosen, frame.rows);
                }
                for (group, rows) in stretches.iter() {
                    let rows = chosen.within(rows.start, rows.end);
                    if !rows.is_empty() {
                        let one = Grouping::One(group);
                        self.accumulator.add(&one, &input, &rows, frame.rows)?;
                    }
                }
                Ok(())
            }
            other => self.accumulator.add(other, &input, chosen, frame.rows),
        }
    }
}
