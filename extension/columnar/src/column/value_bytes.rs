//! The size of a column's values by themselves.

use std::ops::Range;

use super::Column;
use crate::bits;
use crate::body::Body;

impl Column {
    /// The bytes of the values of some rows, each value by itself. Encodings are measured against
    /// this number. A NULL has no bytes, a bool has one, an item has its length.
    ///
    /// # Panics
    /// If the rows do not exist.
    pub fn value_bytes(&self, rows: Range<usize>) -> u64 {
        assert!(rows.end <= self.rows(), "the column has no such rows");
        let validity = self.validity();
        let valid = match validity {
            _ if self.null_count() == self.rows() => 0,
            Some(words) => bits::count_ones(words, rows.start, rows.len()),
            None => rows.len(),
        } as u64;
        let is_valid = |row: &usize| validity.is_none_or(|words| bits::get(words, *row));
        match self.body() {
            _ if valid == 0 => 0,
            Body::Absent => 0,
            Body::Bool(_) => valid,
            Body::Fixed { width, .. } => valid * *width as u64,
            Body::Plain(items) => {
                let lengths = rows.filter(is_valid).map(|row| items.length(row) as u64);
                lengths.sum()
            }
            Body::Coded { codes, dictionary } => {
                let items = dictionary.items();
                let codes = rows.filter(is_valid).map(|row| codes[row] as usize);
                codes.map(|code| items.length(code) as u64).sum()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::column::Column;
    use crate::kind::LaneKind;
    use crate::test_support::{any_kind, cases};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases(50))]

        #[test]
        fn values_take_their_width_and_nulls_nothing(kind in any_kind(), lengths in prop::collection::vec(prop::option::of(0_usize..40), 0..300), from in 0_usize..300) {
            let mut column = Column::new(kind);
            let mut expected = Vec::new();
            for length in lengths {
                let bytes = match (kind, length) {
                    (LaneKind::Absent, _) | (_, None) => {
                        column.push_null();
                        0
                    }
                    (LaneKind::Bool, Some(length)) => {
                        column.push_bool(length % 2 == 0);
                        1
                    }
                    (LaneKind::Fixed { width, .. }, Some(_)) => {
                        column.push_fixed(&vec![7; usize::from(width)]);
                        usize::from(width)
                    }
                    (LaneKind::Varlena { .. }, Some(length)) => {
                        column.push_item(&vec![9; length]);
                        length
                    }
                };
                expected.push(bytes as u64);
            }
            let from = from.min(expected.len());
            prop_assert_eq!(column.value_bytes(from..expected.len()), expected[from..].iter().sum::<u64>());
        }
    }
}
