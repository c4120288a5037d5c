//! PromQL returns the same wherever the samples are: in open rows, sealed, in object storage, and on
//! a standby.

use lanes_support::cluster::{Cluster, Stop};
use lanes_support::objects::{Objects, Supplier};
use postgres::Client;

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
    let mut client = cluster.connect("postgres").unwrap();
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
