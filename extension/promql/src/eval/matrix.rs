//! Rows that are held.

use super::{Evaluator, Row, Sink};
use crate::error::Error;
use crate::labels::Labels;
use crate::sample::is_absent;

/// Rows of a stream, one behind another.
pub(crate) struct Matrix<'m, 'e> {
    evaluator: &'m Evaluator<'e>,
    steps: usize,
    /// The label set of each row, and whether the result drops its name.
    pub(crate) series: Vec<(Labels, bool)>,
    values: Vec<f64>,
    bytes: usize,
}

/// Bytes that a row takes beside its values.
const ROW_BYTES: usize = 64;

impl<'m, 'e> Matrix<'m, 'e> {
    pub(crate) fn new(evaluator: &'m Evaluator<'e>, steps: usize) -> Matrix<'m, 'e> {
        Matrix {
            evaluator,
            steps,
            series: Vec::new(),
            values: Vec::new(),
            bytes: 0,
        }
    }

    pub(crate) fn push(
        &mut self,
        labels: &Labels,
        drops_name: bool,
        values: &[f64],
    ) -> Result<(), Error> {
        let bytes = ROW_BYTES + labels.bytes() + size_of_val(values);
        self.evaluator.hold(bytes)?;
        self.bytes += bytes;
        self.series.push((labels.clone(), drops_name));
        self.values.extend_from_slice(values);
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.series.len()
    }

    pub(crate) fn row(&self, place: usize) -> &[f64] {
        &self.values[place * self.steps..][..self.steps]
    }

    pub(crate) fn row_mut(&mut self, place: usize) -> &mut [f64] {
        &mut self.values[place * self.steps..][..self.steps]
    }

    pub(crate) fn value(&self, place: usize, step: usize) -> f64 {
        self.values[place * self.steps + step]
    }

    /// Hands on all rows that have a value.
    pub(crate) fn stream(mut self, sink: Sink<'_>) -> Result<(), Error> {
        for place in 0..self.len() {
            let (labels, drops_name) = self.series[place].clone();
            let values = self.row_mut(place);
            if values.iter().all(|value| is_absent(*value)) {
                continue;
            }
            sink(Row {
                labels: &labels,
                drops_name,
                values,
            })?;
        }
        Ok(())
    }
}

impl Drop for Matrix<'_, '_> {
    fn drop(&mut self) {
        self.evaluator.release(self.bytes);
    }
}
