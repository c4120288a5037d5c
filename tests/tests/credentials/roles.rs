//! GRANT and row-level security in PromQL and for writes.

use crate::files::{ALICE, BOB, CAROL, basic, feed};
use crate::{AT, Stage, until, up};
use std::io::Write;

/// The jobs that a user sees, or the status and body of the refusal.
fn jobs(stage: &Stage, who: &str) -> Result<Vec<String>, (u16, String)> {
    let answer = stage.get(who, &format!("/api/v1/query?query=up&time={AT}"));
    if answer.status != 200 {
        return Err((answer.status, answer.body));
    }
    let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    let result = body["data"]["result"].as_array().unwrap();
    let job = |series: &serde_json::Value| series["metric"]["job"].as_str().unwrap().to_owned();
    let mut jobs: Vec<String> = result.iter().map(job).collect();
    jobs.sort();
    Ok(jobs)
}

#[test]
fn a_query_reads_as_the_role_of_its_user() {
    let stage = Stage::start("credentials_reading");
    let stored = stage.write(&feed(), &up(&["a", "b"]));
    assert_eq!(stored.status, 204, "{}", stored.body);
    let (alice, bob) = (basic("alice", ALICE.0), basic("bob", BOB.0));
    for who in [&alice, &bob] {
        assert_eq!(jobs(&stage, who).unwrap(), ["a", "b"]);
    }
    // Alice sees the series of job a, Bob those of job b. The gateway writes all the same.
    stage.sql(
        "ALTER ROLE lanes_gateway BYPASSRLS; ALTER TABLE lanes.samples ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY of_alice ON lanes.samples FOR SELECT TO alice USING (series = (SELECT min(s.id) FROM lanes.series AS s WHERE s.labels->>'job' = 'a')); \
         CREATE POLICY of_bob ON lanes.samples FOR SELECT TO bob USING (series = (SELECT min(s.id) FROM lanes.series AS s WHERE s.labels->>'job' = 'b'));",
    );
    // All of this runs in one session, whose role changes with each request.
    for _ in 0..5 {
        assert_eq!(jobs(&stage, &alice).unwrap(), ["a"]);
        assert_eq!(jobs(&stage, &bob).unwrap(), ["b"]);
    }
    let federated = stage.get(&bob, "/federate?match[]=up");
    assert!(!federated.body.contains("job=\"a\""), "{}", federated.body);
    read_and_delete(&stage, &alice, &bob);
    refusals(&stage, &alice);
    idle(&stage);
}

/// Remote read and deletions run as the role of the user too.
fn read_and_delete(stage: &Stage, alice: &str, bob: &str) {
    // All series of `up` until 2100, as a stream of frames.
    let request =
        b"\x1cl\x0a\x17\x10\x80\xb0\x8f\xe6\xb2w\x1a\x0e\x12\x08__name__\x1a\x02up\x12\x01\x01";
    let post = |who: &str, path: &str, body: &[u8]| {
        let headers = [("authorization", who)];
        stage.client().send("POST", path, &headers, body)
    };
    let frames = post(bob, "/api/v1/read", request);
    assert_eq!(frames.status, 200, "{}", frames.body);
    let job = |name: &str| frames.body.contains(&format!("\x03job\x12\x01{name}"));
    assert!(job("b") && !job("a"), "{}", frames.body);

    let path = "/api/v1/admin/tsdb/delete_series?match[]=up";
    let denied = post(alice, path, b"");
    assert_eq!(denied.status, 403, "{}", denied.body);
    let remedy = "to let \\\"alice\\\" delete";
    assert!(denied.body.contains(remedy), "{}", denied.body);
    // Bob deletes what his policy shows him.
    stage.sql(
        "GRANT DELETE ON lanes.samples TO bob; CREATE POLICY by_bob ON lanes.samples FOR DELETE TO bob USING (true)",
    );
    assert_eq!(post(bob, path, b"").status, 204);
    assert!(jobs(stage, bob).unwrap().is_empty());
    assert_eq!(jobs(stage, alice).unwrap(), ["a"]);
}

fn refusals(stage: &Stage, alice: &str) {
    // carol may read, but lanes_reader may not become carol.
    let (status, body) = jobs(stage, &basic("carol", CAROL.0)).unwrap_err();
    assert_eq!(status, 403, "{body}");
    assert!(body.contains("permission denied to set role"), "{body}");
    assert!(
        body.contains("GRANT it to the role of query.connection"),
        "{body}"
    );
    // The role of feed may be taken, and may not read.
    stage.sql("GRANT writer TO lanes_reader");
    let (status, body) = jobs(stage, &feed()).unwrap_err();
    assert_eq!(status, 403, "{body}");
    assert!(body.contains("lanes.grant_reader"), "{body}");
    // The session did not keep a role that could not be taken, nor that of another.
    assert_eq!(jobs(stage, alice).unwrap(), ["a"]);
    stage.sql("DROP OWNED BY carol; DROP ROLE carol");
    let (status, body) = jobs(stage, &basic("carol", CAROL.0)).unwrap_err();
    assert_eq!(status, 403, "{body}");
    assert!(body.contains("does not exist"), "{body}");
    stage.sql("REVOKE SELECT ON lanes.samples FROM alice");
    let (status, body) = jobs(stage, alice).unwrap_err();
    assert_eq!(status, 403, "{body}");
    let syntax = stage.get(alice, "/api/v1/query?query=up%7B");
    assert_eq!(syntax.status, 400, "{}", syntax.body);
    stage.sql("GRANT SELECT ON lanes.samples TO alice");
    assert_eq!(jobs(stage, alice).unwrap(), ["a"]);
    // Policies of series hide their labels too.
    let values = "/api/v1/label/job/values";
    assert!(stage.get(alice, values).body.contains(r#"["a","b"]"#));
    stage.sql(
        "ALTER TABLE lanes.series_runs ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY of_alice ON lanes.series_runs FOR SELECT TO alice USING (metric LIKE 'shop\\_%')",
    );
    let hidden = stage.get(alice, values).body;
    assert_eq!(hidden, r#"{"status":"success","data":[]}"#);
    assert!(jobs(stage, alice).unwrap().is_empty());
}

/// The states of the sessions that read.
fn states(stage: &Stage) -> Vec<String> {
    let states =
        "SELECT state FROM pg_stat_activity WHERE application_name = 'lanes-gateway query'";
    let rows = stage.cluster.query("postgres", states).unwrap();
    rows.into_iter().flatten().flatten().collect()
}

/// After its query, a session has no transaction and no role.
fn idle(stage: &Stage) {
    until("the session is idle", || states(stage) == ["idle"]);
    assert_eq!(
        stage.metric(&basic("bob", BOB.0), "query_sessions_in_use"),
        0.0
    );
}

#[test]
fn a_client_that_goes_away_leaves_no_role_behind() {
    let stage = Stage::start("credentials_cancelled");
    assert_eq!(stage.write(&feed(), &up(&["a"])).status, 204);
    let mut locked = stage.cluster.connect("lanes").unwrap();
    let lock = "BEGIN; LOCK TABLE lanes.samples IN ACCESS EXCLUSIVE MODE";
    locked.batch_execute(lock).unwrap();
    let alice = basic("alice", ALICE.0);
    let mut asking = stage.client().connect().unwrap();
    let line = format!("GET /api/v1/query?query=up&time={AT} HTTP/1.1");
    write!(
        asking,
        "{line}\r\nhost: localhost\r\nauthorization: {alice}\r\n\r\n"
    )
    .unwrap();
    until("the query runs", || states(&stage) == ["active"]);
    drop(asking);
    until("it is cancelled", || states(&stage) == ["idle"]);
    drop(locked);
    // The session whose query was cancelled serves the next user, under that user's role.
    assert_eq!(jobs(&stage, &basic("bob", BOB.0)).unwrap(), ["a"]);
    idle(&stage);
}

#[test]
fn a_user_writes_where_its_role_may_insert() {
    let stage = Stage::start("credentials_writing");
    let alice = basic("alice", ALICE.0);
    let refused = stage.write(&alice, &up(&["a"]));
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(
        refused
            .body
            .contains("\"alice\" may not insert into lanes.samples"),
        "{}",
        refused.body
    );
    assert_eq!(stage.write(&feed(), &up(&["b"])).status, 204);

    stage.sql(
        "CREATE TABLE public.t (n int8) USING lanes; CREATE TABLE public.columns (n int8, m int8) USING lanes; \
         CREATE TABLE public.\"Odd \"\"name\" (n int8) USING lanes; GRANT INSERT ON ALL TABLES IN SCHEMA public TO lanes_gateway; \
         GRANT INSERT ON public.t, public.\"Odd \"\"name\" TO alice; GRANT INSERT (n) ON public.columns TO alice; \
         CREATE SCHEMA hidden; CREATE TABLE hidden.t (n int8) USING lanes; GRANT USAGE ON SCHEMA hidden TO lanes_gateway; \
         GRANT INSERT ON hidden.t TO alice, lanes_gateway",
    );
    for (who, table, status) in [
        (&alice, "t", 204),
        (&alice, "public.t", 204),
        (&alice, "public.Odd%20%22name", 204),
        // A privilege on a column is none on the table, and one on a table none without its schema.
        (&alice, "columns", 403),
        (&alice, "hidden.t", 403),
        (&alice, "missing", 404),
        (&alice, "lanes.samples", 403),
        (&feed(), "t", 403),
        (&basic("alice", "wrong"), "t", 401),
    ] {
        let answer = stage.event(who, table);
        assert_eq!(answer.status, status, "{table}: {}", answer.body);
    }
    let rows = "SELECT count(*) FROM public.t";
    assert_eq!(stage.cluster.scalar("lanes", rows).unwrap(), "2");

    stage.sql("GRANT USAGE ON SCHEMA lanes TO alice; GRANT INSERT ON lanes.samples TO alice; REVOKE INSERT ON public.t FROM alice");
    until("the GRANT is seen", || {
        stage.write(&alice, &up(&["a"])).status == 204
    });
    until("the REVOKE is seen", || {
        stage.event(&alice, "t").status == 403
    });
    let forbidden = stage.metric(&alice, "http_writes_forbidden_total");
    assert!(forbidden >= 4.0, "{forbidden}");
}
