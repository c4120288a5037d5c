//! A gateway's term: the time from the opening of the store until it is lost, in which this gateway
//! writes to the store.
//!
//! ```text
//! supported? ─► (claim, if fenced before) ─► owner? ─► open ─► recall, log ─┬─► claim ─► offload, release, collect ─┐
//!     ▲                                        │                            └──── session lost ◄────────────────────┤
//!     ├───── recall only, until owner ◄────────┘ no: another database, or a standby                                 │
//!     └──────────────── fenced, closed ◄────────────────────────────────────────────────────────────────────────────┘
//! ```

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::definitions;
use super::log::{LogWriter, release};
use super::model::{ObjectMetrics, ObjectState, ObjectStatus, Pauses, record};
use super::offload::Offload;
use super::orphans::Orphans;
use super::owner::{OWNER, Owner, admit};
use super::recall::Recall;
use super::run::ObjectSettings;
use super::source::{Source, SourceError};
use super::store::{Opener, Reader, RoundError, Store, StoreError};
use crate::clock;

/// The work of one gateway, term after term.
pub struct Terms<S, O> {
    /// The database.
    pub source: Arc<S>,
    /// Opens the store.
    pub opener: O,
    /// The settings.
    pub settings: ObjectSettings,
    /// The log of level `object`.
    pub log: LogWriter,
    /// The times between attempts.
    pub pauses: Pauses,
    /// Receives the state.
    pub status: Arc<ObjectStatus>,
    /// Metrics of object storage.
    pub metrics: Arc<ObjectMetrics>,
}

/// Logs why segments are not offloaded, unless the same reason was logged last.
fn log_once(logged: &mut Option<String>, why: String) {
    if logged.as_ref() != Some(&why) {
        tracing::warn!("segments are not offloaded: {why}");
        *logged = Some(why);
    }
}

/// A pause that doubles with each use.
struct Doubling {
    next: Duration,
    pauses: Pauses,
}

impl Doubling {
    fn new(pauses: Pauses) -> Self {
        let next = pauses.error;
        Self { next, pauses }
    }

    async fn wait(&mut self) {
        sleep(self.next).await;
        self.next = (self.next * 2).min(self.pauses.longest);
    }

    fn reset(&mut self) {
        self.next = self.pauses.error;
    }
}

impl<S: Source, O: Opener> Terms<S, O> {
    /// Runs until it is dropped. Each store is sent to `open`, so that it can be closed in order.
    pub async fn run(&self, open: &tokio::sync::watch::Sender<Option<Arc<O::Store>>>) {
        let mut was_fenced = false;
        loop {
            self.await_support().await;
            if was_fenced {
                self.stand_by().await;
            }
            self.await_admission().await;
            let store = self.open().await;
            open.send_replace(Some(Arc::clone(&store)));
            let end = match self.own(store.as_ref()).await {
                Ok(owner) => self.term(&store, owner).await,
                Err(RoundError::Store(StoreError::Fenced)) => StoreError::Fenced,
                Err(error) => StoreError::Closed(error.to_string()),
            };
            self.source.release().await;
            open.send_replace(None);
            store.close().await;
            was_fenced = end == StoreError::Fenced;
            if was_fenced {
                self.publish(ObjectState::Fenced);
                self.metrics.fenced.inc();
                tracing::warn!(
                    "fenced by {}, which has opened the object store: this gateway stands by, and continues to accept writes",
                    self.who_fenced().await
                );
            } else {
                tracing::warn!("the object store has to be opened again: {end}");
                self.metrics.retried("open");
                sleep(self.pauses.error).await;
            }
        }
    }

    fn publish(&self, state: ObjectState) {
        self.status.set_state(state);
        self.metrics.set_state(state);
    }

    /// Returns once the database has the functions.
    async fn await_support(&self) {
        let mut last = None;
        loop {
            let Err(error) = self.source.supports().await else {
                return;
            };
            self.publish(ObjectState::Unsupported);
            let pause = match &error {
                SourceError::Unsupported(_) => self.pauses.unsupported,
                _ => self.pauses.error.max(self.pauses.claim),
            };
            if last.as_ref() != Some(&error) {
                tracing::warn!("segments are not offloaded: {error}");
                last = Some(error);
            }
            self.metrics.retried("supports");
            sleep(pause).await;
        }
    }

    /// Returns once this gateway has the claim, so that the gateway that fenced it has ended.
    async fn stand_by(&self) {
        self.publish(ObjectState::Fenced);
        sleep(self.pauses.standby).await;
        while self.source.claim().await != Ok(true) {
            sleep(self.pauses.claim).await;
        }
        tracing::info!("no other gateway offloads segments any more: this one continues");
    }

    /// Describes the gateway that has the store now, for people.
    async fn who_fenced(&self) -> String {
        let owner = async {
            let reader = self.opener.read().await.ok()??;
            let owner = self.owner(&reader).await;
            reader.close().await;
            owner.ok()?
        };
        match owner.await {
            Some(owner) => format!("gateway {} of database {}", owner.gateway, owner.scope),
            None => "another gateway".to_owned(),
        }
    }

    async fn owner(&self, reader: &O::Reader) -> Result<Option<Owner>, StoreError> {
        let record = reader.record(OWNER).await?;
        let owner = record.map(|record| record::read(OWNER, &record));
        owner.transpose().map_err(StoreError::Unavailable)
    }

    /// Returns once this database may write to the store. Until then segments are only read.
    async fn await_admission(&self) {
        self.publish(ObjectState::Opening);
        let mut pause = Doubling::new(self.pauses);
        let mut logged = None;
        loop {
            match self.opener.read().await {
                Ok(reader) => {
                    let reader = reader.map(Arc::new);
                    let admitted = self
                        .await_admission_beside(reader.as_ref(), &mut logged)
                        .await;
                    if let Some(reader) = reader {
                        reader.close().await;
                    }
                    match admitted {
                        Ok(()) => return,
                        Err(error) => log_once(&mut logged, error.to_string()),
                    }
                }
                Err(error) => log_once(&mut logged, error.to_string()),
            }
            self.metrics.retried("open");
            pause.wait().await;
        }
    }

    /// Reads segments until this database may write. `logged` is the reason that was logged last.
    async fn await_admission_beside(
        &self,
        reader: Option<&Arc<O::Reader>>,
        logged: &mut Option<String>,
    ) -> Result<(), RoundError> {
        let waiting = async {
            loop {
                let before = match reader {
                    Some(reader) => self.owner(reader).await?,
                    None => None,
                };
                let database = self.source.identity().await?;
                let why = match admit(before.as_ref(), &database) {
                    Ok(_) => return Ok(()),
                    Err(why) => why,
                };
                self.publish(ObjectState::Foreign);
                log_once(logged, why);
                sleep(self.pauses.foreign).await;
                if reader.is_none() {
                    // The store may exist by now.
                    return Err(
                        StoreError::Unavailable("the store does not exist yet".to_owned()).into(),
                    );
                }
            }
        };
        let Some(reader) = reader else {
            return waiting.await;
        };
        let recall = self.recall(reader);
        tokio::select! {
            admitted = waiting => admitted,
            () = recall.run() => Err(StoreError::Closed("recall has ended".to_owned()).into()),
        }
    }

    fn recall<T>(&self, store: &Arc<T>) -> Recall<S, T> {
        Recall {
            source: Arc::clone(&self.source),
            store: Arc::clone(store),
            metrics: Arc::clone(&self.metrics),
            at_once: self.settings.recalls_at_once,
        }
    }

    /// Makes this database the owner of the open store if it still may be. Another one may have
    /// become the owner since it was admitted, while the store could not be opened.
    async fn own(&self, store: &O::Store) -> Result<Owner, RoundError> {
        let mut record = None;
        store
            .records(OWNER, &mut |name, value| {
                if name == OWNER {
                    record = Some(record::read(OWNER, &value));
                }
            })
            .await?;
        let before: Option<Owner> = record.transpose().map_err(StoreError::Unavailable)?;
        let database = self.source.identity().await?;
        let primary = admit(before.as_ref(), &database).map_err(StoreError::Unavailable)?;
        let owner = Owner::new(&database, primary, before.as_ref());
        store.write(vec![owner.change()]).await?;
        store.durable().await?;
        Ok(owner)
    }

    async fn open(&self) -> Arc<O::Store> {
        self.publish(ObjectState::Opening);
        let mut pause = Doubling::new(self.pauses);
        loop {
            match self.opener.open().await {
                Ok(store) => return Arc::new(store),
                Err(error) => {
                    tracing::warn!("could not open the object store: {error}");
                    self.metrics.retried("open");
                    pause.wait().await;
                }
            }
        }
    }

    /// Recalls, offloads and collects until the store is lost.
    async fn term(&self, store: &Arc<O::Store>, owner: Owner) -> StoreError {
        let recall = self.recall(store);
        tokio::select! {
            end = store.closed() => end,
            end = self.work(store, owner) => end,
            end = self.log.serve(store.as_ref(), self.pauses) => end,
            () = recall.run() => StoreError::Closed("recall has ended".to_owned()),
        }
    }

    fn offload(&self, store: &Arc<O::Store>, owner: Owner) -> Offload<S, O::Store> {
        Offload::new(
            Arc::clone(&self.source),
            Arc::clone(store),
            Arc::clone(self.log.log()),
            owner,
            Arc::clone(&self.metrics),
        )
    }

    /// Offloads and collects, one after the other, while this gateway has the claim.
    async fn work(&self, store: &Arc<O::Store>, owner: Owner) -> StoreError {
        let mut offload = self.offload(store, owner);
        let mut orphans = Orphans::new(
            Arc::clone(&self.source),
            Arc::clone(store),
            Arc::clone(&self.metrics),
            self.settings.orphan_age,
        );
        // With half the age, an orphan is seen at least twice before it is deleted.
        let collect_interval = self.settings.orphan_age / 2;
        let mut collect_at = clock::now();
        let mut pause = Doubling::new(self.pauses);
        if let Err(end) = self.await_claim(&offload.owner).await {
            return end;
        }
        loop {
            let round = async {
                let done = offload.round().await?;
                let (source, store, log) = (
                    self.source.as_ref(),
                    store.as_ref(),
                    self.log.log().as_ref(),
                );
                release::round(source, store, log, &self.metrics).await?;
                definitions::round(source, store, log).await?;
                if clock::now() >= collect_at {
                    orphans.round().await?;
                    release::forget_tables(source, store, log).await?;
                    collect_at = clock::now() + collect_interval;
                }
                Ok::<_, RoundError>(done)
            };
            match round.await {
                Ok(done) if done.failed == 0 => {
                    pause.reset();
                    if done.parts + done.gone == 0 {
                        sleep(self.settings.interval).await;
                    }
                }
                Ok(_) => pause.wait().await,
                Err(RoundError::Store(end @ (StoreError::Fenced | StoreError::Closed(_)))) => {
                    return end;
                }
                Err(error) => {
                    tracing::warn!("could not offload segments: {error}");
                    self.metrics.retried("offload");
                    pause.wait().await;
                    if matches!(error, RoundError::Source(_))
                        && let Err(end) = self.await_claim(&offload.owner).await
                    {
                        return end;
                    }
                }
            }
        }
    }

    /// Returns once this gateway has the claim on the owner's database. Returns an error if the
    /// session leads to another database now.
    async fn await_claim(&self, owner: &Owner) -> Result<(), StoreError> {
        loop {
            let claimed = match self.source.claim().await {
                Ok(true) => self.source.claimed_identity().await.map(Some),
                Ok(false) => Ok(None),
                Err(error) => Err(error),
            };
            match claimed {
                Ok(Some(database)) if owner.is(&database) => {
                    self.publish(ObjectState::Working);
                    return Ok(());
                }
                Ok(Some(_)) => {
                    let why = "the sessions lead to another database now, or to another timeline";
                    return Err(StoreError::Closed(why.to_owned()));
                }
                Ok(None) => self.publish(ObjectState::Waiting),
                Err(error) => {
                    tracing::debug!("could not acquire the claim: {error}");
                    self.publish(ObjectState::Waiting);
                    self.metrics.retried("claim");
                }
            }
            sleep(self.pauses.claim).await;
        }
    }
}
