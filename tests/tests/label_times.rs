//! Labels and series between two times: the same as a search of all samples, wherever these are. In
//! object storage it is segments that count, and nothing is fetched.

use lanes_support::cluster::{Cluster, Stop};
use lanes_support::objects::Objects;
use postgres::Client;

const SERIES: &str = "SELECT lanes.register_series(2147483647, ARRAY[ROW('m', (
    SELECT array_agg(format('{\"host\":\"h%s\",\"of_%s\":\"x\"}', i, i % 10) ORDER BY i)
      FROM generate_series(0, 199) AS i))::lanes.series_run])";
/// A series lives for ten minutes, in an order that is not that of the ids. One of ten comes back after an hour.
const SAMPLES: &str = "INSERT INTO lanes.samples
    SELECT timestamptz '2020-01-01' + begin + i * interval '15 s', s, 1
      FROM generate_series(1, 200) AS s, generate_series(0, 39) AS i,
           LATERAL (VALUES (s * 37 % 200 * interval '30 s')
                    UNION ALL SELECT interval '1 hour' + s * interval '30 s' WHERE s % 10 = 0) AS lives (begin)
     ORDER BY 1, 2";

/// Time ranges, both ends included. Some have no samples, one has a single moment, one is reversed.
const TIMES: &str = "(VALUES
    (timestamptz '-infinity', timestamptz '2019-12-31 23:59:59.999Z'), ('2020-01-01 00:00Z', '2020-01-01 00:00Z'),
    ('2020-01-01 00:00:00.001Z', '2020-01-01 00:00:14Z'), ('2020-01-01 00:20Z', '2020-01-01 00:21Z'),
    ('2020-01-01 00:45Z', '2020-01-01 00:50Z'), ('2020-01-01 00:50Z', '2020-01-01 00:45Z'), ('2020-01-01 02:00Z', '2020-01-01 02:05Z'),
    ('2020-01-01 02:49:45Z', '2020-01-01 02:49:45Z'), ('2020-01-01 02:49:46Z', 'infinity'),
    ('2020-01-01 02:00Z', 'infinity'), ('-infinity', 'infinity')) AS t (first, last)";

/// The answers of the index beside those of a search, for each time range.
fn answers(client: &mut Client) -> Vec<(String, String)> {
    let columns = [
        (
            "SELECT lanes.series_ids('m', t.first, t.last)::text",
            "SELECT s.id::text FROM seen AS s",
        ),
        (
            "SELECT lanes.series_ids('{of_3=\"x\"}', t.first, t.last)::text",
            "SELECT s.id::text FROM seen AS s WHERE s.labels ? 'of_3'",
        ),
        (
            "SELECT lanes.label_names(NULL, t.first, t.last)",
            "SELECT '__name__' FROM seen AS s UNION SELECT jsonb_object_keys(s.labels) FROM seen AS s",
        ),
        (
            "SELECT lanes.label_names('{host=~\"h1..\"}', t.first, t.last)",
            "SELECT '__name__' FROM seen AS s WHERE s.labels->>'host' ~ '^h1..$'
             UNION SELECT jsonb_object_keys(s.labels) FROM seen AS s WHERE s.labels->>'host' ~ '^h1..$'",
        ),
        (
            "SELECT lanes.label_values('host', NULL, t.first, t.last)",
            "SELECT s.labels->>'host' FROM seen AS s",
        ),
        (
            "SELECT lanes.label_values('host', '{of_3=\"x\"}', t.first, t.last)",
            "SELECT s.labels->>'host' FROM seen AS s WHERE s.labels ? 'of_3'",
        ),
    ];
    let mut answers = Vec::new();
    for (found, expected) in columns {
        let seen = "SELECT * FROM lanes.series WHERE t.first = '-infinity' AND t.last = 'infinity'
                        OR id IN (SELECT series FROM lanes.samples WHERE ts BETWEEN t.first AND t.last)";
        let query = format!(
            "SELECT (SELECT coalesce(string_agg(f, ' ' ORDER BY f), '') FROM ({found}) AS a (f)),
                    (WITH seen AS ({seen}) SELECT coalesce(string_agg(f, ' ' ORDER BY f), '') FROM ({expected}) AS a (f))
               FROM {TIMES}"
        );
        let rows = client.query(&query, &[]).unwrap();
        answers.extend(rows.iter().map(|row| (row.get(0), row.get(1))));
    }
    answers
}

fn check(client: &mut Client, samples: &str) {
    for (place, (found, expected)) in answers(client).into_iter().enumerate() {
        assert_eq!(found, expected, "{samples}, {place}");
    }
}

#[test]
fn labels_between_two_times_are_those_of_series_with_samples() {
    let mut cluster = Cluster::builder("label_times")
        .setting("autovacuum", "off")
        .setting("lanes.seal_naptime", "0")
        .setting("lanes.recall_timeout", "20ms")
        .start()
        .unwrap();
    for statement in ["CREATE EXTENSION lanes", SERIES, SAMPLES] {
        cluster.psql("postgres", statement).unwrap();
    }
    let mut client = cluster.connect("postgres").unwrap();
    check(&mut client, "open rows");
    client.batch_execute("SELECT lanes.index_labels()").unwrap();
    check(&mut client, "with a label index");
    rows_that_nobody_else_sees(&mut client);
    roles(&mut client);
    client
        .batch_execute("SELECT lanes.seal('lanes.samples')")
        .unwrap();
    check(&mut client, "sealed rows");
    let deletion = "DELETE FROM lanes.samples WHERE series < 20 OR ts BETWEEN '2020-01-01 00:46Z' AND '2020-01-01 00:55Z'";
    client.batch_execute(deletion).unwrap();
    check(&mut client, "deleted rows");
    let mut standby = cluster.standby("label_times_standby").unwrap();
    standby.wait_replayed(&cluster).unwrap();
    check(&mut standby.connect("postgres").unwrap(), "a standby");
    drop(standby);

    let all = answers(&mut client);
    let objects = Objects::default();
    client
        .batch_execute("ALTER TABLE lanes.samples SET (hot = '1 day')")
        .unwrap();
    assert!(objects.offload(&mut client).unwrap() > 0);
    // The arena contains what was read before; a crash empties it. Nobody supplies segments.
    drop(client);
    cluster.stop(Stop::Immediate).unwrap();
    cluster.start().unwrap();
    remote_rows(&mut cluster.connect("postgres").unwrap(), &all);
}

/// A segment in object storage counts as a whole, and is not fetched.
fn remote_rows(client: &mut Client, all: &[(String, String)]) {
    let ids = |from: &str, until: &str| {
        let row = client.query_one(
            &format!("SELECT count(*) FROM lanes.series_ids('m', '{from}', '{until}')"),
            &[],
        );
        row.unwrap().get::<_, i64>(0)
    };
    let mut ids = ids;
    assert_eq!(ids("-infinity", "2019-12-31 23:59:59Z"), 0);
    assert_eq!(ids("2020-01-01 02:49:46Z", "infinity"), 0);
    let some = ids("2020-01-01 00:45Z", "2020-01-01 00:50Z");
    let exact = all[4].1.split(' ').count() as i64;
    assert!(exact <= some && some <= 200, "{exact} {some}");
    // What is not fetched is left out where the session asks for it.
    client.batch_execute("SET lanes.recall = skip").unwrap();
    let mut ids = |from: &str, until: &str| {
        let query = format!("SELECT count(*) FROM lanes.series_ids('m', '{from}', '{until}')");
        client.query_one(&query, &[]).unwrap().get::<_, i64>(0)
    };
    assert_eq!(ids("2020-01-01 00:45Z", "2020-01-01 00:50Z"), 0);
}

/// Rows of the transaction itself count, those that are rolled back do not.
fn rows_that_nobody_else_sees(client: &mut Client) {
    let late = "INSERT INTO lanes.samples VALUES ('2020-01-01 02:49:46Z', 7, 1)";
    let found = "SELECT count(*) FROM lanes.series_ids('m', '2020-01-01 02:49:46Z')";
    client.batch_execute("BEGIN").unwrap();
    client.batch_execute(late).unwrap();
    check(client, "rows of this transaction");
    assert_eq!(client.query_one(found, &[]).unwrap().get::<_, i64>(0), 1);
    client.batch_execute("ROLLBACK").unwrap();
    assert_eq!(client.query_one(found, &[]).unwrap().get::<_, i64>(0), 0);
}

/// Row-level security of samples hides their series too. Who may not read samples learns nothing.
fn roles(client: &mut Client) {
    client
        .batch_execute(
            "BEGIN; CREATE ROLE reader; SELECT lanes.grant_reader('reader');
             ALTER TABLE lanes.samples ENABLE ROW LEVEL SECURITY;
             CREATE POLICY halves ON lanes.samples TO reader USING (series % 2 = 0); SET LOCAL ROLE reader",
        )
        .unwrap();
    check(client, "row-level security");
    client
        .batch_execute(
            "RESET ROLE; REVOKE SELECT ON lanes.samples FROM reader; SET LOCAL ROLE reader",
        )
        .unwrap();
    let found = "SELECT lanes.label_values('host', NULL, '2020-01-01', '2020-01-02')";
    let refused = client.query(found, &[]).unwrap_err();
    let code = refused.code().map(|code| code.code().to_owned());
    assert_eq!(code.as_deref(), Some("42501"), "{refused}");
    client.batch_execute("ROLLBACK").unwrap();
}
