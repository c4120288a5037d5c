//! A database and a store in memory, shared by any number of gateways, that die on demand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::model::History;
use super::source::{
    Backlog, Definition, DueSegment, Identity, LocalRows, PartRows, Primary, Source, SourceError,
};
use super::store::StoreError;

/// The prefix of all keys.
pub const SCOPE: &str = "1/5";

/// An image that the database refuses.
pub const DAMAGED: &[u8] = b"damaged";

/// What outlives every gateway.
#[derive(Default)]
pub struct World {
    state: Mutex<State>,
    /// Notified when the store is opened.
    pub(super) opened: Notify,
    is_wanted: Notify,
}

#[derive(Default)]
pub struct State {
    /// Local segments with their images.
    pub local: Vec<(DueSegment, Bytes)>,
    /// The keys of remote parts.
    pub remote: BTreeSet<String>,
    /// The durable images of the store.
    pub objects: BTreeMap<String, Bytes>,
    /// The durable records of the store.
    pub records: BTreeMap<String, Bytes>,
    /// The rows that are only in the database.
    pub local_rows: Vec<LocalRows>,
    /// The timelines of the database.
    pub history: History,
    /// Parts that are merged just before they are committed.
    pub merged: BTreeSet<i64>,
    /// Parts whose images cannot be read.
    pub unreadable: BTreeSet<i64>,
    pub wanted: VecDeque<String>,
    pub supplied: BTreeMap<String, Bytes>,
    pub failed: BTreeMap<String, String>,
    /// The version of all definitions.
    pub definition: i64,
    pub is_unsupported: bool,
    /// Whether the database does not answer queries of the backlog.
    pub is_away: bool,
    /// The gateway that has the claim.
    pub claim: Option<usize>,
    /// The gateway that opened the store last.
    pub writer: usize,
    pub opens: usize,
    pub closes: usize,
    /// The number of calls until everything dies. The last call is made, but its answer is lost.
    pub calls_left: Option<usize>,
    pub fetching: usize,
    pub fetching_max: usize,
    /// Keys that the store cannot read.
    pub lost: BTreeSet<String>,
    /// How often the store was to be rewritten.
    pub rewrites: usize,
}

impl World {
    pub fn state(&self) -> parking_lot::MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Adds a due part with this number of segments.
    pub fn seal(&self, part: i64, segments: i64) {
        for first_row in 0..segments {
            let segment = DueSegment {
                target: 7,
                part,
                first_row,
                rows: 10,
                bytes: 3,
                key: key(part, first_row),
            };
            let image = Bytes::from(format!("{part}.{first_row}"));
            self.state().local.push((segment, image));
        }
    }

    pub fn want(&self, key: &str) {
        self.state().wanted.push_back(key.to_owned());
        self.is_wanted.notify_waiters();
    }

    /// Returns true once the allowed calls are used up, and from then on.
    pub(super) fn dies(&self) -> bool {
        let mut state = self.state();
        match &mut state.calls_left {
            None => false,
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                *left == 0
            }
        }
    }

    pub(super) async fn fetch(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        {
            let mut state = self.state();
            state.fetching += 1;
            state.fetching_max = state.fetching_max.max(state.fetching);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        let mut state = self.state();
        state.fetching -= 1;
        if state.lost.contains(key) {
            return Err(StoreError::Unavailable("away".to_owned()));
        }
        Ok(state.objects.get(key).cloned())
    }

    fn answer(&self) -> Result<(), SourceError> {
        if self.dies() {
            Err(SourceError::Lost("killed".to_owned()))
        } else {
            Ok(())
        }
    }
}

pub fn key(part: i64, first_row: i64) -> String {
    format!("{SCOPE}/9/{part}/{first_row}")
}

/// The database, as one gateway sees it.
pub struct FakeSource {
    pub world: Arc<World>,
    pub gateway: usize,
    /// The data directory of the database.
    pub directory: &'static str,
    pub is_standby: bool,
}

impl FakeSource {
    /// Creates a gateway's view of the database.
    pub fn new(world: &Arc<World>, gateway: usize) -> Self {
        Self {
            world: Arc::clone(world),
            gateway,
            directory: "data",
            is_standby: false,
        }
    }

    fn history(&self) -> History {
        let history = self.world.state().history.clone();
        History {
            current: history.current.max(1),
            ..history
        }
    }

    fn check(&self) -> Result<(), SourceError> {
        if self.world.state().claim == Some(self.gateway) {
            Ok(())
        } else {
            Err(SourceError::Lost("no claim".to_owned()))
        }
    }
}

impl Source for FakeSource {
    async fn supports(&self) -> Result<(), SourceError> {
        if self.world.state().is_unsupported {
            return Err(SourceError::Unsupported("no such function".to_owned()));
        }
        Ok(())
    }

    async fn identity(&self) -> Result<Identity, SourceError> {
        let primary = match self.is_standby {
            true => None,
            false => Some(Primary {
                history: self.history(),
                wal_place: 0,
            }),
        };
        Ok(Identity {
            scope: SCOPE.to_owned(),
            directory: self.directory.to_owned(),
            primary,
        })
    }

    async fn claimed_identity(&self) -> Result<Identity, SourceError> {
        self.check()?;
        self.identity().await
    }

    async fn claim(&self) -> Result<bool, SourceError> {
        let mut state = self.world.state();
        Ok(*state.claim.get_or_insert(self.gateway) == self.gateway)
    }

    async fn release(&self) {
        let mut state = self.world.state();
        if state.claim == Some(self.gateway) {
            state.claim = None;
        }
    }

    async fn due(&self, _: i32) -> Result<Vec<DueSegment>, SourceError> {
        self.check()?;
        let due = {
            let state = self.world.state();
            state.local.iter().map(|(due, _)| due.clone()).collect()
        };
        self.world.answer().map(|()| due)
    }

    async fn backlog(&self) -> Result<Backlog, SourceError> {
        let state = self.world.state();
        if state.is_away {
            return Err(SourceError::Lost("away".to_owned()));
        }
        let due = state.local.iter().map(|(due, _)| due);
        Ok(due.fold(Backlog::default(), |sum, due| Backlog {
            rows: sum.rows + due.rows as u64,
            bytes: sum.bytes + due.bytes as u64,
        }))
    }

    async fn image(&self, segment: &DueSegment) -> Result<Bytes, SourceError> {
        self.check()?;
        let image = {
            let state = self.world.state();
            let found = state.local.iter().find(|(due, _)| due == segment);
            found
                .filter(|(due, _)| !state.unreadable.contains(&due.part))
                .map(|(_, image)| image.clone())
                .ok_or_else(|| SourceError::Failed("no such segment".to_owned()))?
        };
        self.world.answer().map(|()| image)
    }

    async fn commit(&self, target: u32, part: i64) -> Result<bool, SourceError> {
        self.check()?;
        let is_live = {
            let mut state = self.world.state();
            let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut state.local)
                .into_iter()
                .partition(|(due, _)| (due.target, due.part) == (target, part));
            state.local = kept;
            let is_live = !gone.is_empty() && !state.merged.contains(&part);
            for (due, image) in gone {
                if !is_live {
                    continue;
                }
                assert_eq!(
                    state.objects.get(&due.key),
                    Some(&image),
                    "what is given up here is durable there"
                );
                state.remote.insert(due.key);
            }
            is_live
        };
        self.world.answer().map(|()| is_live)
    }

    async fn part_rows(&self, _: u32, part: i64) -> Result<Option<PartRows>, SourceError> {
        self.check()?;
        let first_row = part as u64 * 1000;
        Ok(Some(PartRows {
            storage: 9,
            first_row,
            end_row: first_row + 1000,
            types: Vec::new(),
            wal_place: 0,
        }))
    }

    async fn definition(&self, _: u32) -> Result<Option<Definition>, SourceError> {
        self.check()?;
        let version = self.world.state().definition;
        let json = format!("{{\"version\": {version}}}");
        Ok(Some(Definition { json, version }))
    }

    async fn definition_versions(&self, targets: &[u32]) -> Result<Vec<(u32, i64)>, SourceError> {
        self.check()?;
        let version = self.world.state().definition;
        Ok(targets.iter().map(|target| (*target, version)).collect())
    }

    async fn local_rows(&self) -> Result<Vec<LocalRows>, SourceError> {
        self.check()?;
        Ok(self.world.state().local_rows.clone())
    }

    async fn history(&self) -> Result<History, SourceError> {
        self.check()?;
        Ok(self.history())
    }

    async fn remote_keys(&self, each: &mut (dyn FnMut(&str) + Send)) -> Result<(), SourceError> {
        self.check()?;
        self.world.state().remote.iter().for_each(|key| each(key));
        self.world.answer()
    }

    async fn scope(&self) -> Result<String, SourceError> {
        Ok(SCOPE.to_owned())
    }

    async fn wanted(&self, wait: Duration) -> Result<Vec<String>, SourceError> {
        let is_wanted = self.world.is_wanted.notified();
        if self.world.state().wanted.is_empty() {
            let _ = timeout(wait, is_wanted).await;
        }
        Ok(self.world.state().wanted.drain(..).collect())
    }

    async fn supply(&self, key: &str, image: &[u8]) -> Result<(), SourceError> {
        if image == DAMAGED {
            return Err(SourceError::Failed("damaged".to_owned()));
        }
        let image = Bytes::copy_from_slice(image);
        let before = self.world.state().supplied.insert(key.to_owned(), image);
        assert_eq!(before, None, "{key} is supplied once");
        Ok(())
    }

    async fn fail(&self, key: &str, reason: &str) -> Result<(), SourceError> {
        let mut state = self.world.state();
        state.failed.insert(key.to_owned(), reason.to_owned());
        Ok(())
    }
}
