//! The routes, at a glance.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};

use crate::batch::Budget;
use crate::clock;
use crate::deliver::AckLevel;
use crate::deliver::connection::NO_STANDBYS;
use crate::error::Refusal;
use crate::observe::{Metrics, Status};
use crate::receive::body::{self, BodyError};
use crate::receive::write::ROUTE;
use crate::receive::{WritePath, media_type};

/// The header by which a request chooses its level of acknowledgement.
pub const ACK_HEADER: &str = "x-lanes-ack";

/// What handlers share.
#[derive(Clone)]
pub struct Handlers {
    /// Where write requests go.
    pub path: Arc<WritePath>,
    /// Readiness and rates.
    pub status: Arc<Status>,
    /// The level of requests that choose none.
    pub default_level: AckLevel,
}

impl Handlers {
    fn metrics(&self) -> &Metrics {
        &self.path.metrics
    }

    fn budget(&self) -> &Budget {
        &self.path.budget
    }
}

/// All routes.
pub fn router(handlers: Handlers) -> Router {
    Router::new()
        .route(ROUTE, post(write))
        .route("/api/v1/status", get(status))
        .route("/metrics", get(metrics))
        .route("/-/healthy", get(async || "healthy\n"))
        .route("/-/ready", get(ready))
        .fallback(async || (StatusCode::NOT_FOUND, "no such route\n"))
        .layer(from_fn_with_state(handlers.clone(), observe))
        .with_state(handlers)
}

async fn write(
    State(handlers): State<Handlers>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Refusal> {
    let started = clock::now();
    media_type::check(&headers).map_err(Refusal::UnsupportedMedia)?;
    let level = ack_level(&headers, handlers.default_level)?;
    if level == AckLevel::Replica && handlers.status.lacks_standbys() {
        // Not 400: the sender would drop its data for what an operator can mend.
        return Err(Refusal::Busy(NO_STANDBYS.to_owned()));
    }
    let limits = &handlers.path.limits;
    let (bytes, reservation) = body::read(
        body,
        limits.body_bytes_max,
        limits.body_timeout,
        handlers.budget(),
    )
    .await
    .map_err(refusal_of_body)?;
    handlers
        .path
        .receive(bytes, reservation, level, started)
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

async fn status(State(handlers): State<Handlers>) -> Json<serde_json::Value> {
    let pending_bytes = handlers.budget().pending_bytes();
    Json(handlers.status.json(
        handlers.metrics(),
        handlers.path.cache.entries(),
        pending_bytes,
    ))
}

async fn metrics(State(handlers): State<Handlers>) -> Response {
    (
        [(CONTENT_TYPE, prometheus::TEXT_FORMAT)],
        handlers.metrics().text(),
    )
        .into_response()
}

async fn ready(State(handlers): State<Handlers>) -> Response {
    if handlers.status.is_ready() {
        "ready\n".into_response()
    } else {
        Refusal::Busy(
            "not ready: PostgreSQL does not take batches, or the gateway is stopping".to_owned(),
        )
        .into_response()
    }
}

/// Counts and times every request.
async fn observe(
    State(handlers): State<Handlers>,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let started = clock::now();
    let response = next.run(request).await;
    // Never the path as sent: its values have no bound.
    let route = route.as_ref().map_or("other", MatchedPath::as_str);
    let status = response.status();
    handlers
        .metrics()
        .requests
        .with_label_values(&[route, status.as_str()])
        .inc();
    let seconds = (clock::now() - started).as_secs_f64();
    handlers
        .metrics()
        .request_seconds
        .with_label_values(&[route])
        .observe(seconds);
    response
}
