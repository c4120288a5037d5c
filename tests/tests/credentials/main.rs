//! Credentials, TLS and roles of the gateway, with a real PostgreSQL behind it.
//!
//! | module | contents |
//! |---|---|
//! | [`client`] | requests over TLS, with the head and body that a test wants |
//! | [`files`] | certificates, and the file of users |
//! | [`database`] | TLS from the gateway to PostgreSQL |
//! | [`entry`] | who is let in on which route; users and certificates that change; the log |
//! | [`limits`] | limits of users: 429, series that are refused, and what is stored all the same |
//! | [`roles`] | GRANT and row-level security in PromQL and for writes |

mod client;
mod database;
mod entry;
mod files;
mod limits;
mod roles;

use client::{Answer, Client};
use files::{Authority, write_users};
use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::provision::{DATABASE, Passwords, provision};
use lanes_support::remote_write::{Series, body};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A timeout that suffices on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time of all samples, in seconds since 1970.
const AT: i64 = 1_700_000_000;

/// The roles of the users, and what they may do. `lanes_reader` logs in for queries, so it may
/// become each of the others that read.
const ROLES: &str = "\
CREATE ROLE alice; CREATE ROLE bob; CREATE ROLE writer; CREATE ROLE carol;
GRANT alice, bob TO lanes_reader;
SELECT lanes.grant_reader('alice'); SELECT lanes.grant_reader('bob');
SELECT lanes.grant_reader('carol');
GRANT USAGE ON SCHEMA lanes TO writer; GRANT INSERT ON lanes.samples TO writer;";

/// A cluster, and a gateway with TLS and users on it.
struct Stage {
    gateway: Gateway,
    cluster: Cluster,
    authority: Authority,
    folder: PathBuf,
}

impl Stage {
    fn start(name: &str) -> Stage {
        let cluster = Cluster::builder(name).start().unwrap();
        let passwords = Passwords::generate();
        provision(&cluster, &passwords).unwrap();
        let folder = cluster.folder().join("web");
        std::fs::create_dir_all(&folder).unwrap();
        let authority = Authority::new();
        authority.write_server(&folder);
        write_users(&folder, &[]);
        let file = folder.join("web.yml");
        let settings = Settings::for_test("gateway", &cluster, &passwords)
            .unwrap()
            .environment("LANES_GATEWAY_SELF_SCRAPE_INTERVAL", "0")
            .environment("LANES_GATEWAY_LISTEN_WEB_CONFIG", file.to_str().unwrap())
            // One session, so that users follow each other in it.
            .environment("LANES_GATEWAY_QUERY_SESSIONS", "1")
            .environment("LANES_GATEWAY_QUERY_ADMIN_API", "true")
            .environment("LANES_GATEWAY_LOG_LEVEL", "debug");
        let mut gateway = Gateway::new(settings);
        gateway.start_again().unwrap();
        let stage = Stage {
            gateway,
            cluster,
            authority,
            folder,
        };
        until("the gateway is ready", || {
            let answer = stage.client().try_send("GET", "/-/ready", &[], b"");
            answer.is_ok_and(|answer| answer.status == 200)
        });
        stage.sql(ROLES);
        stage
    }

    fn client(&self) -> Client {
        Client::new(self.gateway.port(), &self.authority)
    }

    fn sql(&self, text: &str) {
        let mut client = self.cluster.connect(DATABASE).unwrap();
        client.batch_execute(text).unwrap();
    }

    /// Sends `GET path` as a user.
    fn get(&self, who: &str, path: &str) -> Answer {
        let headers = [("authorization", who)];
        self.client().send("GET", path, &headers, b"")
    }

    /// Sends samples as a user.
    fn write(&self, who: &str, series: &[Series]) -> Answer {
        let headers = [
            ("authorization", who),
            ("content-type", "application/x-protobuf"),
            ("content-encoding", "snappy"),
        ];
        let body = body(series);
        self.client().send("POST", "/api/v1/write", &headers, &body)
    }

    /// Sends one event as a user.
    fn event(&self, who: &str, table: &str) -> Answer {
        let headers = [("authorization", who), ("content-type", "application/json")];
        let path = format!("/api/v1/events/{table}");
        self.client().send("POST", &path, &headers, b"[{\"n\": 1}]")
    }

    fn metric(&self, who: &str, name: &str) -> f64 {
        let text = self.get(who, "/metrics").body;
        let found = text.lines().find_map(|line| {
            let value = line.strip_prefix("lanes_gateway_")?.strip_prefix(name)?;
            value.strip_prefix(' ')?.parse().ok()
        });
        found.unwrap_or(0.0)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.gateway.log()).unwrap()
    }
}

/// One sample of each of these series of `up`, by job.
fn up(jobs: &[&str]) -> Vec<Series> {
    let series = jobs.iter();
    let series = series.map(|job| Series::new("up", &[("job", job)], vec![(AT * 1000, 1.0)]));
    series.collect()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
