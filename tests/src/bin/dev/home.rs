//! The folder `.lanes`, which contains everything that a run keeps.
//!
//! ```text
//! .lanes/postgres/         the cluster: data, socket, log (a link if the cluster's account cannot enter this folder)
//!        lanes.password    of the role `lanes` (0600)
//!        gateway.password  of the role `lanes_gateway` (0600)
//!        reader.password   of the role `lanes_reader` (0600)
//!        pg_service.conf   `psql service=lanes` and `service=lanes_reader`, with PGSERVICEFILE pointing here
//!        pgpass            the passwords for the service file (0600)
//!        gateway/          the gateway's configuration and log
//!        objects/          object storage for segments older than their table's `hot`
//!        demo/             Prometheus's configuration, data and log
//!        peers/            the peers of the bench, and MinIO for the tests: a folder per program and version
//!        lanes--*.sql      the script from which the database's extension was created
//!        lock              held during a run
//! ```

use lanes_support::account::Account;
use lanes_support::cluster::Cluster;
use lanes_support::error::{Error, Result};
use lanes_support::installation::Postgres;
use lanes_support::place;
use lanes_support::port;
use lanes_support::provision::{DATABASE, OWNER, Passwords, READER};
use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variables of the ports, which error messages name.
pub const PG_PORT: &str = "LANES_PG_PORT";
pub const HTTP_PORT: &str = "LANES_HTTP_PORT";
/// The default shared memory for columns; `LANES_ARENA_SIZE` overrides it.
const ARENA_SIZE: &str = "256MB";

/// The folder and the ports of a run.
pub struct Home {
    pub folder: PathBuf,
    pub postgres_port: u16,
    pub http_port: u16,
}

impl Home {
    pub fn from_environment() -> Result<Home> {
        Ok(Home {
            folder: place::home()?,
            postgres_port: port::from_environment(PG_PORT, 5433)?,
            http_port: port::from_environment(HTTP_PORT, 9201)?,
        })
    }

    /// Creates the folder and takes its lock, which the returned file holds. Two runs would
    /// conflict over the cluster.
    pub fn lock(&self) -> Result<File> {
        place::make_folder(&self.folder)?;
        let path = self.folder.join("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(Error::file("open", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(std::fs::TryLockError::WouldBlock) => Err(Error::Other(format!(
                "another run is using {}; end it, or choose another folder and other ports: LANES_HOME=<folder> \
                 {PG_PORT}=<port> {HTTP_PORT}=<port>",
                self.folder.display()
            ))),
            Err(std::fs::TryLockError::Error(source)) => Err(Error::File {
                action: "lock",
                path,
                source,
            }),
        }
    }

    /// Returns the cluster of this home, created at the first call and not started.
    pub fn cluster(&self) -> Result<Cluster> {
        let arena = std::env::var("LANES_ARENA_SIZE").unwrap_or_else(|_| ARENA_SIZE.to_owned());
        Cluster::builder("the private cluster")
            .folder(&self.cluster_folder()?)
            .port(self.postgres_port)
            .durable()
            .setting("lanes.arena_size", &arena)
            .create()
    }

    /// Returns the cluster's folder: in the home, or where the cluster's account can reach it, with
    /// a link in the home.
    fn cluster_folder(&self) -> Result<PathBuf> {
        let wanted = self.folder.join("postgres");
        if let Ok(linked) = std::fs::read_link(&wanted) {
            return Ok(linked);
        }
        let account = Account::for_postgres()?;
        let folder = place::reachable(&wanted, &account);
        if folder != wanted {
            println!(
                "the account {} cannot enter {}; the data is in {}",
                account.name,
                self.folder.display(),
                folder.display()
            );
            place::make_folder(&folder)?;
            std::os::unix::fs::symlink(&folder, &wanted).map_err(Error::file("link", &wanted))?;
        }
        Ok(folder)
    }

    /// Returns the passwords, generated at the first call.
    pub fn passwords(&self) -> Result<Passwords> {
        let fresh = Passwords::generate();
        Ok(Passwords {
            owner: self.password("lanes.password", fresh.owner)?,
            gateway: self.password("gateway.password", fresh.gateway)?,
            reader: self.password("reader.password", fresh.reader)?,
        })
    }

    fn password(&self, name: &str, fresh: String) -> Result<String> {
        let path = self.folder.join(name);
        match std::fs::read_to_string(&path) {
            Ok(password) => Ok(password.trim().to_owned()),
            Err(_) => {
                place::write_private(&path, &fresh)?;
                Ok(fresh)
            }
        }
    }

    /// Warns if the extension's SQL differs from the script that created this home's database
    /// although the version is the same. PostgreSQL then keeps the old definitions, which matters
    /// to a developer who edits them.
    pub fn compare_extension_script(&self) -> Result<()> {
        let script = format!("lanes--{}.sql", env!("CARGO_PKG_VERSION"));
        let (installed, kept) = (
            Postgres::chosen()?.scripts.join(&script),
            self.folder.join(&script),
        );
        let now = std::fs::read_to_string(&installed).map_err(Error::file("read", &installed))?;
        match std::fs::read_to_string(&kept) {
            Err(_) => std::fs::write(&kept, now).map_err(Error::file("write", &kept)),
            Ok(before) if statements(&before) == statements(&now) => Ok(()),
            Ok(_) => {
                println!(
                    "note: the extension's SQL has changed since the database in {} was created, but \
                     its version has not, so the database keeps the old definitions; for a database \
                     with the new ones, choose another folder and other ports: LANES_HOME=<folder> \
                     {PG_PORT}=<port> {HTTP_PORT}=<port>",
                    shown(&self.folder)
                );
                Ok(())
            }
        }
    }

    /// Writes the files for `psql service=lanes` and returns the path of the service file.
    pub fn write_connection_files(&self, passwords: &Passwords) -> Result<PathBuf> {
        let (port, pgpass) = (self.postgres_port, self.folder.join("pgpass"));
        place::write_private(
            &pgpass,
            &format!(
                "127.0.0.1:{port}:*:{OWNER}:{}\n127.0.0.1:{port}:*:{READER}:{}\n",
                passwords.owner, passwords.reader
            ),
        )?;
        let service = self.service_file();
        let of = |role: &str| {
            format!(
                "[{role}]\nhost=127.0.0.1\nport={port}\ndbname={DATABASE}\nuser={role}\npassfile={}\n",
                pgpass.display()
            )
        };
        let text = of(OWNER) + &of(READER);
        std::fs::write(&service, text).map_err(Error::file("write", &service))?;
        Ok(service)
    }

    pub fn service_file(&self) -> PathBuf {
        self.folder.join("pg_service.conf")
    }

    /// Replaces this process with `psql` in the running database.
    pub fn psql(&self, arguments: &[String]) -> Result<()> {
        let service = self.service_file();
        if !service.exists() {
            return Err(Error::Missing {
                what: service.display().to_string(),
                remedy: "start with `make run`",
            });
        }
        if !self.answers() {
            return Err(Error::Other(format!(
                "no cluster is running in {}; start one with `make run`, or name the folder of the \
                 running one: make psql LANES_HOME=<folder>",
                shown(&self.folder)
            )));
        }
        let mut command = Command::new("psql");
        command
            .env("PGSERVICEFILE", service)
            .env("PGSERVICE", "lanes")
            .args(arguments);
        Err(Error::Spawn {
            program: "psql".to_owned(),
            source: command.exec(),
        })
    }

    /// Whether a server listens on the port in the service file. The run that wrote the file may
    /// have had another port than the environment names now.
    fn answers(&self) -> bool {
        let text = std::fs::read_to_string(self.service_file()).unwrap_or_default();
        let port = text.lines().find_map(|line| line.strip_prefix("port="));
        port.and_then(|port| port.parse().ok())
            .is_some_and(|port: u16| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())
    }

    /// Returns a folder for one of a run's programs.
    pub fn subfolder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        place::make_folder(&folder)?;
        Ok(folder)
    }
}

/// Returns the lines of a script that affect PostgreSQL: without comments and differences in white
/// space.
fn statements(script: &str) -> Vec<&str> {
    script
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"))
        .flat_map(str::split_whitespace)
        .collect()
}

/// Returns the path as a person would type it: relative if it is below the working folder.
pub fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here)
        .unwrap_or(path)
        .display()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(name: &str) -> Home {
        let folder = std::env::temp_dir().join(format!("lanes-{name}-{}", std::process::id()));
        place::make_folder(&folder).unwrap();
        Home {
            folder,
            postgres_port: 1,
            http_port: 1,
        }
    }

    #[test]
    fn scripts_that_differ_in_comments_and_white_space_are_equal() {
        let script = "-- One.\nCREATE TABLE t (n int);\n";
        for (other, is_same) in [
            ("CREATE TABLE t\n    (n int);\n  -- Two.\n", true),
            ("CREATE TABLE t (n int8);", false),
        ] {
            assert_eq!(statements(script) == statements(other), is_same, "{other}");
        }
    }

    #[test]
    fn psql_without_a_running_cluster_names_the_remedy() {
        let home = home("idle");
        let passwords = Passwords::generate();
        home.write_connection_files(&passwords).unwrap();
        let told = home.psql(&[]).unwrap_err().to_string();
        assert!(told.contains("no cluster is running in"), "{told}");
        assert!(told.contains("LANES_HOME=<folder>"), "{told}");
        let file = std::fs::read_to_string(home.service_file()).unwrap();
        assert!(
            file.contains("[lanes]\n") && file.contains("[lanes_reader]\n"),
            "{file}"
        );
        std::fs::remove_dir_all(&home.folder).unwrap();
    }
}
