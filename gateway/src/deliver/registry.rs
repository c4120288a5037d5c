//! The series registry behind a connection, and whether cached ids come from it.
//!
//! A restored or re-created database, or a standby promoted before it received the last
//! registrations, may assign the same ids to other series. Its identity
//! (`lanes.registry_identity()`) differs, and all cached ids are then dropped.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::series::SeriesCache;

/// The identity seen last, and the cache that depends on it.
pub struct Registry {
    cache: Arc<SeriesCache>,
    identity: Mutex<Option<String>>,
}

impl Registry {
    /// Creates a registry without a known identity.
    pub fn new(cache: Arc<SeriesCache>) -> Self {
        Self {
            cache,
            identity: Mutex::new(None),
        }
    }

    /// The cache of series ids of the current generation.
    pub fn cache(&self) -> &Arc<SeriesCache> {
        &self.cache
    }

    /// The generation of the registry seen last.
    pub fn generation(&self) -> u64 {
        self.cache.generation()
    }

    /// Records the identity behind a new connection. Returns the generation that its ids belong to.
    pub fn observe(&self, identity: &str) -> u64 {
        let mut known = self.identity.lock();
        match &*known {
            Some(known) if known == identity => return self.cache.generation(),
            Some(before) => {
                tracing::warn!(%before, now = %identity, "the series registry has changed; all cached series ids are dropped")
            }
            None => {
                // This is the first identity. The cache is empty, so requests that began before it
                // are valid too.
                *known = Some(identity.to_owned());
                return self.cache.generation();
            }
        }
        *known = Some(identity.to_owned());
        self.cache.begin_generation()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_live_as_long_as_their_registry() {
        let cache = Arc::new(SeriesCache::new(1 << 20, 1));
        let registry = Registry::new(Arc::clone(&cache));
        let first = registry.observe("a");
        assert_eq!(
            first, 0,
            "the first registry does not end the generation of requests that wait for it"
        );
        cache.insert(first, b"up", 1);
        assert_eq!(registry.observe("a"), first);
        assert_eq!(cache.find(cache.generation(), b"up"), Some(1));
        assert_ne!(registry.observe("b"), first);
        assert_eq!(cache.find(cache.generation(), b"up"), None);
    }
}
