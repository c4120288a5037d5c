//! Limits of users, with a database in memory and a clock that stands still.

mod support;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use support::{Memory, body, series, start_on, table};
use tower::ServiceExt;

/// The tokens `token` of `feed`, and `other` of `free`, which has no limit of samples.
const USERS: &str = "\
bearer_tokens:
  feed: 3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0
  free: d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa
";

/// A gateway with users, on a database with the table `public.t` that both may write to.
struct Stage {
    router: Router,
    database: Arc<Memory>,
    file: PathBuf,
}

/// A status, its `Retry-After`, and the body.
type Answer = (u16, Option<String>, String);

impl Stage {
    fn start(name: &str, limits: &str, flags: &[&str]) -> Stage {
        let name = format!("lanes-limits-{name}-{}.yml", std::process::id());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, format!("{USERS}{limits}")).unwrap();
        let database = Arc::new(Memory::default());
        let table = table(7, "public.t");
        database.tables.lock().insert(table.name.clone(), table);
        for user in ["feed", "free"] {
            for table in ["lanes.samples", "public.t"] {
                let grant = (user.to_owned(), table.to_owned());
                database.grants.lock().insert(grant);
            }
        }
        let mut all = vec!["--listen-web-config", file.to_str().unwrap()];
        all.extend(flags);
        let router = start_on(&all, &database).router();
        Stage {
            router,
            database,
            file,
        }
    }

    async fn send(&self, method: &str, path: &str, kind: &str, token: &str, body: Body) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .header("authorization", format!("Bearer {token}"))
            .body(body)
            .unwrap();
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let retry = answer.headers().get("retry-after");
        let retry = retry.map(|value| value.to_str().unwrap().to_owned());
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, retry, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Sends a sample of each of these series, by metric and label.
    async fn write(&self, token: &str, names: &[(&str, &str)]) -> Answer {
        let series: Vec<Vec<u8>> = names
            .iter()
            .map(|(metric, label)| {
                let labels = [("__name__", *metric), ("a", *label)];
                series(&labels, &[(1.0, 1_700_000_000_000)])
            })
            .collect();
        let kind = "application/x-protobuf";
        let body = body(&series).into();
        self.send("POST", "/api/v1/write", kind, token, body).await
    }

    async fn events(&self, token: &str, rows: usize) -> Answer {
        let body = format!("[{}]", vec!["{\"n\":1}"; rows].join(","));
        let path = "/api/v1/events/t";
        self.send("POST", path, "application/json", token, body.into())
            .await
    }

    /// The metrics of limits, without those of the process.
    async fn metrics(&self) -> Vec<String> {
        let (_, _, text) = self
            .send("GET", "/metrics", "text/plain", "token", Body::empty())
            .await;
        let lines = text
            .lines()
            .filter_map(|line| line.strip_prefix("lanes_gateway_user_"));
        lines.map(str::to_owned).collect()
    }

    /// The series of the last stored samples.
    fn last_stored(&self, number: usize) -> Vec<String> {
        let samples = self.database.samples.lock();
        let last = samples.iter().rev().take(number).rev();
        last.map(|(name, ..)| name.clone()).collect()
    }

    fn stored(&self) -> usize {
        self.database.samples.lock().len()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

#[tokio::test(start_paused = true)]
async fn more_samples_than_the_rate_are_answered_with_429_and_not_stored() {
    let stage = Stage::start(
        "samples",
        "write_limits: {free: {samples_per_second: 0}}",
        &["--users-samples-per-second", "1"],
    );
    let many: Vec<(&str, &str)> = vec![("up", "x"); 59];
    assert_eq!(stage.write("token", &many).await.0, 204);
    // The last token admits events of any number.
    assert_eq!(stage.events("token", 40).await.0, 204);
    let (status, retry, text) = stage.write("token", &[("up", "y")]).await;
    assert_eq!((status, retry.as_deref()), (429, Some("40")), "{text}");
    assert!(
        text.contains("user \"feed\" may write 1 samples a second"),
        "{text}"
    );
    let (status, retry, _) = stage.events("token", 1).await;
    assert_eq!((status, retry.as_deref()), (429, Some("40")));
    // A body that never arrives is not waited for.
    let endless = futures_util::stream::pending::<Result<bytes::Bytes, std::io::Error>>();
    let kind = "application/x-protobuf";
    let unread = stage.send(
        "POST",
        "/api/v1/write",
        kind,
        "token",
        Body::from_stream(endless),
    );
    assert_eq!(unread.await.0, 429);
    assert_eq!(
        (stage.stored(), stage.database.events.lock().len()),
        (59, 1)
    );

    for _ in 0..3 {
        assert_eq!(stage.write("other", &many).await.0, 204, "no limit");
    }
    tokio::time::advance(Duration::from_secs(40)).await;
    assert_eq!(stage.write("token", &[("up", "y")]).await.0, 204);
    assert_eq!(stage.write("token", &[("up", "y")]).await.0, 429);
}

#[tokio::test(start_paused = true)]
async fn series_beyond_a_limit_are_refused_and_the_rest_is_stored() {
    // Series are counted by day, so this does not begin in the last seconds of one (UTC).
    let left_ms = 86_400_000 - lanes_gateway::clock::unix_ms() % 86_400_000;
    if left_ms < 10_000 {
        std::thread::sleep(Duration::from_millis(left_ms as u64));
    }
    let stage = Stage::start(
        "series",
        "write_limits: {feed: {series_max: 3, metric_names_max: 2}}",
        &[],
    );
    assert_eq!(stage.write("token", &[("a", "1"), ("b", "1")]).await.0, 204);
    let (status, _, text) = stage
        .write("token", &[("a", "1"), ("c", "1"), ("a", "2"), ("a", "3")])
        .await;
    assert_eq!(status, 400);
    let expected = "refused 2 series, 2 samples, stored 2 samples; first reason: user \"feed\" has written 2 metric names, and may add no more (metric_names_max)\n";
    assert_eq!(text, expected);
    assert_eq!(
        stage.database.series.lock().len(),
        3,
        "refused series are not registered"
    );
    assert_eq!(stage.stored(), 4);
    assert_eq!(
        stage.last_stored(2),
        ["a{\"a\":\"1\"}", "a{\"a\":\"2\"}"],
        "each with its own id"
    );
    let metrics = stage.metrics().await;
    for line in [
        "samples_refused_total{limit=\"metric_names_max\",user=\"feed\"} 1",
        "samples_refused_total{limit=\"series_max\",user=\"feed\"} 1",
        "series_refused_total{limit=\"metric_names_max\",user=\"feed\"} 1",
        "series_refused_total{limit=\"series_max\",user=\"feed\"} 1",
        "series{user=\"feed\"} 3",
        "metric_names{user=\"feed\"} 2",
    ] {
        assert!(
            metrics.iter().any(|known| known == line),
            "{line}: {metrics:#?}"
        );
    }
    // Registered series are stored, also those that another user has registered.
    assert_eq!(stage.write("other", &[("c", "1"), ("d", "1")]).await.0, 204);
    assert_eq!(
        stage
            .write("token", &[("c", "1"), ("a", "2"), ("d", "1")])
            .await
            .0,
        204
    );
    assert_eq!(
        stage.write("token", &[("e", "1")]).await.0,
        400,
        "nothing is left to store"
    );
    assert_eq!(stage.database.series.lock().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn new_series_have_a_rate_and_registered_ones_have_none() {
    let stage = Stage::start("new", "", &["--users-new-series-per-minute", "2"]);
    let all = [("a", "1"), ("a", "2"), ("a", "3")];
    let (status, _, text) = stage.write("token", &all).await;
    assert_eq!(status, 400);
    assert!(
        text.contains("user \"feed\" may add 2 series a minute"),
        "{text}"
    );
    assert_eq!(stage.write("token", &all[..2]).await.0, 204);
    assert_eq!(stage.write("token", &all).await.0, 400);
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(stage.write("token", &all).await.0, 204);
    // The third request repeats the first, whose accepted samples are stored once.
    assert_eq!(stage.stored(), 2 + 2 + 3);

    // A gateway that has just started knows no series, but the database does.
    let again = start_on(
        &[
            "--listen-web-config",
            stage.file.to_str().unwrap(),
            "--users-new-series-per-minute",
            "1",
        ],
        &stage.database,
    );
    let again = Stage {
        router: again.router(),
        database: Arc::clone(&stage.database),
        file: stage.file.clone(),
    };
    let body: [(&str, &str); 4] = [("a", "1"), ("a", "2"), ("a", "3"), ("a", "4")];
    assert_eq!(again.write("token", &body).await.0, 204);
}
