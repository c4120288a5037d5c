//! Refuses two values of one label set at one step.

use crate::error::{Error, execution};
use crate::labels::Labels;
use crate::sample::presence;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// Prometheus's words for two values of one label set.
const DUPLICATE: &str = "vector cannot contain metrics with the same labelset";

/// The steps at which each label set has a value.
#[derive(Debug)]
pub(crate) struct Guard {
    is_active: bool,
    seen: HashMap<Labels, Vec<u64>>,
}

impl Guard {
    /// A guard; one that is not active admits everything.
    pub(crate) fn new(is_active: bool) -> Guard {
        Guard {
            is_active,
            seen: HashMap::new(),
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
