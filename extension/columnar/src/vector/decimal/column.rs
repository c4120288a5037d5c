//! Columns of type `numeric`, read as decimals.
//!
//! Reading an item costs more than most of what follows. So expressions over the same rows share
//! what one of them has read, in a [`SharedColumn`].

use std::cell::{Ref, RefCell};
use std::ops::Deref;
use std::rc::Rc;

use super::Decimal;
use super::decimals::Decimals;
use crate::lane::LaneData;
use crate::vector::frame::Frame;
use crate::vector::selection::Selection;
use crate::vector::text::CodeMemo;

/// A column of type `numeric`.
pub struct DecimalColumn {
    attribute: usize,
    /// The decimal of each code of a dictionary.
    codes: CodeMemo<Option<Decimal>>,
    decimals: Decimals,
}

impl DecimalColumn {
    pub(super) fn new(attribute: usize) -> DecimalColumn {
        DecimalColumn {
            attribute,
            codes: CodeMemo::default(),
            decimals: Decimals::default(),
        }
    }

    /// The decimals of the selected rows; `None` if one of them does not fit.
    pub(super) fn evaluate(&mut self, frame: &Frame<'_>, rows: &Selection) -> Option<&Decimals> {
        let present = frame.present(self.attribute, rows);
        let place = frame.place;
        match frame.lane(self.attribute).data {
            LaneData::Codes { codes, slots, heap } => {
                self.codes.enter(&frame.dictionaries[self.attribute]);
                let memo = &mut self.codes;
                self.decimals.take_rows(&present, |row| {
                    // SAFETY: the lane has a code for each row of the vector.
                    let code = unsafe { *codes.add(place + row) };
                    // SAFETY: there is a slot for each code, and there an item.
                    memo.get(code, || unsafe {
                        Decimal::of_item(heap.add(*slots.add(code as usize) as usize))
                    })
                })?;
            }
            LaneData::Offsets { slots, heap } => self.decimals.take_rows(&present, |row| {
                // SAFETY: the lane has a slot for each row of the vector, and there the item of a row that is not NULL.
                unsafe { Decimal::of_item(heap.add(*slots.add(place + row) as usize)) }
            })?,
            _ => self.decimals.fill(None, &present),
        }
        Some(&self.decimals)
    }
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
