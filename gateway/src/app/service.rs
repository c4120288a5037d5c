//! What a connection calls for a request. Events go straight to their handler, all other requests
//! to the router.
//!
//! At ten thousand requests with events a second, layers and extractors would cost as much as
//! verifying and joining the events. This module therefore recognises the route of events by its
//! bytes. The router has the route too, and serves its unusual requests: other methods, and names
//! that are percent-encoded.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse;
use futures_util::future::Either;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::service::{HttpService, service_fn};
use hyper::{Method, Request, Response, StatusCode, Uri};
use tower::ServiceExt;

use super::handlers::Handlers;
use super::router::router;
use crate::deliver::Sink;
use crate::http::server::Answer;
use crate::http::unread::{Rests, Unread};
use crate::{clock, events};

/// Returns the service of one worker. Each connection has a clone.
pub fn service<S: Sink>(
    handlers: Handlers<S>,
) -> impl HttpService<Incoming, ResBody = Answer, Error = Infallible, Future: Send + 'static>
+ Clone
+ Send
+ 'static {
    let (handlers, router) = (Arc::new(handlers.clone()), router(handlers));
    let rests = Rests::new(handlers.path.limits.body_bytes_max);
    service_fn(move |request: Request<Incoming>| {
        // If the request is refused, its client still receives the answer.
        let request = request.map(|body| Unread::new(body, &rests));
        match table_of(request.method(), request.uri()) {
            Some(_) => Either::Left(store(Arc::clone(&handlers), request)),
            None => Either::Right(route(router.clone(), request)),
        }
    })
}

/// Returns the table that a request with events names without percent-encoding.
fn table_of<'a>(method: &Method, uri: &'a Uri) -> Option<&'a str> {
    if method != Method::POST {
        return None;
    }
    let table = uri.path().strip_prefix(events::write::PATH)?;
    // Like the router, accept one non-empty segment. Only the router decodes percent-encoding.
    let is_plain = !table.is_empty() && !table.bytes().any(|byte| matches!(byte, b'/' | b'%'));
    is_plain.then_some(table)
}

async fn route(
    router: Router,
    request: Request<Unread<Incoming>>,
) -> Result<Response<Answer>, Infallible> {
    let answer = router.oneshot(request.map(Body::new)).await?;
    Ok(answer.map(Answer::Right))
}

/// Stores a request with events and counts it, as the router and its layers do.
async fn store<S: Sink>(
    handlers: Arc<Handlers<S>>,
    request: Request<Unread<Incoming>>,
) -> Result<Response<Answer>, Infallible> {
    let started = clock::now();
    let (head, body) = request.into_parts();
    let table = table_of(&head.method, &head.uri).unwrap_or_default();
    let stored = match handlers.common.admit(&head.headers).await {
        Ok(caller) => {
            handlers
                .write_events(&caller, table, &head.headers, body, started)
                .await
        }
        Err(refusal) => Err(refusal),
    };
    let answer = match stored {
        Ok(()) => {
            let mut answer = Response::new(Answer::Left(Empty::new()));
            *answer.status_mut() = StatusCode::NO_CONTENT;
            answer
        }
        Err(refusal) => refusal.into_response().map(Answer::Right),
    };
    let seconds = (clock::now() - started).as_secs_f64();
    handlers
        .common
        .metrics
        .http
        .request_ended(events::write::ROUTE, answer.status(), seconds);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusual_requests_are_left_to_the_router() {
        let table = |method: &str, path: &'static str| {
            let uri = Uri::from_static(path);
            table_of(&method.parse().unwrap(), &uri).map(str::to_owned)
        };
        for path in [
            "/api/v1/events/t",
            "/api/v1/events/t?a=b/c",
            "http://host/api/v1/events/t",
        ] {
            assert_eq!(table("POST", path).as_deref(), Some("t"), "{path}");
        }
        for (method, path) in [
            ("GET", "/api/v1/events/t"),
            ("POST", "/api/v1/events/"),
            ("POST", "/api/v1/events"),
            ("POST", "/api/v1/events/t/"),
            ("POST", "/api/v1/events/a/b"),
            ("POST", "/api/v1/events/%74"),
            ("POST", "/api/v1/write"),
            ("POST", "*"),
        ] {
            assert_eq!(table(method, path), None, "{method} {path}");
        }
    }
}
