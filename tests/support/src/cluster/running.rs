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

/// The time of a start, which includes recovery after a crash under load.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// The time of a fast shutdown, which writes a checkpoint.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);
/// The time of one attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How to stop a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Rolls back active transactions and writes a checkpoint. The next start needs no recovery.
    Fast,
    /// Stops at once. The next start recovers from WAL.
    Immediate,
}

/// A private cluster. Its processes end with the value, and a temporary cluster's folder is
/// removed.
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
    /// Starts the description of a cluster. The name appears in messages and folders (letters,
    /// digits, `_`).
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

    /// Creates the data folder unless it is complete.
    pub(super) fn make_data(&self) -> Result<()> {
        if self.layout.is_made() {
            return Ok(());
        }
        let data = &self.layout.data;
        if data.exists() {
            // An earlier attempt was interrupted, so the folder contains no data.
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

    /// Stops the cluster if it is running.
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

    /// Restarts the cluster without a crash.
    pub fn restart(&mut self) -> Result<()> {
        self.stop(Stop::Fast)?;
        self.start()
    }

    /// Kills the postmaster and all its processes with SIGKILL, as a power failure would end them.
    pub fn kill9(&mut self) -> Result<()> {
        let Some(mut postmaster) = self.postmaster.take() else {
            return Ok(());
        };
        // The postmaster is stopped first, so that it cannot start another child between the
        // listing and the kill.
        postmaster.signal(Signal::STOP);
        let children = process::children(postmaster.id());
        for child in &children {
            send(*child, Signal::KILL);
        }
        postmaster.stop(Signal::KILL, STOP_TIMEOUT)?;
        wait_for_end(&children)
    }

    /// Kills only the postmaster with SIGKILL. Its backends notice and end by themselves, and this
    /// function waits for that.
    pub fn kill9_postmaster(&mut self) -> Result<()> {
        let Some(mut postmaster) = self.postmaster.take() else {
            return Ok(());
        };
        // The postmaster is stopped first. Otherwise an unlisted child could still exist when the
        // next postmaster starts.
        postmaster.signal(Signal::STOP);
        let children = process::children(postmaster.id());
        postmaster.stop(Signal::KILL, STOP_TIMEOUT)?;
        wait_for_end(&children)
    }

    /// Kills one backend with SIGKILL (`pg_backend_pid()`). PostgreSQL then ends all its processes
    /// and restarts itself: see [`Cluster::wait_ready`].
    ///
    /// This function waits until the processes have ended. Otherwise a connection could still
    /// succeed before PostgreSQL has noticed the crash.
    ///
    /// # Errors
    /// The backend does not exist, or has just ended by itself. PostgreSQL then continues without a
    /// restart.
    pub fn kill9_backend(&self, backend: u32) -> Result<()> {
        let children = self
            .postmaster
            .as_ref()
            .map_or_else(Vec::new, |postmaster| process::children(postmaster.id()));
        if children.contains(&backend) && kill_surely(backend) {
            return wait_for_end(&children);
        }
        Err(Error::Other(format!(
            "process {backend} is not a backend of the cluster {}",
            self.name
        )))
    }

    /// Waits until the cluster answers queries again, after it has restarted itself because a
    /// backend crashed.
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

    /// Whether the postmaster is running.
    pub fn is_running(&mut self) -> bool {
        self.postmaster
            .as_mut()
            .is_some_and(|postmaster| postmaster.ended().is_none())
    }

    /// Fails with the end of the log if the postmaster has died.
    pub fn check(&mut self) -> Result<()> {
        self.postmaster.as_mut().map_or(Ok(()), Process::check)
    }

    /// Connects as superuser through the socket.
    pub fn connect(&self, database: &str) -> Result<Client> {
        Ok(self.config(database).connect(NoTls)?)
    }

    /// Connects over TCP with a password, as an application does.
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

    /// Returns the superuser's connection parameters through the socket.
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

    /// Returns the superuser's connection parameters as a libpq connection string (`psql`,
    /// pg_regress, other clients).
    pub fn connection_string(&self, database: &str) -> String {
        format!(
            "host={} port={} user=postgres dbname={database}",
            self.layout.socket.display(),
            self.port
        )
    }

    /// Runs a query over the simple protocol as superuser. Returns rows of texts, in which `None`
    /// is NULL.
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

    /// Returns the first column of a query's first row as text, or an empty text for no row or
    /// NULL.
    pub fn scalar(&self, database: &str, sql: &str) -> Result<String> {
        let first = self.query(database, sql)?.into_iter().next();
        Ok(first
            .and_then(|row| row.into_iter().next().flatten())
            .unwrap_or_default())
    }

    /// Runs a script with `psql` as superuser, so all of its commands such as `\copy` work. Stops
    /// at the first error. Returns unaligned tuples without headers.
    pub fn psql(&self, database: &str, script: &str) -> Result<String> {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d"]);
        command
            .arg(self.connection_string(database))
            .arg("-c")
            .arg(script);
        run(&mut command)
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder of the Unix socket.
    pub fn socket(&self) -> &Path {
        &self.layout.socket
    }

    /// Returns the data folder.
    pub fn data(&self) -> &Path {
        &self.layout.data
    }

    /// Returns the cluster's folder. Files that the server reads or writes for a test can be put
    /// there.
    pub fn folder(&self) -> &Path {
        &self.layout.folder
    }

    /// Returns the server's log.
    pub fn log(&self) -> &Path {
        &self.layout.log
    }

    /// Returns the process id of the postmaster while it is running.
    pub fn postmaster(&self) -> Option<u32> {
        self.postmaster.as_ref().map(Process::id)
    }

    /// Returns the folder of PostgreSQL's programs.
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

    /// Keeps the cluster if the environment requests that for failed tests.
    ///
    /// A test in Rust fails by a panic, which dropping the cluster detects. This function is for
    /// owners that learn of a failure in another way.
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

    /// Removes the shared memory of a cluster that was killed and will not be started again.
    fn release_shared_memory(&self) {
        let Ok(file) = std::fs::read_to_string(self.layout.data.join("postmaster.pid")) else {
            return;
        };
        // Line 7 contains the key and the number of the System V segment. The next start would have
        // removed it.
        if let Some(number) = file
            .lines()
            .nth(6)
            .and_then(|line| line.split_whitespace().nth(1))
        {
            let _ = run_to_output(Command::new("ipcrm").args(["-m", number]));
        }
    }
}

/// The beginnings of PostgreSQL's warnings about resources that were not released, or released
/// twice.
const SIGNS_OF_LEAKS: [&str; 5] = [
    "you don't own a lock",
    "reference leak",
    "refcount leak",
    "file leak",
    "still referenced",
];

impl Cluster {
    /// Fails the test if the server has reported a leak.
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
            // The next test run removes what cannot be removed now.
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
    println!("stopping a leftover PostgreSQL (process {leftover}) of an earlier run");
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
