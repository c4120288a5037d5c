//! All routes of the gateway.

use std::sync::Arc;

use axum::extract::{MatchedPath, Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{Extensions, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};

use super::handlers::Handlers;
use crate::access::{Caller, User};
use crate::deliver::{DeliverMetrics, Sink};
use crate::http::Refusal;
use crate::objects::model::ObjectState;
use crate::observe::{self, Status};
use crate::receive::media_type;
use crate::receive::write::{ROUTE, TIMES_BODY};
use crate::{clock, events, page, query};

/// The answer to requests for `/` that do not ask for HTML, and for unknown routes.
const ROUTES: &str = "lanes-gateway has these routes:
  GET  /                       in a browser: a page for queries, metrics and status; at /token with a token
  POST /api/v1/write           Prometheus remote write 1.0
  POST /api/v1/events/{table}  rows as JSON, Arrow or FlatBuffers
  GET  /api/v1/query           PromQL at one time; also query_range, and POST
  GET  /api/v1/labels          names of labels; also series, label/{name}/values, metadata
  GET  /api/v1/format_query    a query in canonical form; also parse_query, query_exemplars
  GET  /api/v1/status/tsdb     cardinality; also buildinfo, runtimeinfo, flags, config
  GET  /api/v1/status/storage  the arena, and segments by state
  POST /api/v1/read            Prometheus remote read 1.0
  POST /api/v1/admin/tsdb/...  delete_series, if query.admin_api is true
  GET  /federate               latest samples of series, for Prometheus to scrape
  GET  /api/v1/rules           nothing; also alerts, alertmanagers, targets, targets/metadata
  GET  /api/v1/status          rates and totals as JSON
  GET  /metrics                metrics for Prometheus
  GET  /-/healthy, /-/ready    whether the gateway runs, and whether it accepts writes
";

/// The probes, which need no credentials.
const PROBES: [&str; 2] = ["/-/healthy", "/-/ready"];

/// Returns the router of all routes.
pub fn router<S: Sink>(handlers: Handlers<S>) -> Router {
    Router::new()
        .route(ROUTE, post(write::<S>))
        .route(events::write::ROUTE, post(write_events::<S>))
        .route("/api/v1/status", get(status::<S>))
        .route("/metrics", get(metrics::<S>))
        .route(PROBES[0], get(async || "healthy\n"))
        .route(PROBES[1], get(ready::<S>))
        .merge(page::routes::router(ROUTES))
        .merge(query::routes::router(handlers.common.query.clone()))
        .fallback(async || (StatusCode::NOT_FOUND, format!("no such route; {ROUTES}")))
        .method_not_allowed_fallback(async || {
            let message = format!("this route takes another method; {ROUTES}");
            (StatusCode::METHOD_NOT_ALLOWED, message)
        })
        .layer(from_fn_with_state(handlers.clone(), observe::<S>))
        .with_state(handlers)
}

async fn write<S: Sink>(
    State(handlers): State<Handlers<S>>,
    request: Request,
) -> Result<StatusCode, Refusal> {
    let started = clock::now();
    // An extractor of headers would clone them, so the handler takes the whole request.
    let (head, body) = request.into_parts();
    let Parts {
        headers,
        extensions,
        ..
    } = head;
    media_type::check(&headers).map_err(Refusal::UnsupportedMedia)?;
    let level = handlers.level(&headers)?;
    let samples = &handlers.events.settings.samples_table;
    let caller = caller(&extensions);
    handlers.writers.check(&caller, samples).await?;
    let quota = handlers.quota(&caller)?;
    let (bytes, reservation) = handlers.read(body, TIMES_BODY).await?;
    handlers
        .path
        .receive(bytes, reservation, level, quota, started)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn write_events<S: Sink>(
    State(handlers): State<Handlers<S>>,
    Path(table): Path<String>,
    request: Request,
) -> Result<StatusCode, Refusal> {
    let started = clock::now();
    let (head, body) = request.into_parts();
    handlers
        .write_events(
            &caller(&head.extensions),
            &table,
            &head.headers,
            body,
            started,
        )
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn status<S: Sink>(State(handlers): State<Handlers<S>>) -> Json<serde_json::Value> {
    let metrics = &handlers.common.metrics;
    let sources = observe::status::Sources {
        http: &metrics.http,
        deliver: &metrics.deliver,
        objects: &metrics.objects,
        series_cached: handlers.path.cache.entries(),
        pending_bytes: handlers.budget().pending_bytes(),
    };
    Json(handlers.common.status.json(&sources))
}

async fn metrics<S: Sink>(State(handlers): State<Handlers<S>>) -> Response {
    (
        [(CONTENT_TYPE, prometheus::TEXT_FORMAT)],
        handlers.common.metrics.families.text(),
    )
        .into_response()
}

async fn ready<S: Sink>(State(handlers): State<Handlers<S>>) -> Response {
    let status = &handlers.common.status;
    if status.is_ready() {
        readiness(status, &handlers.common.metrics.deliver).into_response()
    } else {
        Refusal::Busy(
            "not ready: PostgreSQL does not accept batches, or the gateway is stopping".to_owned(),
        )
        .into_response()
    }
}

/// The body of `/-/ready` while the gateway accepts requests: `ready`, then a line for each
/// condition that an operator should know.
fn readiness(status: &Status, metrics: &DeliverMetrics) -> String {
    let mut lines = vec!["ready".to_owned()];
    let state = status.objects.state();
    if state != ObjectState::Off {
        lines.push(format!(
            "objects: {}, {}",
            state.name(),
            state.explanation()
        ));
    }
    if let Some(reason) = status.objects.backlog_refusal() {
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

/// Returns who sent the request, as [`observe()`] found out.
fn caller(extensions: &Extensions) -> Caller {
    extensions.get::<Arc<User>>().cloned()
}

/// Counts and times every request, and refuses those of other sites' web pages and those without
/// credentials. Probes and the files of the page need none.
async fn observe<S: Sink>(
    State(handlers): State<Handlers<S>>,
    route: Option<MatchedPath>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = clock::now();
    let common = &handlers.common;
    let is_public = route.as_ref().is_some_and(|route| {
        let route = route.as_str();
        PROBES.contains(&route) || page::routes::PUBLIC.contains(&route)
    });
    let admitted = match is_public {
        true => common.hosts.check(request.headers()).map(|()| None),
        false => common.admit(request.headers()).await,
    };
    let response = match admitted {
        Ok(caller) => {
            if let Some(user) = caller {
                request.extensions_mut().insert(user);
            }
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    // The path as sent is not used: the number of its values is unbounded.
    let route = route.as_ref().map_or("other", MatchedPath::as_str);
    let seconds = (clock::now() - started).as_secs_f64();
    common
        .metrics
        .http
        .request_ended(route, response.status(), seconds);
    response
}
