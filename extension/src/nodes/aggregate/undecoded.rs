//! Columns that are aggregated without being decoded.

use lanes_columnar::aggregate::Aggregation;
use lanes_columnar::vector::frame::{Substitute, SubstituteColumn};
use lanes_columnar::vector::number::Scalar;

use crate::vectors::vector_source::VectorSource;

/// Columns that only conditions and one grouping key each read. Where zones prove that all rows pass, the key may need
/// less than the values: a bucket needs the zone, other keys need repeats of equal values.
pub struct UndecodedKeys {
    /// The columns, for the engine.
    pub columns: Vec<SubstituteColumn>,
    /// The key of each column.
    keys: Vec<usize>,
    /// The attributes of the current vector that have to be filled.
    filled: Vec<usize>,
}

impl UndecodedKeys {
    /// Keys, each with the attribute that it reads.
    pub fn of(keys: impl Iterator<Item = (usize, usize)>) -> UndecodedKeys {
        let column = |attribute| SubstituteColumn {
            attribute,
            ..SubstituteColumn::default()
        };
        let (keys, columns) = keys.map(|(key, of)| (key, column(of))).unzip();
        UndecodedKeys {
            columns,
            keys,
            filled: Vec::new(),
        }
    }

    /// The attributes of the current vector that have to be filled, out of those that are read.
    pub fn filled(
        &mut self,
        looked_at: &[usize],
        aggregation: &Aggregation,
        source: &VectorSource,
        scalars: &[Option<Scalar>],
    ) -> &[usize] {
        self.filled.clear();
        self.filled.extend_from_slice(looked_at);
        for (column, key) in self.columns.iter_mut().zip(&self.keys) {
            let attribute = column.attribute;
            column.substitute = if aggregation.is_key_answered_by_zone(*key, &source.frame(scalars))
            {
                Substitute::Zone
            } else if aggregation.accepts_repeats(*key)
                && source.repeats(attribute, &mut column.repeats)
            {
                Substitute::Repeats
            } else {
                Substitute::None
            };
            if column.substitute != Substitute::None {
                self.filled.retain(|filled| *filled != attribute);
            }
        }
        &self.filled
    }
}
