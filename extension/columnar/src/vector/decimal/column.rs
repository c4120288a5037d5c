//! Columns of type `numeric`, read as decimals.
//!
//! Reading an item costs more than most of what follows. So expressions over the same rows share
//! what one of them has read, in a [`SharedColumn`].

use std::cell::{Ref, RefCell};
use std::ops::Deref;
use std::rc::Rc;

use super::Decimal;
use super::decimals::Decimals;
use super::uniform::UniformReader;
use crate::lane::{DictionaryView, Lane, LaneData};
use crate::limits::VECTOR_ROWS;
use crate::vector::frame::Frame;
use crate::vector::selection::Selection;
use crate::vector::text::CodeMemo;

/// All rows of a vector are read, to be kept as integers, once so many of them are wanted.
const KEPT_ROWS_MIN: usize = VECTOR_ROWS / 4;

/// A column of type `numeric`.
pub struct DecimalColumn {
    attribute: usize,
    /// The decimal of each code of a dictionary.
    codes: CodeMemo<Option<Decimal>>,
    flat: FlatCodes,
    /// For items of the scale that was seen last.
    reader: Option<UniformReader>,
    decimals: Decimals,
}

/// The numbers of a whole dictionary, if all have one scale.
#[derive(Default)]
struct FlatCodes {
    /// Whether the dictionary's scales were compared.
    is_tried: bool,
    /// Empty if they have not.
    values: Vec<i64>,
    scale: u8,
    magnitude: u64,
}

impl FlatCodes {
    /// The numbers of a dictionary, all of which are known. They must have one scale.
    fn of(known: &[Option<Option<Decimal>>]) -> Option<FlatCodes> {
        let scale = known.first()?.flatten()?.scale;
        let number = |known: &Option<Option<Decimal>>| {
            let decimal = known.flatten()?;
            (decimal.scale == scale).then_some(decimal.value)
        };
        let values: Vec<i64> = known.iter().map(number).collect::<Option<_>>()?;
        let magnitudes = values.iter().map(|value| value.unsigned_abs());
        Some(FlatCodes {
            is_tried: true,
            scale,
            magnitude: magnitudes.max()?,
            values,
        })
    }
}

impl DecimalColumn {
    pub(super) fn new(attribute: usize) -> DecimalColumn {
        DecimalColumn {
            attribute,
            codes: CodeMemo::default(),
            flat: FlatCodes::default(),
            reader: None,
            decimals: Decimals::default(),
        }
    }

    /// The decimals of the selected rows; `None` if one of them does not fit.
    pub(super) fn evaluate(&mut self, frame: &Frame<'_>, rows: &Selection) -> Option<&Decimals> {
        let present = frame.present(self.attribute, rows);
        let place = frame.place;
        let lane = frame.lane(self.attribute);
        if self.take_kept(&lane, frame, &present) {
            return Some(&self.decimals);
        }
        match lane.data {
            LaneData::Codes { codes, slots, heap } => {
                // SAFETY: there is a slot for each code, and there an item.
                let of_code = |code: u32| unsafe {
                    Decimal::of_item(heap.add(*slots.add(code as usize) as usize))
                };
                // SAFETY: the lane has a code for each row of the vector.
                let code_of = |row: usize| unsafe { *codes.add(place + row) };
                self.enter(&frame.dictionaries[self.attribute], &present, of_code);
                let flat = &self.flat;
                let measures = (flat.scale, flat.magnitude);
                let known = |row| flat.values.get(code_of(row) as usize).copied();
                if flat.values.is_empty() || !self.decimals.take_known(&present, measures, known) {
                    let memo = &mut self.codes;
                    self.decimals.take_rows(&present, |row| {
                        let code = code_of(row);
                        memo.get(code, || of_code(code))
                    })?;
                }
            }
            LaneData::Offsets { slots, heap } => {
                // SAFETY: the lane has a slot for each row of the vector, and there an item unless the row is NULL.
                self.take_items(&present, |row| unsafe {
                    heap.add(*slots.add(place + row) as usize)
                })?;
            }
            _ => self.decimals.set_none(),
        }
        Some(&self.decimals)
    }

    /// Takes the integers that are kept of the vector, or reads them to be kept. False: there are none.
    fn take_kept(&mut self, lane: &Lane, frame: &Frame<'_>, present: &Selection) -> bool {
        let LaneData::Offsets { slots, heap } = lane.data else {
            return false;
        };
        let (kept, vector) = (&lane.decimals, frame.place / VECTOR_ROWS);
        let first = frame.place % VECTOR_ROWS;
        let mut known = kept.known(vector);
        if known.is_none() {
            // The last row is visible, so the vector is full and does not change any more.
            let is_whole = first == 0 && frame.rows == VECTOR_ROWS;
            if !is_whole || present.count() < KEPT_ROWS_MIN {
                return false;
            }
            let Some(claim) = kept.claim(vector) else {
                kept.want();
                return false;
            };
            // SAFETY: the lane has a slot for each row of the vector.
            let slots = unsafe { std::slice::from_raw_parts(slots.add(frame.place), VECTOR_ROWS) };
            let all = frame.present(self.attribute, &rows_with_items(slots));
            // SAFETY: these rows have items. Those of rows that nobody sees may be of another type, of a column that
            // was rolled back; readers stay within an item by its header, whatever it contains.
            let item = |row: usize| unsafe { heap.add(slots[row] as usize) };
            let fit = self.take_items(&all, item);
            let decimals = &self.decimals;
            if fit.is_some() && decimals.own_scales().is_none() {
                claim.publish(decimals.scale(), decimals.magnitude(), decimals.values());
            }
            known = kept.known(vector);
        }
        if let Some(known) = known {
            // SAFETY: decimals are read while the frame's lanes are in use.
            unsafe { self.decimals.take_kept(known, first, present) };
        }
        known.is_some()
    }

    /// Goes on to a dictionary. If it has no more items than rows are wanted, all of them are read.
    fn enter(
        &mut self,
        dictionary: &DictionaryView,
        rows: &Selection,
        of_code: impl Fn(u32) -> Option<Decimal>,
    ) {
        if !self.codes.enter(dictionary) {
            self.flat = FlatCodes::default();
        }
        if self.flat.is_tried || dictionary.items as usize > rows.count() {
            return;
        }
        let unknown: Vec<u32> = self.codes.unknown().collect();
        for code in unknown {
            self.codes.learn(code, of_code(code));
        }
        self.flat = self
            .codes
            .complete()
            .and_then(FlatCodes::of)
            .unwrap_or_default();
        self.flat.is_tried = true;
    }

    /// Takes the item of each of some rows; `None` if one of them does not fit.
    #[inline(always)]
    fn take_items(&mut self, rows: &Selection, item: impl Fn(usize) -> *const u8) -> Option<()> {
        let Some(first) = rows.next(0) else {
            self.decimals.set_none();
            return Some(());
        };
        // SAFETY: the caller's items are those of a column of numerics, as a lane has them.
        let other = |row| unsafe { read_alone(item(row)) };
        let Decimal { scale, .. } = other(first)?;
        let reader = match &mut self.reader {
            Some(reader) if reader.scale() == scale => reader,
            reader => reader.insert(UniformReader::new(scale)),
        };
        // SAFETY: as above.
        let simple = |row| unsafe { reader.read(item(row)) };
        self.decimals.take_rows_of_scale(rows, scale, simple, other)
    }
}

/// The rows of a vector that have items. No item of a segment is at offset 0, where the slots of rows point to that no
/// run has.
fn rows_with_items(slots: &[u64]) -> Selection {
    let mut rows = Selection::NONE;
    for (word, slots) in rows.words.iter_mut().zip(slots.chunks(64)) {
        let bits = slots.iter().enumerate();
        *word = bits.fold(0, |word, (bit, slot)| word | u64::from(*slot != 0) << bit);
    }
    rows
}

/// The decimal of an item that others of its vector may not be like.
///
/// # Safety
/// As for [`Decimal::of_item`].
#[inline(never)]
unsafe fn read_alone(item: *const u8) -> Option<Decimal> {
    // SAFETY: this function's contract.
    unsafe { Decimal::of_item(item) }
}

/// A column that several expressions read, and what was read of the current vector.
pub struct SharedColumn {
    known: Rc<RefCell<KnownColumn>>,
    /// For rows that are read while an expression still looks at others.
    aside: Option<Box<DecimalColumn>>,
}

/// A column, and the rows of the current vector that were read last.
struct KnownColumn {
    column: DecimalColumn,
    rows: Option<Selection>,
    /// Whether all of them fit.
    fit: bool,
}

impl SharedColumn {
    /// A column that nobody has read yet.
    pub fn new(attribute: usize) -> SharedColumn {
        SharedColumn {
            known: Rc::new(RefCell::new(KnownColumn {
                column: DecimalColumn::new(attribute),
                rows: None,
                fit: false,
            })),
            aside: None,
        }
    }

    /// The same column for another expression.
    pub fn share(&self) -> SharedColumn {
        SharedColumn {
            known: Rc::clone(&self.known),
            aside: None,
        }
    }

    /// Forgets what was read: another vector follows.
    pub(super) fn forget(&mut self) {
        self.known.borrow_mut().rows = None;
    }

    /// The decimals of the selected rows; `None` if one of them does not fit.
    pub(super) fn evaluate(&mut self, frame: &Frame<'_>, rows: &Selection) -> Option<Found<'_>> {
        let is_known = |known: Ref<'_, KnownColumn>| known.rows.as_ref() == Some(rows);
        if !self.known.try_borrow().is_ok_and(is_known) {
            let Ok(mut known) = self.known.try_borrow_mut() else {
                let attribute = self.known.borrow().column.attribute;
                let aside = self
                    .aside
                    .get_or_insert_with(|| Box::new(DecimalColumn::new(attribute)));
                return aside.evaluate(frame, rows).map(Found::Own);
            };
            let known = &mut *known;
            known.fit = known.column.evaluate(frame, rows).is_some();
            known.rows = Some(*rows);
        }
        let known = self.known.borrow();
        known
            .fit
            .then(|| Found::Shared(Ref::map(known, |known| &known.column.decimals)))
    }
}

/// The decimals that an evaluation found.
pub enum Found<'a> {
    /// Of the expression itself.
    Own(&'a Decimals),
    /// Of a shared column.
    Shared(Ref<'a, Decimals>),
}

impl Deref for Found<'_> {
    type Target = Decimals;

    fn deref(&self) -> &Decimals {
        match self {
            Found::Own(decimals) => decimals,
            Found::Shared(decimals) => decimals,
        }
    }
}
