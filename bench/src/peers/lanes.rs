//! pg_lanes: the gateway with its PostgreSQL.

use super::http::now_milliseconds;
use super::system::System;
use crate::fleet::bodies::SampleTotals;
use crate::usage::Tree;
use lanes_support::cluster::{Cluster, Stop};
use lanes_support::error::{Error, Result};
use lanes_support::gateway::{self, Gateway};
use lanes_support::provision::{DATABASE, Passwords, READER, provision};
use lanes_support::remote_write::{Series, body};
use postgres::Client;
use std::time::Instant;

/// Settings for a server with one append-mostly table, as PostgreSQL's documentation recommends
/// them. The server waits for the disk as in production.
const POSTGRES_SETTINGS: [(&str, &str); 4] = [
    ("shared_buffers", "512MB"),
    ("max_wal_size", "2GB"),
    ("checkpoint_timeout", "15min"),
    ("lanes.arena_size", "2GB"),
];
/// No self-scraping, which VictoriaMetrics does not do by default either; labels in any order, as
/// vmagent sends them by default; a cache for the series of thousands of targets.
const GATEWAY_SETTINGS: [(&str, &str); 3] = [
    ("LANES_GATEWAY_SELF_SCRAPE_INTERVAL", "0"),
    ("LANES_GATEWAY_RECEIVE_LABEL_ORDER", "sort"),
    ("LANES_GATEWAY_SERIES_CACHE_BYTES_MAX", "2GiB"),
];

/// Settings in addition to the usual ones, which they override.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Lines of `postgresql.conf`, as name and value.
    pub postgres: Vec<(String, String)>,
    /// Environment variables of the gateway.
    pub gateway: Vec<(String, String)>,
}

impl Settings {
    /// Creates the settings from names and values.
    pub fn of(postgres: &[(&str, &str)], gateway: &[(&str, &str)]) -> Settings {
        let owned = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        Settings {
            postgres: owned(postgres),
            gateway: owned(gateway),
        }
    }

    /// Returns the usual settings with these applied.
    fn with_usual(&self) -> Settings {
        let both = |usual: &[(&str, &str)], ours: &[(String, String)]| {
            let kept = usual
                .iter()
                .filter(|(name, _)| ours.iter().all(|(set, _)| set != name))
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            kept.chain(ours.iter().cloned()).collect()
        };
        Settings {
            postgres: both(&POSTGRES_SETTINGS, &self.postgres),
            gateway: both(&GATEWAY_SETTINGS, &self.gateway),
        }
    }
}

/// A running gateway and its cluster.
#[derive(Debug)]
pub struct Lanes {
    name: String,
    /// The level of acknowledgement, `memory`, `wal` or `replica`.
    level: String,
    version: String,
    settings: Settings,
    /// The size of the empty database in bytes.
    empty_bytes: u64,
    passwords: Passwords,
    gateway: Gateway,
    cluster: Cluster,
}

impl Lanes {
    /// Starts a new cluster, and a gateway that acknowledges at this level.
    pub fn start(name: &str, level: &str) -> Result<Lanes> {
        Lanes::start_with(name, level, &Settings::default())
    }

    /// Starts a new cluster and a gateway with other settings.
    pub fn start_with(name: &str, level: &str, settings: &Settings) -> Result<Lanes> {
        let its = settings.with_usual();
        let mut builder = Cluster::builder("bench-remote-write").durable();
        for (setting, value) in &its.postgres {
            builder = builder.setting(setting, value);
        }
        let cluster = builder.start()?;
        let passwords = Passwords::generate();
        provision(&cluster, &passwords)?;
        let mut settings = gateway::Settings::for_test("gateway", &cluster, &passwords)?;
        for (variable, value) in &its.gateway {
            settings = settings.environment(variable, value);
        }
        // The default level, for senders that cannot send the gateway's header.
        let settings = settings.environment("LANES_GATEWAY_ACK_LEVEL", level);
        let version = cluster.scalar(DATABASE, "SELECT split_part(version(), ' on ', 1)")?;
        let mut lanes = Lanes {
            name: name.to_owned(),
            level: level.to_owned(),
            version,
            settings: its,
            empty_bytes: 0,
            passwords,
            gateway: Gateway::start(settings)?,
            cluster,
        };
        lanes.empty_bytes = lanes.number("SELECT pg_database_size(current_database())")?;
        Ok(lanes)
    }

    /// Returns the level of acknowledgement in the name of a pg_lanes system: `lanes, ack <level>`.
    pub fn level_of(name: &str) -> Option<&str> {
        name.strip_prefix("lanes, ack ")
    }

    /// Returns the address of the gateway.
    pub fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.gateway.port())
    }

    /// Connects to the gateway's database as superuser.
    pub fn connect(&self) -> Result<Client> {
        self.cluster.connect(DATABASE)
    }

    /// Connects as the dashboards' role, over TCP.
    pub fn connect_reader(&self) -> Result<Client> {
        self.cluster
            .connect_as(READER, &self.passwords.reader, DATABASE)
    }

    /// Returns the processes of PostgreSQL alone.
    pub fn postgres_tree(&self) -> Tree {
        Tree::new("PostgreSQL", self.cluster.postmaster())
    }

    /// Restarts PostgreSQL in order; the gateway reconnects by itself. All connections end, and the
    /// arena is empty.
    pub fn restart_postgres(&mut self) -> Result<()> {
        self.cluster.restart()
    }

    /// Kills the gateway and starts it again. Returns the seconds until it is ready, and until it
    /// has acknowledged a new series.
    ///
    /// # Errors
    /// The gateway does not start, or refuses the series.
    pub fn restart_gateway(&mut self) -> Result<(f64, f64)> {
        self.gateway.kill9()?;
        let started = Instant::now();
        self.gateway.start_again()?;
        self.gateway.wait_ready()?;
        let ready = started.elapsed().as_secs_f64();
        let series = Series::new("bench_gateway_start", &[], vec![(now_milliseconds(), 1.0)]);
        let answer = self.gateway.remote_write(&body(&[series]), None)?;
        match answer.status {
            204 => Ok((ready, started.elapsed().as_secs_f64())),
            status => Err(Error::Other(format!("{status}: {}", answer.body))),
        }
    }

    fn number(&self, sql: &str) -> Result<u64> {
        let text = self.cluster.scalar(DATABASE, sql)?;
        text.parse()
            .map_err(|_| Error::Other(format!("{sql} returned {text}")))
    }
}

impl System for Lanes {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        let settings: Vec<String> = self
            .settings
            .postgres
            .iter()
            .chain(&self.settings.gateway)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        format!(
            "pg_lanes {} on {}, {}",
            env!("CARGO_PKG_VERSION"),
            self.version,
            settings.join(" ")
        )
    }

    fn port(&self) -> u16 {
        self.gateway.port()
    }

    fn headers(&self) -> Vec<(String, String)> {
        vec![("x-lanes-ack".to_owned(), self.level.clone())]
    }

    fn tree(&self) -> Tree {
        let roots = [self.gateway.process_id(), self.cluster.postmaster()];
        Tree::new(&self.name, roots.into_iter().flatten())
    }

    fn stored_samples(&self, job: &str, since: i64) -> Result<SampleTotals> {
        let sql = format!(
            "SELECT concat_ws(' ', count(*), coalesce(sum(value), 0)) FROM lanes.samples \
             WHERE ts >= to_timestamp({since} / 1000.0) AND value <> 'NaN' \
             AND series IN (SELECT id FROM lanes.series WHERE labels ->> 'job' = '{job}')"
        );
        let text = self.cluster.scalar(DATABASE, &sql)?;
        let held = text.split_once(' ').and_then(|(samples, sum)| {
            Some(SampleTotals {
                samples: samples.parse().ok()?,
                sum: sum.parse().ok()?,
            })
        });
        held.ok_or_else(|| Error::Other(format!("{sql} returned {text}")))
    }

    fn series(&self) -> Result<u64> {
        self.number("SELECT count(*) FROM lanes.series")
    }

    fn disk_bytes(&self) -> Result<u64> {
        let now = self.number("SELECT pg_database_size(current_database())")?;
        Ok(now.saturating_sub(self.empty_bytes))
    }

    fn check(&mut self) -> Result<()> {
        self.gateway.check()?;
        self.cluster.check()
    }

    fn stop(&mut self) -> Result<()> {
        self.gateway.stop()?;
        self.cluster.stop(Stop::Fast)
    }
}
