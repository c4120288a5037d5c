//! The processors that the servers and the client may use. A child process inherits those of the
//! thread that starts it.

use lanes_support::error::{Error, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A set of processors by number. The empty set stands for all processors that this process may
/// use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processors(Vec<usize>);

impl Processors {
    /// Reads a list in the format of `taskset -c`: `0,2-3`.
    ///
    /// # Errors
    /// A part is neither a number nor a range.
    pub fn parse(text: &str) -> Result<Processors> {
        let mut numbers = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let wrong = || {
                Error::Other(format!(
                    "{part:?} is neither a processor nor a range such as 0-3"
                ))
            };
            let number = |text: &str| match text.trim().parse::<usize>() {
                Ok(number) if number < CpuSet::MAX_CPU => Ok(number),
                _ => Err(wrong()),
            };
            match part.split_once('-') {
                None => numbers.push(number(part)?),
                Some((first, last)) => {
                    let (first, last) = (number(first)?, number(last)?);
                    if first > last {
                        return Err(wrong());
                    }
                    numbers.extend(first..=last);
                }
            }
        }
        Ok(Processors(numbers))
    }

    /// Whether the set is empty and stands for all processors.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Formats the numbers for people.
    pub fn describe(&self) -> String {
        match self.is_all() {
            true => "all".to_owned(),
            false => self
                .0
                .iter()
                .map(usize::to_string)
                .collect::<Vec<_>>()
                .join(","),
        }
    }

    /// Restricts the calling thread, and the children that it starts, to these processors.
    ///
    /// # Errors
    /// None of the processors may be used here.
    pub fn hold_thread(&self) -> Result<()> {
        if self.is_all() {
            return Ok(());
        }
        let mut set = CpuSet::new();
        self.0.iter().for_each(|number| set.set(*number));
        sched_setaffinity(None, &set)
            .map_err(|error| Error::Other(format!("processors {}: {error}", self.describe())))
    }

    /// Runs `start`, whose child processes are restricted to these processors. The calling thread
    /// gets its own processors back afterwards.
    ///
    /// # Errors
    /// `start` fails, or the processors may not be used.
    pub fn starting<T>(&self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.is_all() {
            return start();
        }
        let failed = |error| Error::Other(format!("this thread's processors: {error}"));
        let before = sched_getaffinity(None).map_err(failed)?;
        self.hold_thread()?;
        let started = start();
        sched_setaffinity(None, &before).map_err(failed)?;
        started
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_parsed() {
        assert_eq!(
            Processors::parse("0,2-4").unwrap(),
            Processors(vec![0, 2, 3, 4])
        );
        assert!(Processors::parse("").unwrap().is_all());
        for wrong in ["a", "3-1", "0-", "100000"] {
            assert!(Processors::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_thread_gets_its_processors_back() {
        let before = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU)
            .find(|cpu| before.is_set(*cpu))
            .unwrap();
        let inside = Processors(vec![first])
            .starting(|| Ok(sched_getaffinity(None).unwrap().count()))
            .unwrap();
        assert_eq!(inside, 1);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
