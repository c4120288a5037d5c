//! Reads the rows of a small side from vectors, a column at a time.

use lanes_columnar::join::equal::EqualJoin;
use lanes_columnar::vector::Evaluation;
use lanes_columnar::vector::frame::Frame;

use super::plan::JoinKind;
use super::shared_rows::SharedRows;
use super::small_side::{Kept, ROW_BYTES, SmallSide};
use super::vector_child::{ColumnSource, VectorChild, VectorRows};
use super::vector_rows::{NumberColumn, VectorKeys};

impl SmallSide {
    /// Decides whether vectors of the child are read a column at a time.
    pub fn begin_vectors(&mut self, child: &dyn VectorChild, join: &mut EqualJoin, kind: JoinKind) {
        // Joins that return small rows without a match also need rows with a NULL key.
        if kind.keeps_unmatched_rows() {
            return;
        }
        let (sources, outputs) = child.sources().split_at(self.keys);
        let columns = &self.columns[self.keys..];
        let mut numbers = Vec::new();
        for (output, (source, column)) in outputs.iter().zip(columns).enumerate() {
            match (source, column.number) {
                (ColumnSource::Shared { .. }, _) => {}
                (ColumnSource::Attribute(attribute), Some(number)) => {
                    numbers.push((output, NumberColumn::new(*attribute, number)));
                }
                _ => return,
            }
        }
        let has_codes = |key: usize| self.codes[key].is_some();
        let left = |key: usize| join.number(key);
        if let Some((vector_keys, keys)) = VectorKeys::of(sources, &self.columns, has_codes, left) {
            self.vector_keys = Some(vector_keys);
            join.take_vectors(keys);
            for (output, numbers) in numbers {
                self.values[output] = Kept::Numbers(numbers);
            }
        }
    }

    /// Adds the rows of a vector, except those with a NULL key.
    pub fn take_vector(
        &mut self,
        child: &dyn VectorChild,
        rows: &VectorRows,
        shared: &mut [SharedRows],
        keys: &mut VectorKeys,
        join: &mut EqualJoin,
        kind: JoinKind,
    ) -> Evaluation<()> {
        let frame = child.frame(rows);
        let mut selection = rows.selection;
        self.rows += selection.count() as u64;
        let (columns, codes) = (&self.columns, &mut self.codes);
        let mut item = Vec::new();
        keys.ready(&frame, shared, &mut selection, |key, value| {
            let value = columns[key].key(value, &mut item);
            codes[key].as_mut()?.code(value)
        });
        let joined = keys.operands();
        let frame = Frame { joined, ..frame };
        let (rows_before, texts_before) = (join.rows(), join.text_bytes());
        let keys_alone = self.wants_keys_alone(kind);
        join.push_vector(&frame, &selection, keys_alone)?;
        let rows = join.rows() - rows_before;
        self.bytes += rows * ROW_BYTES + join.text_bytes() - texts_before;
        if keys_alone {
            return Ok(());
        }
        for kept in &mut self.values {
            if let Kept::Numbers(numbers) = kept {
                numbers.push(&frame, &selection)?;
                self.bytes += rows * size_of::<u64>();
            }
        }
        shared
            .iter_mut()
            .for_each(|shared| shared.keep_all(&selection));
        Ok(())
    }
}
