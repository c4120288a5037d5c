//! A streaming standby of a cluster.

use super::layout::Layout;
use super::running::Cluster;
use crate::error::{Error, Result};
use crate::process::{POLL_INTERVAL, run};
use crate::{place, port};
use postgres::error::SqlState;
use std::time::{Duration, Instant};

const REPLAY_TIMEOUT: Duration = Duration::from_secs(120);

impl Cluster {
    /// Creates a streaming standby of this running cluster by `pg_basebackup`, and starts it. It
    /// connects with its name as `application_name`, for `synchronous_standby_names`.
    pub fn standby(&self, name: &str) -> Result<Cluster> {
        let mut standby = self.backup(name)?;
        let source = self
            .connection_string("postgres")
            .replace(" dbname=postgres", "");
        standby.set(
            "primary_conninfo",
            &format!("{source} application_name={name}"),
        );
        standby.set("hot_standby", "on");
        standby
            .layout
            .write("standby.signal", "", &standby.account)?;
        standby.start()?;
        Ok(standby)
    }

    /// Starts this backup, which reads archived WAL as its settings say until it has reached their target.
    pub fn recover(&mut self) -> Result<()> {
        self.layout.write("recovery.signal", "", &self.account)?;
        self.start()
    }

    /// Creates a copy of this running cluster by `pg_basebackup`. The copy is not started: started
    /// unchanged, it is a restored backup.
    pub fn backup(&self, name: &str) -> Result<Cluster> {
        let folder = place::test_folder(name, &self.account)?;
        let layout = Layout::new(&folder);
        let mut command = self.account.command(self.programs.join("pg_basebackup"));
        command
            .args([
                "--checkpoint=fast",
                "--wal-method=stream",
                "--no-sync",
                "--pgdata",
            ])
            .arg(&layout.data);
        command.arg("--dbname").arg(
            self.connection_string("postgres")
                .replace(" dbname=postgres", ""),
        );
        run(&mut command)?;
        Ok(Cluster::new(
            name.to_owned(),
            self.account.clone(),
            self.programs.clone(),
            layout,
            port::free()?,
            self.settings.clone(),
            true,
        ))
    }

    /// Waits until this standby has replayed everything that the primary has committed.
    pub fn wait_replayed(&mut self, primary: &Cluster) -> Result<()> {
        let target = primary.scalar("postgres", "SELECT pg_current_wal_insert_lsn()")?;
        let start = Instant::now();
        // Padding may follow the last record before an insert position, and only flushed WAL is
        // sent at all.
        let reached = format!("SELECT pg_last_wal_replay_lsn() >= '{target}'::pg_lsn");
        loop {
            match self.scalar("postgres", &reached) {
                Ok(answer) if answer == "t" => return Ok(()),
                Ok(_) => self.check()?,
                // Recovery cancelled the query, so it is still in progress.
                Err(Error::Postgres(error))
                    if error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE) => {}
                Err(error) => return Err(error),
            }
            if start.elapsed() > REPLAY_TIMEOUT {
                return Err(Error::Other(format!(
                    "the standby {} has not replayed up to {target}",
                    self.name
                )));
            }
            // The message flushes WAL of transactions without a synchronous commit, instead of
            // waiting for the WAL writer.
            primary.query(
                "postgres",
                "SELECT pg_logical_emit_message(true, 'lanes-tests', '')",
            )?;
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Promotes this standby and waits until it accepts writes.
    pub fn promote(&mut self) -> Result<()> {
        match self
            .scalar("postgres", "SELECT pg_promote(true, 60)")?
            .as_str()
        {
            "t" => Ok(()),
            _ => Err(Error::Other(format!(
                "the standby {} was not promoted within 60 s",
                self.name
            ))),
        }
    }
}
