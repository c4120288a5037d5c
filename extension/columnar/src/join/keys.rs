//! The keys of two sides: equal keys get one id.

use std::cmp::Ordering;
use std::ops::Deref;

use crate::aggregate::key::{Ids, Key, KeyReader, spread};
use crate::aggregate::key_values::KeyValues;
use crate::aggregate::pairs::Pairs;
use crate::limits::VECTOR_ROWS;
use crate::vector::Evaluation;
use crate::vector::frame::Frame;
use crate::vector::selection::Selection;

/// An equality. Numbers on both sides are of one class: both integers, or both floats of one type.
pub struct JoinKey {
    /// As the left side has it.
    pub left: Key,
    /// As the right side has it.
    pub right: Key,
    /// NULL equals NULL.
    pub nulls_match: bool,
}

/// Which side rows are of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The rows that look for others.
    Left,
    /// The rows that are looked for.
    Right,
}

/// The ids of a vector's rows, made by [`JoinKeys::assign`].
///
/// Invariant: the id of each selected row is less than the number of keys.
#[derive(Clone, Copy)]
pub struct KeyIds<'a> {
    ids: &'a [u32],
    keys: usize,
}

impl KeyIds<'_> {
    /// One more than the greatest id of all vectors so far.
    pub fn keys(&self) -> usize {
        self.keys
    }
}

impl Deref for KeyIds<'_> {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        self.ids
    }
}

struct JoinKeyState {
    left: KeyReader,
    right: KeyReader,
    values: KeyValues,
    nulls_match: bool,
}

/// All keys of a join. Ids are dense and count from 0.
pub struct JoinKeys {
    keys: Vec<JoinKeyState>,
    /// Of each key after the first: the ids of what came before together with its own.
    pairs: Vec<Pairs>,
    ids: Box<[u32; VECTOR_ROWS]>,
}

impl JoinKeys {
    /// No values yet. Without keys all rows have the id 0.
    pub fn new(keys: Vec<JoinKey>) -> JoinKeys {
        let pairs = keys.len().saturating_sub(1);
        JoinKeys {
            keys: keys
                .into_iter()
                .map(|key| JoinKeyState {
                    left: KeyReader::new(key.left),
                    right: KeyReader::eager(key.right),
                    values: KeyValues::default(),
                    nulls_match: key.nulls_match,
                })
                .collect(),
            pairs: (0..pairs).map(|_| Pairs::default()).collect(),
            ids: Box::new([0; VECTOR_ROWS]),
        }
    }

    /// One more than the greatest id.
    pub fn len(&self) -> usize {
        match (self.pairs.last(), self.keys.first()) {
            (Some(pairs), _) => pairs.len(),
            (None, Some(key)) => key.values.len(),
            (None, None) => 1,
        }
    }

    /// Whether no row had a key yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether [`Self::order`] says how tables are sealed by these keys.
    pub fn have_order(&self) -> bool {
        let is_ordered = |key: &JoinKeyState| key.left.is_ordered() && key.right.is_ordered();
        !self.keys.is_empty() && self.keys.iter().all(is_ordered)
    }

    /// The order in which rows of two ids come in a table that is sealed by the keys.
    pub fn order(&self, a: u32, b: u32) -> Ordering {
        let Some((first, rest)) = self.keys.split_first() else {
            return Ordering::Equal;
        };
        let (mut a, mut b) = (a, b);
        // From the last key backwards, of which the first that differs counts most.
        let mut order = Ordering::Equal;
        for (key, pairs) in rest.iter().zip(&self.pairs).rev() {
            let ((a_before, a_own), (b_before, b_own)) = (pairs.pair(a), pairs.pair(b));
            order = key.values.order(a_own, b_own).then(order);
            (a, b) = (a_before, b_before);
        }
        first.values.order(a, b).then(order)
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let of_key = |key: &JoinKeyState| key.left.bytes() + key.right.bytes() + key.values.bytes();
        let keys = self.keys.iter().map(of_key).sum::<usize>();
        keys + self.pairs.iter().map(Pairs::bytes).sum::<usize>()
    }

    /// The ids of the selected rows, of which those whose key matches nothing are taken out.
    ///
    /// # Errors
    /// Those of the keys' expressions.
    pub fn assign(
        &mut self,
        side: Side,
        frame: &Frame<'_>,
        selection: &mut Selection,
    ) -> Evaluation<KeyIds<'_>> {
        let mut pairs = self.pairs.iter_mut();
        let several = self.keys.len() > 1;
        // Without keys there is one id.
        let mut keys = 1;
        for (index, key) in self.keys.iter_mut().enumerate() {
            let reader = match side {
                Side::Left => &mut key.left,
                Side::Right => &mut key.right,
            };
            let ids = reader.assign(&mut key.values, frame, selection)?;
            let null = key.values.null_if_any().filter(|_| !key.nulls_match);
            if !several && let Ids::Each(ids) = ids {
                if let Some(null) = null {
                    remove(selection, ids, null);
                }
                let keys = key.values.len();
                return Ok(KeyIds { ids, keys });
            }
            let mut own = [0; VECTOR_ROWS];
            spread(&ids, selection, &mut own);
            if let Some(null) = null {
                remove(selection, &own, null);
            }
            if index == 0 {
                *self.ids = own;
                keys = key.values.len();
            } else if let Some(pairs) = pairs.next() {
                let before = &mut self.ids;
                selection.for_each(|row| before[row] = pairs.id(before[row], own[row]));
                keys = pairs.len();
            }
        }
        let ids = &self.ids[..];
        Ok(KeyIds { ids, keys })
    }
}

/// Takes out the rows that have an id.
fn remove(selection: &mut Selection, ids: &[u32], id: u32) {
    let all = *selection;
    all.for_each(|row| {
        if ids[row] == id {
            selection.remove(row);
        }
    });
}
