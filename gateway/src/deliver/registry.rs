//! Which series registry a connection leads to, and whether it is the one that the cached ids come from.
//!
//! A restored or re-created database, and a standby promoted before the last registrations reached it, may give the same ids to other
//! series. Their identity (`lanes.registry_identity()`) differs, and then all cached ids go.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::series::SeriesCache;

/// The identity last seen, and the cache that depends on it.
pub struct Registry {
    cache: Arc<SeriesCache>,
    identity: Mutex<Option<String>>,
}

impl Registry {
    /// No identity seen yet.
    pub fn new(cache: Arc<SeriesCache>) -> Self {
        Self {
            cache,
            identity: Mutex::new(None),
        }
    }

    /// Series ids known, of the generation last seen.
    pub fn cache(&self) -> &Arc<SeriesCache> {
        &self.cache
    }

    /// The generation of the registry last seen.
    pub fn generation(&self) -> u64 {
        self.cache.generation()
    }

    /// Takes note of the identity behind a new connection; returns the generation that ids from it belong to.
    pub fn observe(&self, identity: &str) -> u64 {
        let mut known = self.identity.lock();
        match &*known {
            Some(known) if known == identity => return self.cache.generation(),
            Some(before) => {
                tracing::warn!(%before, now = %identity, "another series registry: cached series ids are forgotten")
            }
            None => {
                // The first: the cache is empty, so requests that began before it are right too.
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
