//! `dev run` and `dev demo`: start, watch, stop.

use crate::home::{HTTP_PORT, Home, PG_PORT, shown};
use crate::packages::Purpose;
use crate::product;
use crate::status::StatusLine;
use lanes_support::cluster::{self, Cluster, Stop};
use lanes_support::error::Result;
use lanes_support::gateway::{self, Gateway};
use lanes_support::prometheus::{self, Prometheus};
use lanes_support::provision::{Passwords, provision};
use lanes_support::{port, process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The programs of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Postgres and the gateway.
    Run,
    /// Also Prometheus and node_exporter.
    Demo,
}

const PROMETHEUS_PORT: &str = "LANES_PROMETHEUS_PORT";
const NODE_EXPORTER_PORT: &str = "LANES_NODE_EXPORTER_PORT";
const DEMO_SCRAPE_INTERVAL_SECONDS: u32 = 5;
/// The interval at which Ctrl-C and the end of a child are noticed.
const TICK: Duration = Duration::from_millis(100);

/// Installs, builds and starts everything, shows the status until Ctrl-C, and stops everything.
pub fn run(kind: Kind) -> Result<()> {
    let home = Home::from_environment()?;
    let _lock = home.lock()?;
    let ports = Ports::from_environment(&home, kind)?;
    end_leftovers(&home)?;
    // The check precedes the build, which may take minutes. The programs check again.
    ports.require_free()?;

    product::set_up(if kind == Kind::Demo {
        Purpose::Demo
    } else {
        Purpose::Run
    })?;
    let stop = stop_on_signals()?;

    let mut session = Session::start(&home, kind, &ports)?;
    session.print_how_to_connect(&home);
    let watched = session.watch(&stop);
    println!("\nstopping");
    let stopped = session.stop();
    watched.and(stopped)?;
    println!("stopped; the data remains in {}", shown(&home.folder));
    Ok(())
}

/// Returns a flag that is set by Ctrl-C, `kill`, or closing the terminal. A second signal ends the
/// program at once.
fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(
            lanes_support::error::Error::file("watch", format!("signal {signal}")),
        )?;
    }
    Ok(stop)
}

/// Ends the processes that a killed run left in this home.
fn end_leftovers(home: &Home) -> Result<()> {
    process::end_leftover("Prometheus", &home.folder.join("demo/prometheus.log"))?;
    process::end_leftover("node_exporter", &home.folder.join("demo/node_exporter.log"))?;
    process::end_leftover(
        "the gateway",
        &gateway::log_of(&home.folder.join("gateway")),
    )?;
    cluster::end_leftover(&home.folder.join("postgres/data"))
}

struct Ports {
    all: Vec<(u16, &'static str)>,
    prometheus: u16,
    node_exporter: u16,
}

impl Ports {
    fn from_environment(home: &Home, kind: Kind) -> Result<Ports> {
        let prometheus = port::from_environment(PROMETHEUS_PORT, 9290)?;
        let node_exporter = port::from_environment(NODE_EXPORTER_PORT, 9291)?;
        let mut all = vec![(home.postgres_port, PG_PORT), (home.http_port, HTTP_PORT)];
        if kind == Kind::Demo {
            all.extend([
                (prometheus, PROMETHEUS_PORT),
                (node_exporter, NODE_EXPORTER_PORT),
            ]);
        }
        Ok(Ports {
            all,
            prometheus,
            node_exporter,
        })
    }

    fn require_free(&self) -> Result<()> {
        self.all
            .iter()
            .try_for_each(|(port, variable)| port::require_free(*port, variable))
    }
}

/// Returns the store for segments older than `hot`, unless the environment sets it.
fn objects(home: &Home) -> Result<Vec<(String, String)>> {
    const URL: &str = "LANES_GATEWAY_OBJECTS_URL";
    if std::env::var_os(URL).is_some() {
        return Ok(Vec::new());
    }
    let folder = home.subfolder("objects")?;
    Ok(vec![(
        URL.to_owned(),
        folder.to_string_lossy().into_owned(),
    )])
}

/// The running programs. Fields are in the order of stopping and dropping: senders before
/// receivers.
struct Session {
    prometheus: Option<Prometheus>,
    gateway: Gateway,
    cluster: Cluster,
}

impl Session {
    fn start(home: &Home, kind: Kind, ports: &Ports) -> Result<Session> {
        println!("==> starting Postgres");
        let mut cluster = home.cluster()?;
        cluster.start()?;
        let passwords: Passwords = home.passwords()?;
        provision(&cluster, &passwords)?;
        home.compare_extension_script()?;
        home.write_connection_files(&passwords)?;

        println!("==> starting the gateway");
        let gateway = Gateway::start(gateway::Settings {
            folder: home.subfolder("gateway")?,
            port: home.http_port,
            postgres_port: home.postgres_port,
            password: passwords.gateway,
            reader_password: passwords.reader,
            environment: objects(home)?,
            through: Vec::new(),
        })?;

        let prometheus = match kind {
            Kind::Run => None,
            Kind::Demo => {
                println!("==> starting Prometheus and node_exporter");
                Some(Prometheus::start(prometheus::Settings {
                    folder: home.subfolder("demo")?,
                    prometheus_port: ports.prometheus,
                    node_exporter_port: ports.node_exporter,
                    scrape_interval_seconds: DEMO_SCRAPE_INTERVAL_SECONDS,
                    remote_write_url: gateway.url("/api/v1/write"),
                    remote_write_extra: String::new(),
                })?)
            }
        };
        Ok(Session {
            prometheus,
            gateway,
            cluster,
        })
    }

    fn print_how_to_connect(&self, home: &Home) {
        println!("\npg_lanes is ready.");
        println!(
            "  SQL           make psql, or PGSERVICEFILE={} psql service=lanes",
            home.service_file().display()
        );
        println!("  web page      {}", self.gateway.url("/"));
        println!("  remote write  {}", self.gateway.url("/api/v1/write"));
        println!(
            "  PromQL        {}  (for Grafana: {})",
            self.gateway.url("/api/v1/query?query=up"),
            self.gateway.url("")
        );
        println!("  metrics       {}", self.gateway.url("/metrics"));
        if let Some(prometheus) = &self.prometheus {
            println!("  Prometheus    {}", prometheus.url());
        }
        println!(
            "  logs          {}  {}",
            shown(self.cluster.log()),
            shown(&self.gateway.log())
        );
        println!("The gateway stores its own metrics: SELECT * FROM lanes.metrics;");
        println!("Ctrl-C stops everything; the data remains.\n");
    }

    /// Shows the status until a signal. Fails if one of the programs dies.
    fn watch(&mut self, stop: &AtomicBool) -> Result<()> {
        let mut status = StatusLine::new();
        while !stop.load(Ordering::Relaxed) {
            self.check()?;
            status.show(&self.gateway, &self.cluster);
            std::thread::sleep(TICK);
        }
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        self.cluster.check()?;
        self.gateway.check()?;
        self.prometheus.as_mut().map_or(Ok(()), Prometheus::check)
    }

    /// Stops everything in order. Continues after a failure and returns the first.
    fn stop(mut self) -> Result<()> {
        let prometheus = self.prometheus.take().map_or(Ok(()), Prometheus::stop);
        let gateway = self.gateway.stop().map(|_| ());
        let postgres = self.cluster.stop(Stop::Fast);
        prometheus.and(gateway).and(postgres)
    }
}
