//! The functions of `LanesWindow`, with their states and the results for the rows of a vector.

use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::number::Scalar;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::{Evaluation, EvaluationError};
use lanes_columnar::window::Window;
use pgrx::pg_sys;

use super::input::{Vector, WindowInput};
use crate::expressions::translate::to_datum;

/// The functions of a node.
pub struct Values {
    pub windows: Vec<Window>,
    results: Vec<Results>,
    /// Whether rows of one time and partition have one average.
    pub has_peers: bool,
}

/// The results of a function for the rows of the current vector.
struct Results {
    values: Vec<u64>,
    present: Selection,
}

impl Results {
    #[inline]
    fn set(&mut self, row: usize, value: Option<Scalar>) {
        let (word, bit) = (&mut self.present.words[row / 64], 1 << (row % 64));
        match value {
            Some(value) => {
                *word |= bit;
                self.values[row] = value.0;
            }
            None => *word &= !bit,
        }
    }

    #[inline]
    fn get(&self, row: usize) -> Option<Scalar> {
        self.present.contains(row).then(|| Scalar(self.values[row]))
    }
}

impl Values {
    /// The functions before the first row. `has_peers` says whether the frame reaches to a row's last peer.
    pub fn new(windows: Vec<Window>, has_peers: bool) -> Values {
        let results = windows.iter().map(|_| Results {
            values: vec![0; VECTOR_ROWS],
            present: Selection::NONE,
        });
        Values {
            has_peers: has_peers && windows.iter().any(Window::is_of_frame),
            results: results.collect(),
            windows,
        }
    }

    /// Processes rows of a vector. If there are peers, all rows of one time get the average of the last one.
    ///
    /// # Errors
    /// The first row for which a function fails, and its error.
    pub fn take(
        &mut self,
        vector: &Vector,
        rows: &Selection,
    ) -> Result<(), (usize, EvaluationError)> {
        let mut failed: Option<(usize, EvaluationError)> = None;
        for (function, window) in self.windows.iter_mut().enumerate() {
            let results = &mut self.results[function];
            let of_peers = self.has_peers && window.is_of_frame();
            let taken = take(function, window, results, of_peers, vector, rows);
            if let Err(failure) = taken
                && failed.is_none_or(|earlier| failure.0 < earlier.0)
            {
                failed = Some(failure);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Processes a row that is in no vector.
    ///
    /// # Errors
    /// The error of the function.
    pub fn step(
        &mut self,
        function: usize,
        partition: u32,
        (x, time): (Option<Scalar>, Option<Scalar>),
    ) -> Evaluation<Option<Scalar>> {
        let time = time.map(|time| time.0 as i64);
        self.windows[function].step(partition as usize, x, time)
    }

    /// The result of a function for a row of the vector.
    pub fn result(&self, function: usize, row: usize) -> Option<Scalar> {
        self.results[function].get(row)
    }

    /// The current average of a partition, if the function is an average over a frame; otherwise the `result`.
    pub fn of_peers(
        &self,
        function: usize,
        partition: u32,
        result: Option<Scalar>,
    ) -> Option<Scalar> {
        let window = &self.windows[function];
        match window.is_of_frame() {
            true => window.average(partition as usize),
            false => result,
        }
    }

    /// A result as a datum; `None` is NULL.
    pub fn datum(&self, function: usize, result: Option<Scalar>) -> Option<pg_sys::Datum> {
        result.map(|scalar| to_datum(self.windows[function].number(), scalar))
    }

    /// Bytes of the states and of the partitions.
    pub fn bytes(&self, input: &WindowInput) -> usize {
        input.bytes() + self.windows.iter().map(Window::bytes).sum::<usize>()
    }
}

/// Processes rows of a vector by one function.
fn take(
    function: usize,
    window: &mut Window,
    results: &mut Results,
    of_peers: bool,
    vector: &Vector,
    rows: &Selection,
) -> Result<(), (usize, EvaluationError)> {
    let step = |window: &mut Window, results: &mut Results, row: usize| {
        let (x, time) = vector.arguments(function, row);
        let partition = vector.partitions[row] as usize;
        let result = window.step(partition, x, time.map(|time| time.0 as i64));
        results.set(row, result.map_err(|failure| (row, failure))?);
        Ok(())
    };
    if !of_peers {
        return rows.try_for_each(|row| step(window, results, row));
    }
    // The first row of the current time, the time, and the number of its rows so far.
    let (mut first, mut time, mut count) = (0, None, 0);
    let settle = |window: &Window, results: &mut Results, from: usize, to: usize| {
        let mut next = rows.next(from);
        while let Some(row) = next.filter(|row| *row < to) {
            results.set(row, window.average(vector.partitions[row] as usize));
            next = rows.next(row + 1);
        }
    };
    rows.try_for_each(|row| {
        let now = Some(vector.time(row));
        if now != time {
            if count > 1 {
                settle(window, results, first, row);
            }
            (first, time, count) = (row, now, 0);
        }
        count += 1;
        step(window, results, row)
    })?;
    if count > 1 {
        settle(window, results, first, VECTOR_ROWS);
    }
    Ok(())
}
