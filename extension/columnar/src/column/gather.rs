//! Some rows of a column as a column of their own.

use super::Column;
use crate::bits;
use crate::body::Body;

impl Column {
    /// The rows named, in the order named; a row may be named more than once.
    ///
    /// # Panics
    /// If there is no such row.
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
            } => {
                let mut picked = Vec::with_capacity(rows.len() * width);
                match (*width, *stride) {
                    (8, 8) => pick::<8>(values, rows, &mut picked),
                    (4, 4) => pick::<4>(values, rows, &mut picked),
                    (width, stride) => {
                        for &row in rows {
                            let at = row as usize * stride;
                            picked.extend_from_slice(&values[at..at + width]);
                        }
                    }
                }
                gathered.extend_fixed(&picked, validity, rows.len());
            }
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

    /// Whether a row has a value.
    #[inline]
    pub(crate) fn is_valid(&self, row: usize) -> bool {
        match &self.body {
            Body::Absent => false,
            _ => self.validity().is_none_or(|words| bits::get(words, row)),
        }
    }
}

/// Values of `N` bytes without padding.
fn pick<const N: usize>(values: &[u8], rows: &[u32], picked: &mut Vec<u8>) {
    let (values, _) = values.as_chunks::<N>();
    for &row in rows {
        picked.extend_from_slice(&values[row as usize]);
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
