//! The system under test: a private cluster and a gateway, with all their processes.

use super::definition::Run;
use super::findings::Findings;
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

/// The system's name in records.
pub const NAME: &str = "pg_lanes";

/// The settings of the system in a data file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// Lines of `postgresql.conf`.
    #[serde(default)]
    pub postgres: std::collections::BTreeMap<String, String>,
    /// Settings of the gateway by their names in its configuration, like `batch.rows_max`.
    #[serde(default)]
    pub gateway: std::collections::BTreeMap<String, String>,
}

impl Setup {
    /// A durable cluster of this name with the settings and the extension, without a gateway; a connection to it; and
    /// findings that name its version.
    ///
    /// # Errors
    /// The cluster does not start.
    pub fn database(&self, name: &str, run: &Run) -> Result<(Cluster, Client, Findings)> {
        let cluster = run.options.servers.starting(|| {
            let mut builder = Cluster::builder(name).durable();
            for (setting, value) in &self.postgres {
                builder = builder.setting(setting, value);
            }
            builder.start()
        })?;
        let mut client = cluster.connect("postgres")?;
        client.batch_execute("CREATE EXTENSION lanes")?;
        let version = cluster.scalar("postgres", "SELECT split_part(version(), ' on ', 1)")?;
        let findings = Findings {
            systems: vec![version],
            ..Findings::default()
        };
        Ok((cluster, client, findings))
    }
}

/// A running cluster and gateway. Both end with the value.
#[derive(Debug)]
pub struct System {
    // The order of dropping: the gateway first delivers its pending batches.
    gateway: Gateway,
    cluster: Cluster,
    standby: Option<Cluster>,
}

/// The standby's name on the primary.
const STANDBY: &str = "bench-standby";
/// The time until the standby has connected.
const STANDBY_TIMEOUT: Duration = Duration::from_secs(60);

impl System {
    /// Starts PostgreSQL, then the gateway. Both are release builds that wait for the disk as in
    /// production.
    ///
    /// # Errors
    /// Either is not installed or does not start.
    pub fn start(name: &str, setup: &Setup, processors: &Processors) -> Result<System> {
        System::start_with(name, setup, &[], processors)
    }

    /// Starts PostgreSQL, then the gateway with additional environment variables.
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

    /// Adds a streaming standby, for which commits at level `replica` wait from now on. It is one
    /// of the system's processes.
    ///
    /// # Errors
    /// The standby does not start, or is not synchronous in time.
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
        // The gateway checks for standbys once a second.
        std::thread::sleep(Duration::from_secs(2));
        Ok(())
    }

    /// Restarts the gateway with other settings. The cluster keeps running.
    ///
    /// # Errors
    /// The gateway does not stop or start.
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

    /// Restarts PostgreSQL in order; the gateway reconnects by itself. All connections end, and the
    /// arena is empty.
    ///
    /// # Errors
    /// PostgreSQL does not stop or start.
    pub fn restart_postgres(&mut self) -> Result<()> {
        self.cluster.restart()
    }

    /// Returns all processes of the system.
    ///
    /// # Errors
    /// The gateway or PostgreSQL has ended.
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

    /// Returns the processes of the gateway and those of PostgreSQL.
    ///
    /// # Errors
    /// The gateway or PostgreSQL has ended.
    pub fn parts(&mut self) -> Result<[Tree; 2]> {
        let mut roots = self.tree()?.roots;
        let of_postgres = roots.split_off(1);
        Ok([
            Tree::new("gateway", roots),
            Tree::new("PostgreSQL", of_postgres),
        ])
    }

    /// Returns the gateway's address.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.gateway.port()))
    }

    /// Returns the gateway.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Returns the cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Connects to the gateway's database as superuser.
    ///
    /// # Errors
    /// PostgreSQL refuses the connection.
    pub fn connect(&self) -> Result<Client> {
        self.cluster.connect(DATABASE)
    }

    /// Returns the versions of the running programs.
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

/// Returns the environment variable of a setting: `batch.rows_max` is
/// `LANES_GATEWAY_BATCH_ROWS_MAX`.
fn variable(setting: &str) -> String {
    format!("LANES_GATEWAY_{}", setting.to_uppercase().replace('.', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_converted_to_environment_variables() {
        assert_eq!(variable("batch.rows_max"), "LANES_GATEWAY_BATCH_ROWS_MAX");
    }
}
