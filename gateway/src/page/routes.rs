//! `/`, `/token` and `/page/{file}`.

use axum::Router;
use axum::extract::Path;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

use super::files::{self, INDEX};

/// What the page may do: load from the gateway, and nothing else. Scripts in its HTML do not run, no
/// text becomes markup, and no other site may show the page in a frame.
pub const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'";

/// The headers of every file, besides its type and its tag. Browsers ask each time whether a file
/// has changed, so that a new gateway never runs half of an old page.
const HEADERS: [(HeaderName, &str); 5] = [
    (CACHE_CONTROL, "no-cache"),
    (CONTENT_SECURITY_POLICY, POLICY),
    (REFERRER_POLICY, "no-referrer"),
    (VARY, "Accept"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

/// The routes that need no credentials: files that are the same for everyone. At `/token` the page
/// itself asks for a token, which browsers do not ask for.
pub const PUBLIC: [&str; 2] = ["/page/{file}", "/token"];

/// Returns the router of the page. `listing` is the answer to requests for `/` that do not ask for
/// HTML.
pub fn router<S: Clone + Send + Sync + 'static>(listing: &'static str) -> Router<S> {
    let root = async move |headers: HeaderMap| match asks_for_html(&headers) {
        true => serve(INDEX, &headers),
        false => ([(VARY, "Accept")], listing).into_response(),
    };
    let file = async |Path(name): Path<String>, headers: HeaderMap| serve(&name, &headers);
    Router::new()
        .route("/", get(root))
        .route(
            "/token",
            get(async |headers: HeaderMap| serve(INDEX, &headers)),
        )
        .route("/page/{file}", get(file))
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
}

/// Whether the client is a browser that opens a page. Others accept anything, or JSON.
fn asks_for_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

fn serve(name: &str, headers: &HeaderMap) -> Response {
    let Some((file, tag)) = files::named(name) else {
        return (StatusCode::NOT_FOUND, "the page has no such file\n").into_response();
    };
    let known = headers.get(IF_NONE_MATCH).map(|tags| tags.as_bytes());
    let is_known = known.is_some_and(|tags| has_tag(tags, tag.as_bytes()));
    let tagged = [(ETAG, tag)];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, HEADERS, tagged).into_response(),
        false => {
            let media_type = [(CONTENT_TYPE, file.media_type)];
            (HEADERS, tagged, media_type, file.content).into_response()
        }
    }
}

/// Whether a list of tags contains one.
fn has_tag(list: &[u8], tag: &[u8]) -> bool {
    let tags = list.split(|byte| *byte == b',');
    tags.map(<[u8]>::trim_ascii).any(|one| one == tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::Request;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    async fn ask(path: &str, headers: &[(HeaderName, &str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        let router: Router<()> = router("the routes\n");
        let response = router.with_state(()).oneshot(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        (head.status, head.headers, body)
    }

    const BROWSER: (HeaderName, &str) = (ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8");

    #[tokio::test]
    async fn browsers_get_the_page_and_others_the_routes() {
        let (status, headers, body) = ask("/", &[BROWSER]).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
        assert!(body.starts_with(b"<!doctype html>"));
        for accept in [&[][..], &[(ACCEPT, "*/*")], &[(ACCEPT, "application/json")]] {
            let (status, headers, body) = ask("/", accept).await;
            assert_eq!(status, StatusCode::OK);
            assert_eq!(headers[CONTENT_TYPE], "text/plain; charset=utf-8");
            assert_eq!(headers[VARY], "Accept");
            assert_eq!(body, b"the routes\n");
        }
    }

    #[tokio::test]
    async fn the_page_that_asks_for_a_token_is_the_page() {
        let (status, headers, body) = ask("/token", &[]).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(headers[CONTENT_SECURITY_POLICY], POLICY);
        assert_eq!(body, files::named(INDEX).unwrap().0.content);
    }

    #[tokio::test]
    async fn every_file_is_served_with_its_type_and_the_policy() {
        for file in files::FILES {
            let (status, headers, body) = ask(&format!("/page/{}", file.name), &[]).await;
            assert_eq!(status, StatusCode::OK, "{}", file.name);
            assert_eq!(headers[CONTENT_TYPE], file.media_type, "{}", file.name);
            assert_eq!(headers[CONTENT_SECURITY_POLICY], POLICY);
            assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
            assert_eq!(headers[CACHE_CONTROL], "no-cache");
            assert_eq!(body, file.content, "{}", file.name);
        }
        assert!(POLICY.starts_with("default-src 'self';") && !POLICY.contains("unsafe"));
        for path in ["/page/", "/page/nothing.js", "/page/..%2Fsrc%2Flib.rs"] {
            assert_eq!(ask(path, &[]).await.0, StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[tokio::test]
    async fn a_known_file_is_not_sent_again() {
        let (_, headers, _) = ask("/page/main.js", &[]).await;
        let tag = headers[ETAG].to_str().unwrap();
        let (status, headers, body) = ask("/page/main.js", &[(IF_NONE_MATCH, tag)]).await;
        assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0));
        assert_eq!(headers[ETAG], tag);
        let several = format!("\"a\", {tag}");
        let (status, _, _) = ask("/page/main.js", &[(IF_NONE_MATCH, &several)]).await;
        assert_eq!(status, StatusCode::NOT_MODIFIED);
        let (status, _, _) = ask("/page/api.js", &[(IF_NONE_MATCH, tag)]).await;
        assert_eq!(status, StatusCode::OK);
    }
}
