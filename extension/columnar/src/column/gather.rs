//! Some rows of a column as a column of their own.

use std::convert::Infallible;

use super::Column;
use crate::bits;
use crate::body::Body;

impl Column {
    /// A column of the named rows in this order. A row may be named more than once.
    ///
    /// # Panics
    /// If a named row does not exist.
    pub fn gather(&self, rows: &[u32]) -> Column {
        let mut gathered = Column::new(self.kind);
        let validity = self.validity().map(|words| {
            let mut picked = vec![0; bits::words(rows.len())];
            for (place, &row) in rows.iter().enumerate() {
                picked[place / 64] |= u64::from(bits::get(words, row as usize)) << (place % 64);
            }
            picked
        });
        let validity = validity.as_deref();
        match &self.body {
            Body::Absent => gathered.push_repeated(None, rows.len()),
            Body::Bool(bitmap) => {
                let mut picked = vec![0; bits::words(rows.len())];
                for (place, &row) in rows.iter().enumerate() {
                    let bit = bits::get(bitmap.words(), row as usize);
                    picked[place / 64] |= u64::from(bit) << (place % 64);
                }
                gathered.extend_bools(&picked, validity, rows.len());
            }
            Body::Fixed {
                width,
                stride,
                values,
            } => match (*width, *stride) {
                (8, 8) => gathered.pick::<8>(values, rows, validity),
                (4, 4) => gathered.pick::<4>(values, rows, validity),
                (width, stride) => {
                    let mut picked = Vec::with_capacity(rows.len() * width);
                    for &row in rows {
                        let at = row as usize * stride;
                        picked.extend_from_slice(&values[at..at + width]);
                    }
                    gathered.extend_fixed(&picked, validity, rows.len());
                }
            },
            Body::Plain(items) => {
                for &row in rows {
                    match self.is_valid(row as usize) {
                        true => gathered.push_item(items.item(row as usize)),
                        false => gathered.push_null(),
                    }
                }
            }
            Body::Coded { codes, dictionary } => {
                let own = dictionary.items();
                let items = (0..own.len())
                    .map(|code| own.item(code))
                    .collect::<Vec<_>>();
                let picked = rows
                    .iter()
                    .map(|&row| codes[row as usize])
                    .collect::<Vec<_>>();
                if let Err(error) = gathered.extend_codes(&picked, &items, validity) {
                    unreachable!("a column's own codes and items: {error}");
                }
            }
        }
        gathered
    }

    /// Appends values of `N` bytes without padding, directly to their final place. This is the most
    /// expensive part of sealing, because the rows are far apart.
    fn pick<const N: usize>(&mut self, values: &[u8], rows: &[u32], validity: Option<&[u64]>) {
        let (values, _) = values.as_chunks::<N>();
        let filled = self.extend_fixed_with(validity, rows.len(), |places| {
            let (places, _) = places.as_chunks_mut::<N>();
            for (place, &row) in places.iter_mut().zip(rows) {
                *place = values[row as usize];
            }
            Ok::<(), Infallible>(())
        });
        match filled {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// The values of 8 bytes without padding, if none is NULL.
    pub(crate) fn words(&self) -> Option<&[[u8; 8]]> {
        match &self.body {
            Body::Fixed {
                width: 8,
                stride: 8,
                values,
            } if self.validity().is_none() => Some(values.as_chunks().0),
            _ => None,
        }
    }

    /// Whether a row has a value.
    #[inline]
    pub(crate) fn is_valid(&self, row: usize) -> bool {
        match &self.body {
            Body::Absent => false,
            _ => self.validity().is_none_or(|words| bits::get(words, row)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::test_support::{any_kind, any_value, assert_column, build, cases};

    proptest! {
        #![proptest_config(cases(64))]

        #[test]
        fn each_row_is_the_one_named(
            (kind, values) in any_kind().prop_flat_map(|kind| (Just(kind), prop::collection::vec(any_value(kind, 40), 1..200))),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 0..300),
        ) {
            let picks = picks.iter().map(|pick| pick.index(values.len()) as u32).collect::<Vec<_>>();
            let wanted = picks.iter().map(|&row| values[row as usize].clone()).collect::<Vec<_>>();
            assert_column(&build(kind, &values).gather(&picks), &wanted);
        }
    }
}
