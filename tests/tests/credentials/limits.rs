//! Limits of users: 429, series that are refused, and what is stored all the same.

use crate::files::{CAROL, basic, feed, write_users};
use crate::{AT, Stage, until, up};
use lanes_support::remote_write::Series;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Gives `feed` limits, beside the users of every test.
fn limit(stage: &Stage, limits: &str) {
    write_users(&stage.folder, &[]);
    let file = stage.folder.join("web.yml");
    let mut file = std::fs::OpenOptions::new().append(true).open(file).unwrap();
    writeln!(file, "write_limits:\n  feed: {limits}").unwrap();
}

/// Waits in the last minute of a day (UTC), because series are counted by day.
fn not_at_midnight() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let left = 86_400 - now.as_secs() % 86_400;
    if left <= 60 {
        std::thread::sleep(Duration::from_secs(left));
    }
}

/// The rows of `lanes.samples`, and the names of views of metrics.
fn stored(stage: &Stage) -> (String, String) {
    let scalar = |sql: &str| stage.cluster.scalar("lanes", sql).unwrap();
    let views = "SELECT coalesce(string_agg(viewname, ',' ORDER BY viewname), '') FROM pg_views WHERE schemaname = 'metrics'";
    (scalar("SELECT count(*) FROM lanes.samples"), scalar(views))
}

#[test]
fn series_beyond_a_limit_are_refused_and_the_rest_is_stored() {
    not_at_midnight();
    let stage = Stage::start("credentials_series");
    assert_eq!(stage.write(&feed(), &up(&["a", "b"])).status, 204);
    limit(&stage, "{series_max: 3, metric_names_max: 1}");
    until("the limits hold", || {
        stage.write(&feed(), &up(&["a", "b"]));
        stage.metric(&feed(), "user_series{user=\"feed\"}") == 2.0
    });
    assert_eq!(stage.write(&feed(), &up(&["c"])).status, 204);
    let mut series = up(&["a", "c", "d"]);
    series.push(Series::new("other", &[], vec![(AT * 1000, 1.0)]));
    let before = stored(&stage);
    let refused = stage.write(&feed(), &series);
    assert_eq!(refused.status, 400, "{}", refused.body);
    let expected = "refused 2 series, 2 samples, stored 2 samples; first reason: user \"feed\" has written 3 series today";
    assert!(refused.body.contains(expected), "{}", refused.body);
    let (rows, views) = stored(&stage);
    assert_eq!(views, "up", "no view of the other metric");
    let number = |rows: &str| rows.parse::<usize>().unwrap();
    assert_eq!(number(&rows), number(&before.0) + 2);
    let counted = r#"user_series_refused_total{limit="series_max",user="feed"}"#;
    assert_eq!(stage.metric(&feed(), counted), 2.0);
}

#[test]
fn more_samples_than_the_rate_are_answered_with_429() {
    let stage = Stage::start("credentials_rate");
    stage.sql(
        "CREATE TABLE t (n int8) USING lanes; GRANT INSERT ON t TO writer, carol, lanes_gateway",
    );
    limit(&stage, "{samples_per_second: 1}");
    // Far more than a minute's worth, so that the next request has to wait for long.
    let many: Vec<(i64, f64)> = (0..10_000).map(|at| (AT * 1000 + at, 1.0)).collect();
    let body = [Series::new("up", &[], many)];
    until("the limit holds", || {
        stage.write(&feed(), &body).status == 429
    });
    let before = stored(&stage);
    for answer in [stage.write(&feed(), &up(&["a"])), stage.event(&feed(), "t")] {
        assert_eq!(answer.status, 429, "{}", answer.body);
        let wait = answer.head.to_lowercase();
        let wait = wait
            .lines()
            .find_map(|line| line.strip_prefix("retry-after: "));
        let seconds: u64 = wait.unwrap().parse().unwrap();
        assert!((9000..10_000).contains(&seconds), "{seconds}");
        assert!(
            answer.body.contains("may write 1 samples a second"),
            "{}",
            answer.body
        );
    }
    assert_eq!(stored(&stage), before, "nothing is stored");
    let carol = basic("carol", CAROL.0);
    let other = stage.event(&carol, "t");
    assert_eq!(other.status, 204, "{}", other.body);
}
