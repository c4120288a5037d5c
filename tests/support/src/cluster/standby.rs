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
    /// Makes a streaming standby of this running cluster by `pg_basebackup`, and starts it. It connects with the
    /// standby's name as `application_name`, for `synchronous_standby_names`.
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

    /// A copy of this running cluster by `pg_basebackup`, not yet started: started as it is, it is a restored backup.
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
        // The last record before an insert position may be followed by padding: flush decides what is sent at all.
        let reached = format!("SELECT pg_last_wal_replay_lsn() >= '{target}'::pg_lsn");
        loop {
            match self.scalar("postgres", &reached) {
                Ok(answer) if answer == "t" => return Ok(()),
                Ok(_) => self.check()?,
                // Replay was in the question's way, so it is not at its end.
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
            // WAL of transactions without a synchronous commit is flushed by the WAL writer; do not wait for it.
            primary.query(
                "postgres",
                "SELECT pg_logical_emit_message(true, 'lanes-tests', '')",
            )?;
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Makes this standby a primary and waits until it accepts writes.
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
