//! What the handlers of requests share.

use std::fmt::Display;
use std::sync::Arc;

use axum::http::HeaderMap;
use bytes::Bytes;
use hyper::body::Body as HttpBody;

use super::metrics::AppMetrics;
use crate::access::{Caller, Guard, Writers};
use crate::clock::Instant;
use crate::deliver::call_error::NO_STANDBYS;
use crate::deliver::{NO_LOG, Sink};
use crate::events::format::Format;
use crate::events::write::EventRequest;
use crate::events::{self, EventPath};
use crate::http::body::{self, BodyLimits};
use crate::http::{Hosts, Refusal};
use crate::model::{AckLevel, Budget, Reservation};
use crate::observe::Status;
use crate::query::QueryApi;
use crate::quota::{Quota, Quotas};
use crate::receive::WritePath;

/// The header by which a request chooses its level of acknowledgement.
pub const ACK_HEADER: &str = "x-lanes-ack";

/// What the handlers of one worker share. Clones are cheap.
pub struct Handlers<S> {
    /// The path of remote write requests.
    pub path: Arc<WritePath>,
    /// The path of events.
    pub events: Arc<EventPath<S>>,
    /// The privileges of users.
    pub writers: Arc<Writers<S>>,
    /// What does not depend on the worker.
    pub common: Arc<Common>,
}

/// What the handlers of all workers share.
pub struct Common {
    /// Readiness and rates.
    pub status: Arc<Status>,
    /// The metrics of all parts.
    pub metrics: AppMetrics,
    /// The level of acknowledgement of requests that do not choose one.
    pub default_level: AckLevel,
    /// Whether level `object` can be kept.
    pub has_objects: bool,
    /// The host names that are served.
    pub hosts: Hosts,
    /// Users and certificates.
    pub guard: Arc<Guard>,
    /// The default limits of what users write.
    pub quotas: Arc<Quotas>,
    /// Prometheus's query API.
    pub query: Arc<QueryApi>,
}

impl Common {
    /// Refuses requests of web pages of other sites, and those without the credentials that are
    /// wanted. Returns who sent the request.
    ///
    /// # Errors
    /// Returns a 403 or a 401.
    pub async fn admit(&self, headers: &HeaderMap) -> Result<Caller, Refusal> {
        self.hosts.check(headers)?;
        self.guard.admit(headers).await
    }
}

// A derived implementation would require `S: Clone`.
impl<S> Clone for Handlers<S> {
    fn clone(&self) -> Self {
        Self {
            path: Arc::clone(&self.path),
            events: Arc::clone(&self.events),
            writers: Arc::clone(&self.writers),
            common: Arc::clone(&self.common),
        }
    }
}

impl<S> Handlers<S> {
    pub(super) fn budget(&self) -> &Budget {
        &self.path.budget
    }

    /// Returns the level of acknowledgement of a request, if writes are accepted and the level can
    /// be kept.
    pub(super) fn level(&self, headers: &HeaderMap) -> Result<AckLevel, Refusal> {
        let Common {
            status,
            default_level,
            has_objects,
            ..
        } = &*self.common;
        let level = ack_level(headers, *default_level)?;
        if let Some(reason) = status.objects.backlog_refusal() {
            return Err(Refusal::Busy(reason));
        }
        if level == AckLevel::Object && !has_objects {
            return Err(Refusal::BadRequest(NO_LOG.to_owned()));
        }
        if level == AckLevel::Replica && status.lacks_standbys() {
            // Not 400: the sender would drop data because of something that an operator can repair.
            return Err(Refusal::Busy(NO_STANDBYS.to_owned()));
        }
        Ok(level)
    }

    /// Returns the limits of a caller, if it has any and may send now.
    ///
    /// # Errors
    /// Returns a 429 if it may not.
    pub(super) fn quota(&self, caller: &Caller) -> Result<Option<Quota>, Refusal> {
        let quotas = &self.common.quotas;
        let quota = caller
            .as_ref()
            .and_then(|user| quotas.of(&user.name, &user.limits));
        if let Some(quota) = &quota {
            quota.check()?;
        }
        Ok(quota)
    }

    /// Reads a body. Its request is expected to hold `times` the bytes of the body.
    pub(super) async fn read<B>(
        &self,
        body: B,
        times: usize,
    ) -> Result<(Bytes, Reservation), Refusal>
    where
        B: HttpBody<Data = Bytes, Error: Display> + Unpin,
    {
        let limits = BodyLimits {
            bytes_max: self.path.limits.body_bytes_max,
            time_max: self.path.limits.body_timeout,
            times,
        };
        Ok(body::read(body, limits, self.budget()).await?)
    }
}

impl<S: Sink> Handlers<S> {
    /// Stores a request with events of a caller. `started` is the time at which its head arrived.
    ///
    /// # Errors
    /// Returns the answer that replaces a 204.
    pub async fn write_events<B>(
        &self,
        caller: &Caller,
        table: &str,
        headers: &HeaderMap,
        body: B,
        started: Instant,
    ) -> Result<(), Refusal>
    where
        B: HttpBody<Data = Bytes, Error: Display> + Unpin,
    {
        let format = Format::of(headers).map_err(Refusal::UnsupportedMedia)?;
        let level = self.level(headers)?;
        let key = events::write::key(headers)?;
        if caller.is_some() {
            let name = self.events.quoted_name(table);
            Box::pin(self.writers.check(caller, &name)).await?;
        }
        let quota = self.quota(caller)?;
        let (body, reservation) = self.read(body, format.times_body()).await?;
        let request = EventRequest {
            table,
            format,
            body,
            key,
            reservation,
            level,
            quota,
            started,
        };
        self.events.receive(request).await
    }
}

fn ack_level(headers: &HeaderMap, default: AckLevel) -> Result<AckLevel, Refusal> {
    match headers.get(ACK_HEADER) {
        None => Ok(default),
        Some(value) => {
            let text = value
                .to_str()
                .map_err(|_| Refusal::BadRequest("header X-Lanes-Ack is not text".to_owned()))?;
            text.trim().parse().map_err(Refusal::BadRequest)
        }
    }
}
