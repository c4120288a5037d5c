//! What is grouped or joined by, as it is read from vectors: each key gives its values dense ids ([`KeyValues`]);
//! [`super::group`] combines them.

use super::bucket_memo::BucketMemo;
use super::key_values::{KeyValues, UNKNOWN};
use super::repeated_times::RepeatedTimes;
use super::stretches::{StretchList, Stretches};
use crate::lane::LaneData;
use crate::limits::VECTOR_ROWS;
use crate::repeats::ValueRepeats;
use crate::vector::Evaluation;
use crate::vector::frame::{Bounds, Frame};
use crate::vector::number::{Number, NumberType, Scalar};
use crate::vector::predicate::Predicate;
use crate::vector::selection::Selection;
use crate::vector::text::{CodeMemo, item_bytes};
use crate::vector::value::{Operand, Value};
use crate::with_number;

/// One expression of a GROUP BY.
pub enum Key {
    /// A column of text, of equality byte by byte.
    Text(usize),
    /// A column of 16 bytes.
    Bytes16(usize),
    /// A number.
    Number(Value),
    /// A truth.
    Truth(Predicate),
    /// The bucket of a time.
    Bucket(Value, Box<dyn Buckets>),
}

impl Key {
    /// The attribute of which stretches of equal values are as good as its values.
    pub fn repeats_attribute(&self) -> Option<usize> {
        match self {
            Key::Text(attribute) => Some(*attribute),
            Key::Number(value) => value.column(),
            Key::Bytes16(_) | Key::Truth(_) | Key::Bucket(..) => None,
        }
    }

    /// The attribute whose values are the key's.
    pub fn column(&self) -> Option<usize> {
        match self {
            Key::Bytes16(attribute) => Some(*attribute),
            _ => self.repeats_attribute(),
        }
    }

    /// The attribute of which a zone may tell all rows' value.
    pub fn zone_attribute(&self) -> Option<usize> {
        match self {
            Key::Bucket(value, _) => value.column(),
            Key::Text(_) | Key::Bytes16(_) | Key::Number(_) | Key::Truth(_) => None,
        }
    }
}

/// The times that fall into one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// What the grouping expression gives for them.
    pub value: i64,
    /// The first of them, as far as is known.
    pub first: i64,
    /// The last of them, as far as is known.
    pub last: i64,
}

impl Bucket {
    /// Whether all times within these bounds fall into it.
    pub(super) fn has_all(&self, bounds: Bounds) -> bool {
        self.first <= bounds.minimum && bounds.maximum <= self.last
    }
}

/// A function from times to buckets.
pub trait Buckets {
    /// The bucket that a time falls into.
    fn bucket(&mut self, time: i64) -> Bucket;
}

/// The ids of a vector's rows.
pub(crate) enum Ids<'a> {
    One(u32),
    Stretches(Stretches<'a>),
    Each(&'a [u32]),
}

/// A key as it is read from vectors: its rows' ids in a [`KeyValues`].
pub(crate) struct KeyReader {
    pub(super) key: Key,
    /// Whether values get ids although no row has them.
    pub(super) eager: bool,
    pub(super) codes: CodeMemo<u32>,
    /// The bucket met last, with its id if a row of it counted.
    pub(super) bucket: Option<(Bucket, Option<u32>)>,
    /// The time that it was asked for with.
    pub(super) asked: i64,
    /// Those met before it.
    pub(super) buckets: BucketMemo,
    /// Times that were cut into stretches of buckets.
    pub(super) repeated: RepeatedTimes,
    pub(super) ids: Box<[u32; VECTOR_ROWS]>,
    /// Whether columns are cut into stretches. Buckets always are.
    pub(super) cuts: bool,
    pub(super) stretches: StretchList,
    /// How long the stretch before was, which those after it mostly resemble.
    pub(super) stretch_rows: usize,
}

impl KeyReader {
    pub(crate) fn new(key: Key) -> KeyReader {
        KeyReader {
            key,
            eager: false,
            codes: CodeMemo::default(),
            bucket: None,
            asked: 0,
            buckets: BucketMemo::default(),
            repeated: RepeatedTimes::default(),
            ids: Box::new([0; VECTOR_ROWS]),
            cuts: false,
            stretches: StretchList::default(),
            stretch_rows: 0,
        }
    }

    /// Cuts columns into stretches, for whoever has something to do for each group.
    pub(crate) fn cutting(self) -> KeyReader {
        KeyReader { cuts: true, ..self }
    }

    /// Gives all values of a small dictionary their ids at once, in its order: so the codes of a first dictionary are
    /// ids as they are, and need not be looked up.
    pub(crate) fn eager(key: Key) -> KeyReader {
        KeyReader {
            eager: true,
            ..KeyReader::new(key)
        }
    }

    /// Whether [`KeyValues::order`] is about its values: not about floats, whose bits are not in order.
    pub(crate) fn is_ordered(&self) -> bool {
        match &self.key {
            Key::Text(_) | Key::Bytes16(_) | Key::Truth(_) => true,
            Key::Number(value) => !value.number().is_float(),
            Key::Bucket(..) => false,
        }
    }

    /// The type of the number that it reads, if it reads one.
    pub(crate) fn number(&self) -> Option<NumberType> {
        match &self.key {
            Key::Number(value) => Some(value.number()),
            _ => None,
        }
    }

    /// Whether it reads integers.
    pub(super) fn is_integer(&self) -> bool {
        self.number().is_some_and(|number| !number.is_float())
    }

    /// The value that it reads, if that is a number.
    pub(crate) fn number_mut(&mut self) -> Option<&mut Value> {
        match &mut self.key {
            Key::Number(value) => Some(value),
            _ => None,
        }
    }

    /// The value that it reads, if that is an integer.
    pub(crate) fn integer_mut(&mut self) -> Option<&mut Value> {
        match &mut self.key {
            Key::Number(value) if !value.number().is_float() => Some(value),
            _ => None,
        }
    }

    /// Forgets the ids of values, because the [`KeyValues`] that gave them are replaced, and the results of a function
    /// outside of this crate.
    pub(crate) fn forget(&mut self) {
        if let Key::Number(Value::External(value)) = &mut self.key {
            value.forget();
        }
        self.codes = CodeMemo::default();
        self.bucket = None;
        self.buckets = BucketMemo::default();
        self.repeated = RepeatedTimes::default();
    }

    pub(crate) fn bytes(&self) -> usize {
        let memos = self.codes.bytes() + self.buckets.bytes() + self.repeated.bytes();
        size_of::<[u32; VECTOR_ROWS]>() + memos + self.stretches.bytes()
    }

    /// The id of the bucket of all rows of a vector, if that was met before and the zone tells so much: no time of it
    /// is read then.
    pub(crate) fn id_by_zone(&self, frame: &Frame<'_>) -> Option<u32> {
        let attribute = self.key.zone_attribute()?;
        let (lane, bounds) = (frame.lane_of_any_values(attribute), frame.bounds(attribute));
        if !bounds.known || !lane.validity.is_null() || matches!(lane.data, LaneData::Null) {
            return None;
        }
        match self.bucket {
            Some((bucket, Some(id))) if bucket.has_all(bounds) => Some(id),
            _ => {
                let (bucket, id) = self.buckets.get(bounds.minimum)?;
                bucket.has_all(bounds).then_some(id)
            }
        }
    }

    /// Whether it takes stretches of equal values for values.
    pub(super) fn accepts_repeats(&self) -> bool {
        self.key.repeats_attribute().is_some()
    }

    /// The ids of the selected rows.
    pub(crate) fn assign(
        &mut self,
        values: &mut KeyValues,
        frame: &Frame<'_>,
        selection: &Selection,
    ) -> Evaluation<Ids<'_>> {
        if let Some(id) = self.id_by_zone(frame) {
            return Ok(Ids::One(id));
        }
        if let Some(attribute) = self.key.repeats_attribute()
            && let Some(stretches) = frame.repeats(attribute)
        {
            self.assign_repeats(values, frame, selection, attribute, stretches);
            return Ok(self.stretches.ids());
        }
        match &mut self.key {
            Key::Text(attribute) => {
                let attribute = *attribute;
                Ok(self.assign_text(values, frame, selection, attribute))
            }
            Key::Bytes16(attribute) => {
                let attribute = *attribute;
                Ok(self.assign_bytes16(values, frame, selection, attribute))
            }
            Key::Number(value) => {
                let number = value.number();
                let operand = value.evaluate(frame, selection)?;
                Ok(
                    with_number!(number, T => self.assign_number::<T>(values, operand, selection, frame.rows)),
                )
            }
            Key::Truth(predicate) => {
                let truth = predicate.evaluate(frame, selection)?;
                self.assign_truth(values, selection, &truth.yes, &truth.no);
                Ok(Ids::Each(&*self.ids))
            }
            Key::Bucket(value, _) => {
                let number = value.number();
                let column = value.column();
                let operand = value.evaluate(frame, selection)?;
                let bounds = column.map(|c| frame.bounds(c)).unwrap_or_default();
                Ok(match number {
                    NumberType::I32 => {
                        self.assign_bucket::<i32>(values, operand, selection, bounds, frame)
                    }
                    _ => self.assign_bucket::<i64>(values, operand, selection, bounds, frame),
                })
            }
        }
    }

    /// The stretches that an attribute has, of the selected rows.
    fn assign_repeats(
        &mut self,
        values: &mut KeyValues,
        frame: &Frame<'_>,
        selection: &Selection,
        attribute: usize,
        stretches: &ValueRepeats,
    ) {
        let lane = frame.lane_of_any_values(attribute);
        if let LaneData::Codes { .. } = lane.data {
            self.codes.enter(&frame.dictionaries[attribute]);
        }
        let (key, codes) = (&self.key, &mut self.codes);
        let mut id_of = |values: &mut KeyValues, bits: u64| match (key, lane.data) {
            (Key::Number(value), _) => with_number!(value.number(), T => {
                let value = T::of_scalar(Scalar(bits));
                values.number(canonical(value), value.to_scalar())
            }),
            // SAFETY: the codes of stretches are below the number of items, of each of which there is a slot.
            (_, LaneData::Codes { slots, heap, .. }) => unsafe {
                let item = || item_bytes(heap.add(*slots.add(bits as usize) as usize));
                codes.get(bits as u32, || values.text(item()))
            },
            _ => unreachable!("stretches of text are codes"),
        };
        self.stretches.clear();
        for (value, rows) in stretches.iter() {
            if selection.next(rows.start).is_some_and(|row| row < rows.end) {
                let id = match value {
                    Some(bits) => id_of(values, bits),
                    None => values.null(),
                };
                self.stretches.push(rows.start, id);
            }
        }
        self.stretches.end(frame.rows);
    }

    fn assign_truth(
        &mut self,
        values: &mut KeyValues,
        selection: &Selection,
        yes: &Selection,
        no: &Selection,
    ) {
        for (rows, truth) in [(yes, true), (no, false)] {
            if !rows.is_empty() {
                let id = values.truth(truth);
                rows.for_each(|row| self.ids[row] = id);
            }
        }
        self.assign_null(values, &selection.and_not(&yes.or(no)));
    }

    /// Gives rows without a value the id of NULL. NULL gets no id while there are no such rows.
    pub(super) fn assign_null(&mut self, values: &mut KeyValues, rows: &Selection) {
        if !rows.is_empty() {
            let id = values.null();
            rows.for_each(|row| self.ids[row] = id);
        }
    }

    fn assign_number<T: Number>(
        &mut self,
        values: &mut KeyValues,
        operand: Operand,
        selection: &Selection,
        rows: usize,
    ) -> Ids<'_> {
        let valid = operand.valid(selection);
        self.assign_null(values, &selection.and_not(&valid));
        if self.cuts
            && valid == *selection
            && let Operand::Each { values: all, .. } = operand
        {
            let id_of = |row: usize| {
                // SAFETY: the operand has a `T` for each row of the vector.
                let value = unsafe { operand.get::<T>(row) };
                values.number(canonical(value), value.to_scalar())
            };
            // Numbers that are equal but differ in their bits, as zeros do, have the same id.
            // SAFETY: as above.
            if unsafe { self.stretches.cut_numbers::<T>(all, rows, selection, id_of) } {
                return self.stretches.ids();
            }
        }
        let ids = &mut self.ids;
        let valid = known_integers::<T>(values, &operand, &valid, rows, ids);
        let mut last = (0, UNKNOWN);
        valid.for_each(|row| {
            // SAFETY: the operand has a `T` for each row of the vector.
            let value = unsafe { operand.get::<T>(row) };
            let canonical = canonical(value);
            let id = match last {
                (before, id) if before == canonical && id != UNKNOWN => id,
                (_, before) => values.number_after(before, canonical, value.to_scalar()),
            };
            last = (canonical, id);
            ids[row] = id;
        });
        Ids::Each(&*self.ids)
    }
}

/// Writes the ids of integers that are in the array of known ones, and returns the other rows. All are other rows if
/// there is no such array.
fn known_integers<T: Number>(
    values: &KeyValues,
    operand: &Operand,
    valid: &Selection,
    rows: usize,
    ids: &mut [u32; VECTOR_ROWS],
) -> Selection {
    let array = values.integer_array().filter(|_| !T::TYPE.is_float());
    let Some((first, array)) = array else {
        return *valid;
    };
    let mut are_all_known = true;
    valid.for_each_of(rows, |row| {
        // SAFETY: the operand has a `T` for each row of the vector.
        let integer = unsafe { operand.get::<T>(row) }.to_scalar().0;
        let cell = integer.wrapping_sub(first as u64) as usize;
        let id = array.get(cell).copied().unwrap_or(UNKNOWN);
        ids[row] = id;
        are_all_known &= id != UNKNOWN;
    });
    let mut others = Selection::NONE;
    if !are_all_known {
        valid.for_each(|row| {
            others.words[row / 64] |= u64::from(ids[row] == UNKNOWN) << (row % 64);
        });
    }
    others
}

/// Equal numbers, equal bits.
#[inline]
pub(crate) fn canonical<T: Number>(value: T) -> u64 {
    if T::TYPE.is_float() {
        if value.order(T::ZERO).is_eq() {
            return 0;
        }
        if value.to_f64().is_nan() {
            return f64::NAN.to_bits();
        }
    }
    value.to_scalar().0
}

/// Writes an id for each selected row.
pub(crate) fn spread(ids: &Ids<'_>, selection: &Selection, out: &mut [u32; VECTOR_ROWS]) {
    match ids {
        Ids::One(id) => selection.for_each(|row| out[row] = *id),
        Ids::Stretches(stretches) => stretches.spread(out),
        Ids::Each(each) => selection.for_each(|row| out[row] = each[row]),
    }
}
