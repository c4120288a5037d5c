//! A cluster as a value.

use super::builder::Builder;
use super::kept;
use super::layout::Layout;
use super::template;
use crate::account::Account;
use crate::error::{Error, Result};
use crate::place;
use crate::process::{
    self, POLL_INTERVAL, Process, Signal, is_alive, kill_surely, run, run_to_output, send,
};
use postgres::{Client, NoTls, SimpleQueryMessage};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Recovery after a crash under load is part of a start.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// A fast shutdown writes a checkpoint.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);
/// One attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How to stop a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Rolls back what runs, writes a checkpoint, ends: the next start needs no recovery.
    Fast,
    /// Ends at once; the next start recovers from WAL.
    Immediate,
}

/// A private cluster. Its processes end with the value; a temporary one is removed with it.
#[derive(Debug)]
pub struct Cluster {
    pub(super) name: String,
    pub(super) account: Account,
    pub(super) programs: PathBuf,
    pub(super) layout: Layout,
    pub(super) port: u16,
    pub(super) settings: Vec<(String, String)>,
    temporary: bool,
    pub(super) is_distinct: bool,
    /// Whether the cluster stays running if its test fails.
    keep_on_failure: bool,
    /// Whether dropping the value leaves the server and the folder in place.
    is_kept: bool,
    postmaster: Option<Process>,
}

impl Cluster {
    /// Begins the description of a cluster; the name is for messages and folders (letters, digits, `_`).
    pub fn builder(name: &str) -> Builder {
        Builder::new(name)
    }

    pub(super) fn new(
        name: String,
        account: Account,
        programs: PathBuf,
        layout: Layout,
        port: u16,
        settings: Vec<(String, String)>,
        temporary: bool,
    ) -> Cluster {
        Cluster {
            name,
            account,
            programs,
            layout,
            port,
            settings,
            temporary,
            is_distinct: false,
            keep_on_failure: kept::is_requested(),
            is_kept: false,
            postmaster: None,
        }
    }

    /// Makes the data folder unless it has been made to its end.
    pub(super) fn make_data(&self) -> Result<()> {
        if self.layout.is_made() {
            return Ok(());
        }
        let data = &self.layout.data;
        if data.exists() {
            // An earlier try was interrupted; nothing can be in it yet.
            std::fs::remove_dir_all(data).map_err(Error::file("empty", data))?;
        }
        let (programs, layout) = (&self.programs, &self.layout);
        if self.temporary && !self.is_distinct {
            template::copy(programs, layout, &self.account)
        } else {
            template::initdb(programs, layout, &self.account, self.temporary)
        }
    }

    /// Starts the cluster and waits until it answers queries.
    pub fn start(&mut self) -> Result<()> {
        if self.is_running() {
            return Ok(());
        }
        end_leftover(&self.layout.data)?;
        self.layout
            .write_settings(self.port, &self.settings, &self.account)?;
        let log = &self.layout.log;
        let mut command = self.account.command(self.programs.join("postgres"));
        command.arg("-D").arg(&self.layout.data);
        let mut postmaster =
            Process::start(&format!("Postgres ({})", self.name), &mut command, log)?;
        let config = self.config("postgres");
        postmaster.wait_until("a connection", START_TIMEOUT, || {
            config.connect(NoTls).is_ok()
        })?;
        self.postmaster = Some(postmaster);
        Ok(())
    }

    /// Stops the cluster; nothing happens when it is not running.
    pub fn stop(&mut self, how: Stop) -> Result<()> {
        let Some(mut postmaster) = self.postmaster.take() else {
            return Ok(());
        };
        let signal = match how {
            Stop::Fast => Signal::INT,
            Stop::Immediate => Signal::QUIT,
        };
        postmaster.stop(signal, STOP_TIMEOUT)?;
        Ok(())
    }

    /// Stops and starts; a crash-free restart.
    pub fn restart(&mut self) -> Result<()> {
        self.stop(Stop::Fast)?;
        self.start()
    }

    /// Kills the postmaster and all its processes at once with SIGKILL, as a power failure would end them.
    pub fn kill9(&mut self) -> Result<()> {
        let Some(mut postmaster) = self.postmaster.take() else {
            return Ok(());
        };
        // Stopped first, so that it cannot start another child between our look and the kill.
        postmaster.signal(Signal::STOP);
        let children = process::children(postmaster.id());
        for child in &children {
            send(*child, Signal::KILL);
        }
        postmaster.stop(Signal::KILL, STOP_TIMEOUT)?;
        wait_for_end(&children)
    }

    /// Kills only the postmaster with SIGKILL; its backends notice and end by themselves, which this waits for.
    pub fn kill9_postmaster(&mut self) -> Result<()> {
        let Some(mut postmaster) = self.postmaster.take() else {
            return Ok(());
        };
        // Stopped first, as above: a child that we do not know of would be there still when the next postmaster starts.
        postmaster.signal(Signal::STOP);
        let children = process::children(postmaster.id());
        postmaster.stop(Signal::KILL, STOP_TIMEOUT)?;
        wait_for_end(&children)
    }

    /// Kills one backend with SIGKILL (`pg_backend_pid()`). Postgres then restarts itself: see [`Cluster::wait_ready`].
    /// Fails if it is not there, or ended by itself at this very moment; then Postgres goes on as it was.
    pub fn kill9_backend(&self, backend: u32) -> Result<()> {
        let ours = self
            .postmaster
            .as_ref()
            .is_some_and(|postmaster| process::children(postmaster.id()).contains(&backend));
        if ours && kill_surely(backend) {
            return Ok(());
        }
        Err(Error::Other(format!(
            "process {backend} is no backend of the cluster {}",
            self.name
        )))
    }

    /// Waits until the cluster, restarting itself after the crash of a backend, answers queries again.
    pub fn wait_ready(&mut self) -> Result<()> {
        let config = self.config("postgres");
        match &mut self.postmaster {
            Some(postmaster) => postmaster.wait_until("a connection", START_TIMEOUT, || {
                config.connect(NoTls).is_ok()
            }),
            None => Err(Error::Other(format!(
                "the cluster {} is stopped",
                self.name
            ))),
        }
    }

    /// Whether the postmaster runs.
    pub fn is_running(&mut self) -> bool {
        self.postmaster
            .as_mut()
            .is_some_and(|postmaster| postmaster.ended().is_none())
    }

    /// Fails with the end of the log when the cluster has been started and its postmaster is gone.
    pub fn check(&mut self) -> Result<()> {
        self.postmaster.as_mut().map_or(Ok(()), Process::check)
    }

    /// A connection as superuser through the socket.
    pub fn connect(&self, database: &str) -> Result<Client> {
        Ok(self.config(database).connect(NoTls)?)
    }

    /// A connection over TCP with a password, as an application connects.
    pub fn connect_as(&self, role: &str, password: &str, database: &str) -> Result<Client> {
        let mut config = Client::configure();
        config
            .host("127.0.0.1")
            .port(self.port)
            .user(role)
            .password(password)
            .dbname(database);
        Ok(config.connect_timeout(CONNECT_TIMEOUT).connect(NoTls)?)
    }

    /// How the superuser connects through the socket, for clients that need the parameters.
    pub fn config(&self, database: &str) -> postgres::Config {
        let mut config = Client::configure();
        config
            .host_path(&self.layout.socket)
            .port(self.port)
            .user("postgres")
            .dbname(database);
        config.connect_timeout(CONNECT_TIMEOUT);
        config
    }

    /// The same as a libpq connection string (`psql`, pg_regress, other clients).
    pub fn connection_string(&self, database: &str) -> String {
        format!(
            "host={} port={} user=postgres dbname={database}",
            self.layout.socket.display(),
            self.port
        )
    }

    /// One query over the simple protocol as superuser: rows as text, `None` is NULL. For assertions.
    pub fn query(&self, database: &str, sql: &str) -> Result<Vec<Vec<Option<String>>>> {
        let mut rows = Vec::new();
        for message in self.connect(database)?.simple_query(sql)? {
            if let SimpleQueryMessage::Row(row) = message {
                rows.push(
                    (0..row.len())
                        .map(|column| row.get(column).map(str::to_owned))
                        .collect(),
                );
            }
        }
        Ok(rows)
    }

    /// The first column of the first row of a query, as text; empty for no row or NULL.
    pub fn scalar(&self, database: &str, sql: &str) -> Result<String> {
        let first = self.query(database, sql)?.into_iter().next();
        Ok(first
            .and_then(|row| row.into_iter().next().flatten())
            .unwrap_or_default())
    }

    /// Runs a script with `psql` as superuser (so `\copy` and all of its commands work): stops at the first error, and
    /// gives unaligned tuples without headers.
    pub fn psql(&self, database: &str, script: &str) -> Result<String> {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d"]);
        command
            .arg(self.connection_string(database))
            .arg("-c")
            .arg(script);
        run(&mut command)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of the Unix socket.
    pub fn socket(&self) -> &Path {
        &self.layout.socket
    }

    /// The data folder.
    pub fn data(&self) -> &Path {
        &self.layout.data
    }

    /// The folder with everything of this cluster; a place for files that the server shall read or write.
    pub fn folder(&self) -> &Path {
        &self.layout.folder
    }

    /// The server's log.
    pub fn log(&self) -> &Path {
        &self.layout.log
    }

    /// The process id of the postmaster, while it runs.
    pub fn postmaster(&self) -> Option<u32> {
        self.postmaster.as_ref().map(Process::id)
    }

    /// The folder of Postgres's programs.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// Changes a setting for the next start.
    pub fn set(&mut self, name: &str, value: &str) {
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    /// Sets whether the cluster stays running if its test fails; `LANES_KEEP` decides by default.
    pub fn keep_on_failure(&mut self, keep: bool) {
        self.keep_on_failure = keep;
    }

    /// Keeps the cluster if the environment requests that of failed tests.
    ///
    /// A test in Rust fails by a panic, which dropping the cluster notices by itself. This function
    /// is for owners that learn of a failure in another way.
    ///
    /// # Errors
    /// The instructions for connecting cannot be written.
    pub fn keep_if_requested(&mut self) -> Result<()> {
        match self.temporary && self.keep_on_failure && !self.is_kept {
            true => self.keep(),
            false => Ok(()),
        }
    }

    /// Leaves the server and the folder in place when this value is dropped.
    pub(super) fn leave_running(&mut self) {
        self.is_kept = true;
        if let Some(postmaster) = self.postmaster.take() {
            postmaster.leave_running();
        }
    }

    /// Gives back the shared memory of a cluster that was killed and will not be started again.
    fn release_shared_memory(&self) {
        let Ok(file) = std::fs::read_to_string(self.layout.data.join("postmaster.pid")) else {
            return;
        };
        // Line 7 is the System V segment's key and number; the next start would have removed it.
        if let Some(number) = file
            .lines()
            .nth(6)
            .and_then(|line| line.split_whitespace().nth(1))
        {
            let _ = run_to_output(Command::new("ipcrm").args(["-m", number]));
        }
    }
}

/// What PostgreSQL says, as a warning, of something that was not given back, or given back twice.
const SIGNS_OF_LEAKS: [&str; 5] = [
    "you don't own a lock",
    "reference leak",
    "refcount leak",
    "file leak",
    "still referenced",
];

impl Cluster {
    /// Fails the test if the server has told of a leak.
    fn check_log(&self) {
        let log = std::fs::read(&self.layout.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let is_leak = |line: &&str| {
            line.contains("WARNING:") && SIGNS_OF_LEAKS.iter().any(|sign| line.contains(sign))
        };
        let leaks: Vec<&str> = log.lines().filter(is_leak).take(5).collect();
        assert!(
            leaks.is_empty(),
            "in {}: {leaks:#?}",
            self.layout.log.display()
        );
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the end of {}:\n{}",
                self.layout.log.display(),
                process::tail(&self.layout.log)
            );
            if let Err(error) = self.keep_if_requested() {
                eprintln!("the cluster {} cannot be kept: {error}", self.name);
            }
        }
        if self.is_kept {
            return;
        }
        let how = if self.temporary {
            Stop::Immediate
        } else {
            Stop::Fast
        };
        if self.stop(how).is_err() {
            let _ = self.kill9();
        }
        if !std::thread::panicking() {
            self.check_log();
        }
        if self.temporary {
            self.release_shared_memory();
            // What cannot be removed now is removed by the next test run.
            let _ = std::fs::remove_dir_all(&self.layout.folder);
            let _ = self.layout.folder.parent().map(std::fs::remove_dir);
        }
    }
}

/// Stops the postmaster that runs on a data folder, if one does.
pub fn end_leftover(data: &Path) -> Result<()> {
    let Some(leftover) = place::running_postmaster(data) else {
        return Ok(());
    };
    println!("stopping Postgres (process {leftover}), which an earlier run left behind");
    send(leftover, Signal::INT);
    wait_for_end(&[leftover])
}

fn wait_for_end(processes: &[u32]) -> Result<()> {
    let start = Instant::now();
    while processes.iter().any(|id| is_alive(*id)) {
        if start.elapsed() > STOP_TIMEOUT {
            return Err(Error::Other(format!("processes {processes:?} do not end")));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}
