//! The statements of README.md as a reader runs them: pasted one after another into one session of
//! the database that `make run` starts. Each works, and each query returns rows.

use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::provision::{DATABASE, OWNER, Passwords, provision};
use postgres::SimpleQueryMessage;
use std::time::{Duration, Instant};

const README: &str = include_str!("../../README.md");
/// The time until the gateway has stored its own metrics, which it does every second here.
const FIRST_SAMPLES_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the statements of all blocks of SQL, in order.
fn statements(text: &str) -> Vec<String> {
    let blocks = text.split("\n```sql\n").skip(1);
    let code: String = blocks
        .filter_map(|rest| rest.split_once("\n```").map(|(block, _)| block))
        .flat_map(str::lines)
        .map(|line| line.split("--").next().unwrap_or_default().trim_end())
        .flat_map(|line| [line, "\n"])
        .collect();
    code.split(';')
        .map(|statement| statement.trim().to_owned())
        .filter(|statement| !statement.is_empty())
        .collect()
}

#[test]
fn every_statement_works_when_pasted_in_order() {
    let cluster = Cluster::builder("readme").start().unwrap();
    let passwords = Passwords::generate();
    provision(&cluster, &passwords).unwrap();
    let settings = Settings::for_test("gateway", &cluster, &passwords).unwrap();
    // As under `make run`, the gateway continuously waits for requests of segments.
    let objects = settings.folder.join("objects");
    let settings = settings
        .environment("LANES_GATEWAY_SELF_SCRAPE_INTERVAL", "1s")
        .environment("LANES_GATEWAY_OBJECTS_URL", objects.to_str().unwrap());
    let mut gateway = Gateway::start(settings).unwrap();
    // The connection is that of `make psql`.
    let mut client = cluster
        .connect_as(OWNER, &passwords.owner, DATABASE)
        .unwrap();
    let deadline = Instant::now() + FIRST_SAMPLES_TIMEOUT;
    while client.batch_execute("SELECT FROM metrics.up").is_err() {
        assert!(Instant::now() < deadline, "the gateway stores nothing");
        std::thread::sleep(Duration::from_millis(100));
    }
    let statements = statements(README);
    assert!(statements.len() > 20, "{statements:#?}");
    for statement in statements {
        let messages = client
            .simple_query(&statement)
            .unwrap_or_else(|error| panic!("{statement}\n{error:?}"));
        let is_row = |message: &SimpleQueryMessage| matches!(message, SimpleQueryMessage::Row(_));
        assert!(
            !statement.starts_with("SELECT") || messages.iter().any(is_row),
            "no rows: {statement}"
        );
    }
    gateway.stop().unwrap();
}
