//! The functions of `LanesWindow` with their states, and what they say of the rows of a vector.

use lanes_columnar::limits::VECTOR_ROWS;
use lanes_columnar::vector::number::Scalar;
use lanes_columnar::vector::selection::Selection;
use lanes_columnar::vector::{Evaluation, EvaluationError};
use lanes_columnar::window::Window;
use pgrx::pg_sys;

use super::input::{Vector, WindowInput};
use crate::expressions::translate::to_datum;

/// All functions of a node.
pub struct Values {
    pub windows: Vec<Window>,
    results: Vec<Results>,
    /// Whether rows of one time and partition have one average.
    pub peers: bool,
}

/// What a function said of the rows of the vector under way.
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
    /// `peers` is whether the frame reaches to a row's last peer.
    pub fn new(windows: Vec<Window>, peers: bool) -> Values {
        let results = windows.iter().map(|_| Results {
            values: vec![0; VECTOR_ROWS],
            present: Selection::NONE,
        });
        Values {
            peers: peers && windows.iter().any(Window::is_of_frame),
            results: results.collect(),
            windows,
        }
    }

    /// Takes rows of a vector; then those of one time have the average of the last of them, if there are peers.
    ///
    /// # Errors
    /// What a function cannot say, and of which row.
    pub fn take(
        &mut self,
        vector: &Vector,
        rows: &Selection,
    ) -> Result<(), (usize, EvaluationError)> {
        let mut failed: Option<(usize, EvaluationError)> = None;
        for (function, window) in self.windows.iter_mut().enumerate() {
            let results = &mut self.results[function];
            let of_peers = self.peers && window.is_of_frame();
            let taken = take(function, window, results, of_peers, vector, rows);
            if let Err(failure) = taken
                && failed.is_none_or(|earlier| failure.0 < earlier.0)
            {
                failed = Some(failure);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Takes a row that is in no vector.
    ///
    /// # Errors
    /// What the function cannot say.
    pub fn step(
        &mut self,
        function: usize,
        partition: u32,
        (x, time): (Option<Scalar>, Option<Scalar>),
    ) -> Evaluation<Option<Scalar>> {
        let time = time.map(|time| time.0 as i64);
        self.windows[function].step(partition as usize, x, time)
    }

    /// What a function said of a row of the vector.
    pub fn result(&self, function: usize, row: usize) -> Option<Scalar> {
        self.results[function].get(row)
    }

    /// The average of a partition now, if the function is one of peers; otherwise what it said.
    pub fn of_peers(
        &self,
        function: usize,
        partition: u32,
        said: Option<Scalar>,
    ) -> Option<Scalar> {
        let window = &self.windows[function];
        match window.is_of_frame() {
            true => window.average(partition as usize),
            false => said,
        }
    }

    /// A result as a datum, and whether it is NULL.
    pub fn datum(&self, function: usize, result: Option<Scalar>) -> (pg_sys::Datum, bool) {
        match result {
            Some(scalar) => (to_datum(self.windows[function].number(), scalar), false),
            None => (pg_sys::Datum::null(), true),
        }
    }

    /// Bytes that all take.
    pub fn bytes(&self, input: &WindowInput) -> usize {
        input.bytes() + self.windows.iter().map(Window::bytes).sum::<usize>()
    }
}

/// The same for one function.
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
        let said = window.step(partition, x, time.map(|time| time.0 as i64));
        results.set(row, said.map_err(|failure| (row, failure))?);
        Ok(())
    };
    if !of_peers {
        return rows.try_for_each(|row| step(window, results, row));
    }
    // Of the rows of one time: the first, the time, and how many they are.
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
