//! The system under test: a private cluster and a gateway, with all their processes.

use crate::load::raise_file_limit;
use crate::pinning::Processors;
use crate::usage::Tree;
use lanes_support::cluster::Cluster;
use lanes_support::error::{Error, Result};
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::provision::{DATABASE, Passwords, provision};
use postgres::Client;
use serde::Deserialize;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What the records call it.
pub const NAME: &str = "pg_lanes";

/// How the system is set up, as a data file says it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// Lines of `postgresql.conf`.
    #[serde(default)]
    pub postgres: std::collections::BTreeMap<String, String>,
    /// Settings of the gateway, by their names in its configuration, like `batch.rows_max`.
    #[serde(default)]
    pub gateway: std::collections::BTreeMap<String, String>,
}

/// A running cluster and gateway. Both end with the value.
#[derive(Debug)]
pub struct System {
    // Dropped in this order: the gateway delivers what it has first.
    gateway: Gateway,
    cluster: Cluster,
    standby: Option<Cluster>,
}

/// The standby's name, as the primary knows it.
const STANDBY: &str = "bench-standby";
/// Until it has connected.
const STANDBY_TIMEOUT: Duration = Duration::from_secs(60);

impl System {
    /// Starts PostgreSQL, then the gateway, both as release builds that wait for the disk as a production system does.
    ///
    /// # Errors
    /// Either is not installed or does not start.
    pub fn start(name: &str, setup: &Setup, processors: &Processors) -> Result<System> {
        System::start_with(name, setup, &[], processors)
    }

    /// The same with more environment variables of the gateway.
    ///
    /// # Errors
    /// Either is not installed or does not start.
    pub fn start_with(
        name: &str,
        setup: &Setup,
        environment: &[(String, String)],
        processors: &Processors,
    ) -> Result<System> {
        raise_file_limit();
        processors.starting(|| {
            let mut builder = Cluster::builder(name).durable();
            for (setting, value) in &setup.postgres {
                builder = builder.setting(setting, value);
            }
            let cluster = builder.start()?;
            let passwords = Passwords::generate();
            provision(&cluster, &passwords)?;
            let mut settings = Settings::for_test("gateway", &cluster, &passwords)?;
            for (setting, value) in &setup.gateway {
                settings = settings.environment(&variable(setting), value);
            }
            for (variable, value) in environment {
                settings = settings.environment(variable, value);
            }
            let gateway = Gateway::start(settings)?;
            Ok(System {
                gateway,
                cluster,
                standby: None,
            })
        })
    }

    /// Gives the cluster a streaming standby, for which commits at level `replica` wait from now on. It is one of the system's processes.
    ///
    /// # Errors
    /// It does not start, or is not synchronous in time.
    pub fn add_standby(&mut self, processors: &Processors) -> Result<()> {
        if self.standby.is_some() {
            return Ok(());
        }
        let standby = processors.starting(|| self.cluster.standby(STANDBY))?;
        let mut client = self.connect()?;
        client.batch_execute(&format!(
            "ALTER SYSTEM SET synchronous_standby_names = '\"{STANDBY}\"'"
        ))?;
        client.batch_execute("SELECT pg_reload_conf()")?;
        let start = Instant::now();
        let state = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        while client.query_one(state, &[])?.get::<_, i64>(0) == 0 {
            if start.elapsed() > STANDBY_TIMEOUT {
                return Err(Error::Other("the standby is not synchronous".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.standby = Some(standby);
        // The gateway looks for standbys once a second.
        std::thread::sleep(Duration::from_secs(2));
        Ok(())
    }

    /// Starts the gateway again with other settings; the cluster goes on.
    ///
    /// # Errors
    /// It does not stop or start.
    pub fn restart_gateway(&mut self, setup: &Setup, processors: &Processors) -> Result<()> {
        self.gateway.stop()?;
        processors.starting(|| {
            let passwords = Passwords::generate();
            provision(&self.cluster, &passwords)?;
            let mut settings = Settings::for_test("gateway", &self.cluster, &passwords)?;
            for (setting, value) in &setup.gateway {
                settings = settings.environment(&variable(setting), value);
            }
            self.gateway = Gateway::start(settings)?;
            Ok(())
        })
    }

    /// Stops PostgreSQL in order and starts it again; the gateway finds it again by itself. All connections end, and the arena is empty.
    ///
    /// # Errors
    /// It does not stop or start.
    pub fn restart_postgres(&mut self) -> Result<()> {
        self.cluster.restart()
    }

    /// All processes of the system.
    ///
    /// # Errors
    /// One of the two has ended.
    pub fn tree(&mut self) -> Result<Tree> {
        self.gateway.check()?;
        let ended = |what: &str| Error::Other(format!("{what} has ended"));
        let gateway = self
            .gateway
            .process_id()
            .ok_or_else(|| ended("the gateway"))?;
        let postmaster = self
            .cluster
            .postmaster()
            .ok_or_else(|| ended("PostgreSQL"))?;
        let standby = self.standby.as_ref().and_then(Cluster::postmaster);
        Ok(Tree::new(
            NAME,
            [gateway, postmaster].into_iter().chain(standby),
        ))
    }

    /// Its two parts apart: gateway, PostgreSQL.
    ///
    /// # Errors
    /// One of the two has ended.
    pub fn parts(&mut self) -> Result<[Tree; 2]> {
        let mut roots = self.tree()?.roots;
        let of_postgres = roots.split_off(1);
        Ok([
            Tree::new("gateway", roots),
            Tree::new("PostgreSQL", of_postgres),
        ])
    }

    /// Where the gateway listens.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.gateway.port()))
    }

    /// The gateway.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// A connection to the gateway's database, as superuser.
    ///
    /// # Errors
    /// PostgreSQL does not take it.
    pub fn connect(&self) -> Result<Client> {
        self.cluster.connect(DATABASE)
    }

    /// Versions of what runs.
    ///
    /// # Errors
    /// PostgreSQL does not answer.
    pub fn versions(&self) -> Result<Vec<String>> {
        let version = self
            .cluster
            .scalar(DATABASE, "SELECT split_part(version(), ' on ', 1)")?;
        let extension = self.cluster.scalar(
            DATABASE,
            "SELECT extversion FROM pg_extension WHERE extname = 'lanes'",
        )?;
        Ok(vec![
            version,
            format!("extension lanes {extension}"),
            "lanes-gateway".to_owned(),
        ])
    }
}

/// A setting's environment variable: `batch.rows_max` is `LANES_GATEWAY_BATCH_ROWS_MAX`.
fn variable(setting: &str) -> String {
    format!("LANES_GATEWAY_{}", setting.to_uppercase().replace('.', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_their_variables() {
        assert_eq!(variable("batch.rows_max"), "LANES_GATEWAY_BATCH_ROWS_MAX");
    }
}
