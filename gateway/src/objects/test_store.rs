//! A store in memory, shared by any number of gateways.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::model::record::Change;
use super::store::{Images, Opener, Reader, Store, StoreError};
use super::test_support::World;

/// The store, as the gateway that has opened it sees it.
pub struct FakeStore {
    pub world: Arc<World>,
    pub writer: usize,
    unwritten: Mutex<Vec<(String, Option<Bytes>)>>,
    unwritten_records: Mutex<Vec<Change>>,
}

impl FakeStore {
    pub fn open(world: &Arc<World>) -> Self {
        let mut state = world.state();
        state.writer += 1;
        state.opens += 1;
        world.opened.notify_waiters();
        Self {
            writer: state.writer,
            world: Arc::clone(world),
            unwritten: Mutex::default(),
            unwritten_records: Mutex::default(),
        }
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.world.state().writer == self.writer {
            Ok(())
        } else {
            Err(StoreError::Fenced)
        }
    }

    fn answer(&self) -> Result<(), StoreError> {
        if self.world.dies() {
            Err(StoreError::Closed("killed".to_owned()))
        } else {
            Ok(())
        }
    }
}

impl Images for FakeStore {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        self.world.fetch(key).await
    }
}

impl Store for FakeStore {
    async fn put(&self, key: &str, image: Bytes) -> Result<(), StoreError> {
        self.check()?;
        self.unwritten.lock().push((key.to_owned(), Some(image)));
        self.answer()
    }

    async fn durable(&self) -> Result<(), StoreError> {
        self.check()?;
        for (key, image) in self.unwritten.lock().drain(..) {
            let mut state = self.world.state();
            match image {
                Some(image) => state.objects.insert(key, image),
                None => state.objects.remove(&key),
            };
        }
        for change in self.unwritten_records.lock().drain(..) {
            let mut state = self.world.state();
            match change.value {
                Some(value) => state.records.insert(change.name, value),
                None => state.records.remove(&change.name),
            };
        }
        self.answer()
    }

    async fn write(&self, changes: Vec<Change>) -> Result<(), StoreError> {
        self.check()?;
        self.unwritten_records.lock().extend(changes);
        Ok(())
    }

    async fn records(
        &self,
        prefix: &str,
        each: &mut (dyn FnMut(&str, Bytes) + Send),
    ) -> Result<(), StoreError> {
        self.check()?;
        let records = self.world.state().records.clone();
        let mut wanted = records.range(prefix.to_owned()..);
        while let Some((name, value)) = wanted.next().filter(|(name, _)| name.starts_with(prefix)) {
            each(name, value.clone());
        }
        Ok(())
    }

    async fn delete(&self, keys: &[String]) -> Result<(), StoreError> {
        self.check()?;
        let deletes = keys.iter().map(|key| (key.clone(), None));
        self.unwritten.lock().extend(deletes);
        self.durable().await
    }

    async fn keys(&self, each: &mut (dyn FnMut(&str) + Send)) -> Result<(), StoreError> {
        self.check()?;
        self.world.state().objects.keys().for_each(|key| each(key));
        self.answer()
    }

    async fn reclaim(&self) -> Result<bool, StoreError> {
        self.check()?;
        self.world.state().rewrites += 1;
        Ok(true)
    }

    async fn closed(&self) -> StoreError {
        loop {
            let opened = self.world.opened.notified();
            if self.check().is_err() {
                return StoreError::Fenced;
            }
            opened.await;
        }
    }

    async fn close(&self) {
        self.world.state().closes += 1;
    }
}

/// Opens the store in memory.
pub struct FakeOpener(pub Arc<World>);

/// The store, as a gateway that only reads sees it.
pub struct FakeReader(Arc<World>);

impl Images for FakeReader {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        self.0.fetch(key).await
    }
}

impl Reader for FakeReader {
    async fn record(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(self.0.state().records.get(name).cloned())
    }

    async fn close(&self) {}
}

impl Opener for FakeOpener {
    type Store = FakeStore;
    type Reader = FakeReader;

    async fn read(&self) -> Result<Option<FakeReader>, StoreError> {
        Ok(Some(FakeReader(Arc::clone(&self.0))))
    }

    async fn open(&self) -> Result<FakeStore, StoreError> {
        Ok(FakeStore::open(&self.0))
    }
}
