//! The routes, at a glance.

use std::fmt::Display;
use std::sync::Arc;

use axum::extract::{MatchedPath, Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use hyper::body::Body as HttpBody;

use crate::batch::{Budget, Reservation};
use crate::clock::{self, Instant};
use crate::deliver::call_error::NO_STANDBYS;
use crate::deliver::{AckLevel, NO_LOG, Sink};
use crate::error::Refusal;
use crate::events::format::Format;
use crate::events::write::EventRequest;
use crate::events::{self, EventPath};
use crate::hosts::Hosts;
use crate::objects::ObjectState;
use crate::observe::{Metrics, Status};
use crate::receive::body::{self, BodyError, BodyLimits};
use crate::receive::write::{ROUTE, TIMES_BODY};
use crate::receive::{WritePath, media_type};

/// The header by which a request chooses its level of acknowledgement.
pub const ACK_HEADER: &str = "x-lanes-ack";

/// What people read who do not know the routes.
const ROUTES: &str = "lanes-gateway has these routes:
  POST /api/v1/write           Prometheus remote write 1.0
  POST /api/v1/events/{table}  rows as JSON, Arrow or FlatBuffers
  GET  /api/v1/status          rates and totals as JSON
  GET  /metrics                metrics for Prometheus
  GET  /-/healthy, /-/ready    whether it runs, and whether it takes writes
";

/// What handlers share.
pub struct Handlers<S> {
    /// Where write requests go.
    pub path: Arc<WritePath>,
    /// Where events go.
    pub events: Arc<EventPath<S>>,
    /// Readiness and rates.
    pub status: Arc<Status>,
    /// The level of requests that choose none.
    pub default_level: AckLevel,
    /// Whether level `object` can be kept.
    pub has_objects: bool,
    /// Names under which it is asked.
    pub hosts: Arc<Hosts>,
}

// Derived, it would ask for sinks to be cloned.
impl<S> Clone for Handlers<S> {
    fn clone(&self) -> Self {
        Self {
            path: Arc::clone(&self.path),
            events: Arc::clone(&self.events),
            status: Arc::clone(&self.status),
            default_level: self.default_level,
            has_objects: self.has_objects,
            hosts: Arc::clone(&self.hosts),
        }
    }
}

impl<S> Handlers<S> {
    /// Counters.
    pub fn metrics(&self) -> &Metrics {
        &self.path.metrics
    }

    fn budget(&self) -> &Budget {
        &self.path.budget
    }

    /// The level that a request asks for, if it can be kept at all, and if writes are taken.
    fn level(&self, headers: &HeaderMap) -> Result<AckLevel, Refusal> {
        let level = ack_level(headers, self.default_level)?;
        if let Some(reason) = self.status.backlog_refusal() {
            return Err(Refusal::Busy(reason));
        }
        if level == AckLevel::Object && !self.has_objects {
            return Err(Refusal::BadRequest(NO_LOG.to_owned()));
        }
        if level == AckLevel::Replica && self.status.lacks_standbys() {
            // Not 400: the sender would drop its data for what an operator can mend.
            return Err(Refusal::Busy(NO_STANDBYS.to_owned()));
        }
        Ok(level)
    }

    /// A body; each of its bytes is expected to take `times` as many.
    async fn read<B>(&self, body: B, times: usize) -> Result<(Bytes, Reservation), Refusal>
    where
        B: HttpBody<Data = Bytes, Error: Display> + Unpin,
    {
        let limits = BodyLimits {
            bytes_max: self.path.limits.body_bytes_max,
            time_max: self.path.limits.body_timeout,
            times,
        };
        let read = body::read(body, limits, self.budget());
        read.await.map_err(refusal_of_body)
    }
}

impl<S: Sink> Handlers<S> {
    /// Stores a request with events; `started` is when its head came.
    ///
    /// # Errors
    /// The answer to give instead of 204.
    pub async fn write_events<B>(
        &self,
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
        let (body, reservation) = self.read(body, format.times_body()).await?;
        let request = EventRequest {
            table,
            format,
            body,
            key,
            reservation,
            level,
            started,
        };
        self.events.receive(request).await
    }
}

/// All routes.
pub fn router<S: Sink>(handlers: Handlers<S>) -> Router {
    Router::new()
        .route(ROUTE, post(write::<S>))
        .route(events::write::ROUTE, post(write_events::<S>))
        .route("/api/v1/status", get(status::<S>))
        .route("/metrics", get(metrics::<S>))
        .route("/-/healthy", get(async || "healthy\n"))
        .route("/-/ready", get(ready::<S>))
        .route("/", get(async || ROUTES))
        .fallback(async || (StatusCode::NOT_FOUND, format!("no such route; {ROUTES}")))
        .method_not_allowed_fallback(async || {
            let told = format!("this route takes another method; {ROUTES}");
            (StatusCode::METHOD_NOT_ALLOWED, told)
        })
        .layer(from_fn_with_state(handlers.clone(), observe::<S>))
        .with_state(handlers)
}

async fn write<S: Sink>(
    State(handlers): State<Handlers<S>>,
    request: Request,
) -> Result<StatusCode, Refusal> {
    let started = clock::now();
    // The whole request: extracted for themselves, the headers would be cloned.
    let (Parts { headers, .. }, body) = request.into_parts();
    media_type::check(&headers).map_err(Refusal::UnsupportedMedia)?;
    let level = handlers.level(&headers)?;
    let (bytes, reservation) = handlers.read(body, TIMES_BODY).await?;
    handlers
        .path
        .receive(bytes, reservation, level, started)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn write_events<S: Sink>(
    State(handlers): State<Handlers<S>>,
    Path(table): Path<String>,
    request: Request,
) -> Result<StatusCode, Refusal> {
    let started = clock::now();
    let (Parts { headers, .. }, body) = request.into_parts();
    handlers
        .write_events(&table, &headers, body, started)
        .await?;
    Ok(StatusCode::NO_CONTENT)
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

fn refusal_of_body(error: BodyError) -> Refusal {
    match error {
        BodyError::TooLong { .. } => Refusal::BadRequest(error.to_string()),
        // A broken body is the network's fault: the sender may repeat it.
        BodyError::TooSlow(_) | BodyError::Overloaded(_) | BodyError::Broken(_) => {
            Refusal::Busy(error.to_string())
        }
    }
}

async fn status<S: Sink>(State(handlers): State<Handlers<S>>) -> Json<serde_json::Value> {
    let pending_bytes = handlers.budget().pending_bytes();
    Json(handlers.status.json(
        handlers.metrics(),
        handlers.path.cache.entries(),
        pending_bytes,
    ))
}

async fn metrics<S: Sink>(State(handlers): State<Handlers<S>>) -> Response {
    (
        [(CONTENT_TYPE, prometheus::TEXT_FORMAT)],
        handlers.metrics().text(),
    )
        .into_response()
}

async fn ready<S: Sink>(State(handlers): State<Handlers<S>>) -> Response {
    if handlers.status.is_ready() {
        readiness(&handlers.status, handlers.metrics()).into_response()
    } else {
        Refusal::Busy(
            "not ready: PostgreSQL does not take batches, or the gateway is stopping".to_owned(),
        )
        .into_response()
    }
}

/// The body of `/-/ready` while the gateway takes requests: `ready`, then a line for each thing to know.
fn readiness(status: &Status, metrics: &Metrics) -> String {
    let mut lines = vec!["ready".to_owned()];
    let state = status.objects();
    if state != ObjectState::Off {
        lines.push(format!(
            "objects: {}, {}",
            state.name(),
            state.explanation()
        ));
    }
    if let Some(reason) = status.backlog_refusal() {
        lines.push(format!("writes are refused: {reason}"));
    }
    if metrics.postgres_disk_full.get() != 0 {
        lines.push("writes are refused: PostgreSQL's disk is full".to_owned());
    }
    let missing = metrics.postgres_standbys_missing.get();
    if missing > 0 {
        lines.push(format!(
            "acknowledgement level \"replica\" waits: synchronous standbys are missing: {missing}"
        ));
    }
    lines.join("\n") + "\n"
}

/// Counts and times every request, and refuses what comes from web pages of others.
async fn observe<S: Sink>(
    State(handlers): State<Handlers<S>>,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let started = clock::now();
    let response = match handlers.hosts.check(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    // Never the path as sent: its values have no bound.
    let route = route.as_ref().map_or("other", MatchedPath::as_str);
    let seconds = (clock::now() - started).as_secs_f64();
    handlers
        .metrics()
        .request_ended(route, response.status(), seconds);
    response
}
