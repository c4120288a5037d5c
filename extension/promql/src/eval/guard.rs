//! Refuses two values of one label set at one step.

use super::Evaluator;
use crate::error::{Error, execution};
use crate::labels::Labels;
use crate::sample::presence;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// Prometheus's words for two values of one label set.
const DUPLICATE: &str = "vector cannot contain metrics with the same labelset";

/// The steps at which each label set has a value.
pub(crate) struct Guard<'g, 'e> {
    evaluator: &'g Evaluator<'e>,
    is_active: bool,
    seen: HashMap<Labels, Vec<u64>>,
    /// The bytes that are counted as held.
    bytes: usize,
}

impl<'g, 'e> Guard<'g, 'e> {
    /// A guard; one that is not active admits everything.
    pub(crate) fn new(evaluator: &'g Evaluator<'e>, is_active: bool) -> Guard<'g, 'e> {
        Guard {
            evaluator,
            is_active,
            seen: HashMap::new(),
            bytes: 0,
        }
    }

    /// Admits a row, unless another one has its label set and a value at a step of it.
    pub(crate) fn admit(&mut self, labels: &Labels, values: &[f64]) -> Result<(), Error> {
        if !self.is_active {
            return Ok(());
        }
        let present = presence(values);
        match self.seen.entry(labels.clone()) {
            Entry::Vacant(entry) => {
                let bytes = labels.bytes() + size_of_val(&present[..]);
                self.evaluator.hold(bytes)?;
                self.bytes += bytes;
                entry.insert(present);
            }
            Entry::Occupied(mut entry) => {
                for (held, more) in entry.get_mut().iter_mut().zip(present) {
                    if *held & more != 0 {
                        return execution(DUPLICATE);
                    }
                    *held |= more;
                }
            }
        }
        Ok(())
    }
}

impl Drop for Guard<'_, '_> {
    fn drop(&mut self) {
        self.evaluator.release(self.bytes);
    }
}
