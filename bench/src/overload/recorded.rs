//! Requests that remember which of them were acknowledged.

use crate::load::Source;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The requests of another source.
pub struct Recorded {
    source: Arc<dyn Source>,
    acknowledged: Mutex<Vec<u64>>,
}

impl Recorded {
    /// Wraps a source. No request is acknowledged at first.
    pub fn new(source: Arc<dyn Source>) -> Recorded {
        Recorded {
            source,
            acknowledged: Mutex::default(),
        }
    }

    /// Returns the numbers of the acknowledged requests.
    pub fn numbers(&self) -> BTreeSet<u64> {
        let acknowledged = self
            .acknowledged
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        acknowledged.iter().copied().collect()
    }
}

impl Source for Recorded {
    fn request(&self, number: u64, into: &mut Vec<u8>) -> bool {
        self.source.request(number, into)
    }

    fn weight(&self, number: u64) -> u64 {
        self.source.weight(number)
    }

    fn acknowledged(&self, number: u64) {
        let mut acknowledged = self
            .acknowledged
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        acknowledged.push(number);
    }
}
