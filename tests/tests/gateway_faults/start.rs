//! The start of a gateway with many registered series. Whatever happened to the stored hashes, each
//! label set remains one series.

use lanes_support::gateway::Gateway;
use lanes_support::provision::DATABASE;
use lanes_support::remote_write::{Series, body};

use super::{cluster, settings};

const NOW_MS: i64 = 1_767_225_600_000;

/// Returns a request with a sample of each of these series.
fn request(numbers: impl IntoIterator<Item = i64>) -> Vec<u8> {
    let series: Vec<Series> = numbers
        .into_iter()
        .map(|number| {
            let instance = format!("é-{number}");
            Series::new(
                "start",
                &[("instance", &instance)],
                vec![(NOW_MS, number as f64)],
            )
        })
        .collect();
    body(&series)
}

#[test]
fn outdated_emptied_or_damaged_hashes_duplicate_no_series() {
    let (cluster, passwords) = cluster("start");
    let run = |sql: &str| cluster.psql(DATABASE, sql).unwrap();
    let mut gateway = Gateway::start(settings("gateway", &cluster, &passwords)).unwrap();
    let write = |gateway: &Gateway, numbers: Vec<i64>| {
        let answer = gateway.remote_write(&request(numbers), None).unwrap();
        assert_eq!(answer.status, 204, "{}", answer.body);
    };
    write(&gateway, (1..=10_000).collect());
    run("SELECT lanes.index_labels()");
    let mut series = 10_000;
    // The change to the hashes, the number of earlier series, and the number of label sets that the
    // gateway reads.
    for (what, later, read) in [
        ("SELECT", 0, 0),
        ("SELECT", 1500, 1501),
        ("TRUNCATE lanes.label_runs, lanes.label_blocks", 0, 1502),
        ("SELECT lanes.index_labels()", 0, 0),
        ("TRUNCATE lanes.series_hashes", 0, 11_504),
        ("SELECT lanes.index_labels()", 0, 0),
        (
            "UPDATE lanes.series_hashes SET hashes = set_byte(hashes, 99, 255 - get_byte(hashes, 99))",
            0,
            11_506,
        ),
        ("SELECT lanes.forget_label_index()", 0, 11_507),
        ("SELECT lanes.index_labels()", 0, 0),
        (
            "UPDATE lanes.series_hashes SET seed = seed + 1 WHERE last_id > 9000",
            0,
            3317,
        ),
    ] {
        write(&gateway, (series + 1..=series + later).collect());
        series += later;
        run(what);
        gateway.kill9().unwrap();
        gateway.start_again().unwrap();
        gateway.wait_ready().unwrap();
        write(&gateway, vec![1, 5000, 9999, 10_000, series, series + 1]);
        series += 1;
        let found =
            "SELECT count(*) || ' ' || count(DISTINCT labels) || ' ' || max(id) FROM lanes.series";
        assert_eq!(
            cluster.scalar(DATABASE, found).unwrap(),
            format!("{series} {series} {series}"),
            "{what}"
        );
        let log = std::fs::read_to_string(gateway.log()).unwrap();
        let (_, told) = log.rsplit_once("by_label_sets=").unwrap();
        let digits: String = told.chars().take_while(char::is_ascii_digit).collect();
        assert_eq!(digits.parse(), Ok(read), "{what}");
    }
}
