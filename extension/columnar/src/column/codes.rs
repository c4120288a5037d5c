//! Items that are appended as codes of a dictionary.

use super::{Column, check_item};
use crate::bits;
use crate::body::Body;
use crate::buffer::Buffer;
use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::items::Items;
use crate::kind::LaneKind;

/// Stands for an item of the caller that the column does not have yet.
const UNUSED: u32 = u32::MAX;

/// Items to append: one for each code that is not NULL.
#[derive(Clone, Copy)]
struct CodedItems<'a> {
    codes: &'a [u32],
    items: &'a [&'a [u8]],
    validity: Option<&'a [u64]>,
}

impl Column {
    /// The codes of the rows, those of NULL rows being arbitrary, and how many codes there are; `None` without a
    /// dictionary.
    pub(crate) fn codes(&self) -> Option<(&[u32], usize)> {
        match &self.body {
            Body::Coded { codes, dictionary } => Some((&codes[..], dictionary.items().len())),
            _ => None,
        }
    }

    /// The code of the last row, which is not NULL, if there is a dictionary.
    pub(crate) fn last_code(&self) -> Option<u32> {
        self.codes()?.0.last().copied()
    }

    /// Appends the item of a code; false if there is no dictionary, or no such code.
    pub(crate) fn push_code(&mut self, code: u32) -> bool {
        match &mut self.body {
            Body::Coded { codes, dictionary } if (code as usize) < dictionary.items().len() => {
                codes.push(code);
            }
            _ => return false,
        }
        self.append_valid(1);
        true
    }

    /// Appends one item for each code of a dictionary. The items need be neither distinct nor used.
    /// The code of a NULL row is arbitrary. Each used item is stored once.
    ///
    /// # Errors
    /// If the kind is not [`LaneKind::Varlena`], the code of a row that is not NULL is outside of
    /// `items`, a used item is too long, or `validity` is too short. The column is then unchanged.
    pub fn extend_codes(
        &mut self,
        codes: &[u32],
        items: &[&[u8]],
        validity: Option<&[u64]>,
    ) -> Result<()> {
        if let Some(validity) = validity
            && validity.len() < bits::words(codes.len())
        {
            return Err(Error::ValidityTooShort {
                words: validity.len(),
                rows: codes.len(),
            });
        }
        if !matches!(self.kind, LaneKind::Varlena { .. }) {
            return Err(Error::KindDiffers {
                kind: self.kind,
                found: "items",
            });
        }
        let used = used_codes(codes, items.len(), validity)?;
        for (item, _) in items.iter().zip(&used).filter(|(_, used)| **used) {
            check_item(item)?;
        }
        let coded = CodedItems {
            codes,
            items,
            validity,
        };
        match &mut self.body {
            Body::Coded { codes, dictionary } => coded.append_codes(&used, codes, dictionary),
            Body::Plain(items) => coded.append_items(items),
            Body::Absent | Body::Bool(_) | Body::Fixed { .. } => {}
        }
        self.append_validity(validity, codes.len());
        self.judge_dictionary();
        Ok(())
    }
}

impl CodedItems<'_> {
    fn is_valid(&self, row: usize) -> bool {
        self.validity
            .is_none_or(|validity| bits::get(validity, row))
    }

    /// Appends the codes that the items have in a dictionary, which gets the used ones.
    fn append_codes(&self, used: &[bool], own: &mut Buffer<u32>, dictionary: &mut Dictionary) {
        let mut own_codes = vec![UNUSED; self.items.len()];
        let items = self.items.iter().zip(&mut own_codes).zip(used);
        for ((item, code), _) in items.filter(|(_, used)| **used) {
            *code = dictionary.intern(item);
        }
        if self.validity.is_none() {
            return own.extend_mapped(self.codes, &own_codes);
        }
        own.reserve(self.codes.len());
        for (row, &code) in self.codes.iter().enumerate() {
            own.push(if self.is_valid(row) {
                own_codes[code as usize]
            } else {
                0
            });
        }
    }

    /// Appends the items themselves.
    fn append_items(&self, own: &mut Items) {
        // For each item an entry that has its bytes.
        let mut entries = vec![UNUSED; self.items.len()];
        for (row, &code) in self.codes.iter().enumerate() {
            if !self.is_valid(row) {
                own.push_empty(1);
                continue;
            }
            let entry = &mut entries[code as usize];
            if *entry == UNUSED {
                *entry = own.len() as u32;
                own.push(self.items[code as usize]);
            } else {
                own.push_shared(*entry as usize, 1);
            }
        }
    }
}

/// The items, of `items` items, that are named by the codes of rows that are not NULL.
fn used_codes(codes: &[u32], items: usize, validity: Option<&[u64]>) -> Result<Vec<bool>> {
    let outside = |code| Error::CodeOutside { code, items };
    let mut used = vec![false; items];
    match validity {
        None => {
            let greatest = codes.iter().fold(0, |greatest, &code| greatest.max(code));
            if !codes.is_empty() && greatest as usize >= items {
                return Err(outside(greatest));
            }
            for &code in codes {
                used[code as usize] = true;
            }
        }
        Some(validity) => {
            for (row, &code) in codes.iter().enumerate() {
                if bits::get(validity, row) {
                    *used.get_mut(code as usize).ok_or(outside(code))? = true;
                }
            }
        }
    }
    Ok(used)
}
