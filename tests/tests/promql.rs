//! PromQL returns the same wherever the samples are: in open rows, sealed, in object storage, and on
//! a standby; on one thread and on two. A query on two threads ends whenever it is told to.

use std::time::{Duration, Instant};

use lanes_support::cluster::{Cluster, Stop};
use lanes_support::objects::{Objects, Supplier};
use postgres::Client;
use postgres::error::SqlState;

/// The answers of these queries are the texts of their rows, in a fixed order.
const QUERIES: [&str; 5] = [
    "SELECT concat_ws(' ', labels, ts, value) FROM lanes.promql('m{code=\"3\"}', '2020-01-01 01:00Z') AS a",
    "SELECT concat_ws(' ', labels, ts, value)
       FROM lanes.promql_range('sum by (code) (rate(m[5m]))', '2020-01-01 00:10Z', '2020-01-01 01:30Z', '7 min') AS a",
    "SELECT concat_ws(' ', labels, ts, value)
       FROM lanes.promql_range('max_over_time(m{host=\"h17\"}[90s])', '2020-01-01 00:00Z', '2020-01-01 01:40Z', '1 min') AS a",
    "SELECT concat_ws(' ', labels, ts, value) FROM lanes.promql('m{host=\"h3\",code=\"1\"}[1h]', '2020-01-01 01:10Z') AS a",
    "SELECT concat_ws(' ', labels, ts, value) FROM lanes.promql('count(m)', '2020-01-01 01:23:45Z') AS a",
];

const SERIES: &str = "SELECT lanes.register_series(2147483647, ARRAY[ROW('m', (
    SELECT array_agg(format('{\"code\":\"%s\",\"host\":\"h%s\"}', i % 5, i / 5) ORDER BY i)
      FROM generate_series(0, 499) AS i))::lanes.series_run])";
/// Every 13th sample is late: it is stored after those of the next ten minutes.
const SAMPLES: &str = "INSERT INTO lanes.samples
    SELECT timestamptz '2020-01-01' + i * interval '15 s', s, (i * s) % 1013 + i
      FROM generate_series(0, 399) AS i, generate_series(1, 500) AS s
     ORDER BY i + CASE WHEN (i + s) % 13 = 0 THEN 40 ELSE 0 END, s";

fn answers(cluster: &Cluster) -> Vec<Vec<String>> {
    answers_of(&mut cluster.connect("postgres").unwrap())
}

fn answers_of(client: &mut Client) -> Vec<Vec<String>> {
    QUERIES
        .iter()
        .map(|query| {
            let rows = client.query(*query, &[]).unwrap();
            let mut texts: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            texts.sort();
            texts
        })
        .collect()
}

/// The words of an explanation of a query that reads the samples of one host.
fn explanation(client: &mut Client) -> String {
    let rows = client.query(
        "SELECT lanes.promql_explain('m{host=\"h17\"}[5m]', '2020-01-01 01:00Z')",
        &[],
    );
    let rows = rows.unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    lines.join("\n")
}

/// A counter of an explanation.
fn counter(text: &str, name: &str) -> u64 {
    let start = format!(" {name}=");
    let (_, after) = text.split_once(&start).unwrap_or_default();
    let digits = after.split(|letter: char| !letter.is_ascii_digit()).next();
    digits.unwrap_or_default().parse().unwrap_or(0)
}

#[test]
fn answers_do_not_depend_on_where_samples_are() {
    let mut cluster = Cluster::builder("promql")
        .setting("autovacuum", "off")
        .setting("lanes.seal_naptime", "0")
        .start()
        .unwrap();
    for statement in ["CREATE EXTENSION lanes", SERIES, SAMPLES] {
        cluster.psql("postgres", statement).unwrap();
    }
    let expected = answers(&cluster);
    let rows: Vec<usize> = expected.iter().map(Vec::len).collect();
    assert_eq!(rows, [100, 60, 505, 240, 1]);

    let mut client = cluster.connect("postgres").unwrap();
    client.batch_execute("SELECT lanes.index_labels()").unwrap();
    assert_eq!(answers(&cluster), expected, "with a label index");
    let mut standby = cluster.standby("promql_standby").unwrap();
    standby.wait_replayed(&cluster).unwrap();
    assert_eq!(answers(&standby), expected, "on a standby");

    // One transaction stored all samples, and half of them again.
    client
        .batch_execute(
            "INSERT INTO lanes.samples SELECT * FROM lanes.samples WHERE series % 2 = 0;
             SELECT lanes.seal('lanes.samples')",
        )
        .unwrap();
    assert_eq!(answers(&cluster), expected, "sealed");
    // The search by series finds the vectors of one host.
    let text = explanation(&mut client);
    assert!(text.contains("series=5 samples=100 "), "{text}");
    let [read, skipped] = ["vectors", "vectors_skipped"].map(|name| counter(&text, name));
    assert!(read > 0 && 4 * read < skipped, "{text}");
    // Half of the samples are stored twice. A row has 20 bytes; some rows beside those of the host are read.
    let bytes = counter(&text, "bytes");
    assert!((20 * 100..=20 * 2048 * read).contains(&bytes), "{text}");
    assert_eq!(bytes % 20, 0, "{text}");
    standby.wait_replayed(&cluster).unwrap();
    assert_eq!(answers(&standby), expected, "sealed, on a standby");
    drop(standby);

    let objects = Objects::default();
    client
        .batch_execute("ALTER TABLE lanes.samples SET (hot = '1 day')")
        .unwrap();
    assert!(objects.offload(&mut client).unwrap() > 0);
    // The arena contains what was read before; a crash empties it.
    drop(client);
    cluster.stop(Stop::Immediate).unwrap();
    cluster.start().unwrap();
    let supplier = Supplier::start(&cluster, "postgres", &objects);
    assert_eq!(answers(&cluster), expected, "in object storage");
    assert!(supplier.supplied() > 0);
}

/// It reads enough samples for two threads, and would evaluate them for hours.
const LONG: &str = "SELECT count(*) FROM lanes.promql_range('quantile_over_time(0.5, m[1h:1s])',
    '2020-01-01 00:10Z', '2020-01-01 01:30Z', '1 s')";

/// It removes the label in which the series of one code differ.
const SAME_LABELS: &str =
    "SELECT lanes.promql_range('label_replace(m, \"host\", \"\", \"host\", \".*\")',
    '2020-01-01 00:10Z', '2020-01-01 01:30Z', '1 min')";

/// The process of a session.
fn backend(client: &mut Client) -> i32 {
    let row = client.query_one("SELECT pg_backend_pid()", &[]).unwrap();
    row.get(0)
}

/// The number of threads of a process.
fn threads_of(process: i32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/task"))
        .unwrap()
        .count()
}

/// Waits until a process has this many threads. The kernel lists a thread for a moment after it has been joined.
fn wait_for_threads(process: i32, count: usize) {
    let started = Instant::now();
    while threads_of(process) != count {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{} threads instead of {count}",
            threads_of(process)
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn queries_on_two_threads_answer_as_on_one_and_end_when_told_to() {
    let cluster = Cluster::builder("promql_threads").start().unwrap();
    for statement in ["CREATE EXTENSION lanes", SERIES, SAMPLES] {
        cluster.psql("postgres", statement).unwrap();
    }
    let mut client = cluster.connect("postgres").unwrap();
    let process = backend(&mut client);
    let on_two = answers_of(&mut client);
    client
        .batch_execute("SET lanes.promql_overlap = off")
        .unwrap();
    assert_eq!(answers_of(&mut client), on_two);
    client.batch_execute("RESET lanes.promql_overlap").unwrap();

    // A timeout ends the second thread, and the session goes on.
    client.batch_execute("SET statement_timeout = 500").unwrap();
    let error = client.query(LONG, &[]).unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{error:?}");
    client.batch_execute("RESET statement_timeout").unwrap();
    wait_for_threads(process, 1);
    assert_eq!(answers_of(&mut client), on_two);

    // An error of the evaluation, and one of the reading.
    let error = client.query(SAME_LABELS, &[]).unwrap_err();
    let message = error.as_db_error().unwrap().message();
    assert!(message.contains("same labelset"), "{message}");
    client
        .batch_execute("SET lanes.promql_max_series = 499")
        .unwrap();
    let error = client.query(QUERIES[1], &[]).unwrap_err();
    assert_eq!(
        error.code(),
        Some(&SqlState::PROGRAM_LIMIT_EXCEEDED),
        "{error:?}"
    );
    client
        .batch_execute("RESET lanes.promql_max_series")
        .unwrap();
    wait_for_threads(process, 1);

    // The end of the session ends both threads; others are not disturbed.
    let evaluation = std::thread::spawn(move || client.query(LONG, &[]).unwrap_err());
    let mut other = cluster.connect("postgres").unwrap();
    wait_for_threads(process, 2);
    other
        .execute("SELECT pg_terminate_backend($1)", &[&process])
        .unwrap();
    let error = evaluation.join().unwrap();
    assert_eq!(error.code(), Some(&SqlState::ADMIN_SHUTDOWN), "{error:?}");
    assert_eq!(answers_of(&mut other), on_two);
}
