//! Clusters that stay running after their test has failed, for a person to look at.
//!
//! With `LANES_KEEP=1` in the environment, a temporary cluster whose test fails is neither stopped
//! nor removed. A file in its folder says how to connect to it, and protects it from the next test
//! run, which removes the folders of earlier runs. `cargo dev kept stop` stops and removes it.

use super::running::{Cluster, end_leftover};
use crate::account::Account;
use crate::error::{Error, Result};
use crate::place;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The environment variable that requests it.
pub const VARIABLE: &str = "LANES_KEEP";

/// Whether the environment requests that clusters of failed tests are kept.
pub(super) fn is_requested() -> bool {
    means_yes(std::env::var_os(VARIABLE).as_deref())
}

/// Whether the variable is set to anything but nothing and zero.
fn means_yes(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0")
}

/// A cluster that was kept.
#[derive(Debug)]
pub struct KeptCluster {
    folder: PathBuf,
}

impl KeptCluster {
    /// Returns all kept clusters of the account that runs PostgreSQL.
    ///
    /// # Errors
    /// That account does not exist.
    pub fn all() -> Result<Vec<KeptCluster>> {
        let folders = place::test_folders(&Account::for_postgres()?).into_iter();
        Ok(folders
            .filter(|folder| place::is_kept(folder))
            .map(|folder| KeptCluster { folder })
            .collect())
    }

    /// The folder with the data, the log and the socket.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The name that the test gave to the cluster.
    pub fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Whether its server is running.
    pub fn is_running(&self) -> bool {
        place::running_postmaster(&self.folder.join("data")).is_some()
    }

    /// How to connect `psql` and `gdb` to it.
    pub fn instructions(&self) -> String {
        std::fs::read_to_string(place::kept_marker(&self.folder)).unwrap_or_default()
    }

    /// Stops the server and removes the folder.
    ///
    /// # Errors
    /// The server does not end in time, or a file cannot be removed.
    pub fn stop(self) -> Result<()> {
        end_leftover(&self.folder.join("data"))?;
        std::fs::remove_dir_all(&self.folder).map_err(Error::file("remove", &self.folder))?;
        // The parent goes with the last cluster of its test run.
        let _ = self.folder.parent().map(std::fs::remove_dir);
        Ok(())
    }
}

impl Cluster {
    /// Leaves the server running and the folder in place when this value is dropped, and prints how
    /// to connect.
    ///
    /// # Errors
    /// The instructions cannot be written.
    pub fn keep(&mut self) -> Result<()> {
        let is_running = self.is_running();
        let instructions = self.instructions(is_running);
        let marker = place::kept_marker(self.folder());
        std::fs::write(&marker, &instructions).map_err(Error::file("write", marker))?;
        eprintln!("{instructions}");
        self.leave_running();
        Ok(())
    }

    fn instructions(&self, is_running: bool) -> String {
        let state = match is_running {
            true => "is running",
            false => "is kept but its server is not running",
        };
        format!(
            "the cluster `{}` {state}; `cargo dev kept stop` stops and removes it\n  \
             psql    {} '{}'\n  \
             gdb     in psql: SELECT pg_backend_pid(); then: gdb --pid=<that number>\n  \
             log     {}\n  \
             folder  {}",
            self.name,
            self.programs().join("psql").display(),
            self.connection_string("postgres"),
            self.log().display(),
            self.folder().display(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{is_alive, run};
    use std::process::Command;

    fn start(name: &str) -> Cluster {
        let builder = Cluster::builder(name).without_extension();
        builder.start().unwrap()
    }

    fn find(folder: &Path) -> Option<KeptCluster> {
        let mut all = KeptCluster::all().unwrap().into_iter();
        all.find(|kept| kept.folder() == folder)
    }

    #[test]
    fn the_cluster_of_a_failed_test_runs_until_it_is_stopped() {
        let mut cluster = start("harness_kept");
        cluster.keep_on_failure(true);
        let (folder, postmaster) = (cluster.folder().to_owned(), cluster.postmaster().unwrap());
        let psql = cluster.programs().join("psql");
        let connection = cluster.connection_string("postgres");
        let failed = std::thread::spawn(move || {
            let _cluster = cluster;
            panic!("a planned failure");
        });
        assert!(failed.join().is_err());

        let kept = find(&folder).expect("the cluster is listed");
        assert!(kept.is_running() && kept.name() == "harness_kept");
        let instructions = kept.instructions();
        assert!(
            instructions.contains(&connection) && instructions.contains("gdb --pid"),
            "{instructions}"
        );
        let query = ["-At", "-c", "SELECT 6 * 7"];
        let answer = run(Command::new(psql).arg(connection).args(query)).unwrap();
        assert_eq!(answer.trim(), "42");

        kept.stop().unwrap();
        assert!(!is_alive(postmaster) && !folder.exists());
        assert!(find(&folder).is_none());
    }

    #[test]
    fn a_failed_test_leaves_no_cluster_unless_requested() {
        let mut cluster = start("harness_not_kept");
        cluster.keep_on_failure(false);
        let (folder, postmaster) = (cluster.folder().to_owned(), cluster.postmaster().unwrap());
        let failed = std::thread::spawn(move || {
            let _cluster = cluster;
            panic!("a planned failure");
        });
        assert!(failed.join().is_err());
        assert!(!is_alive(postmaster) && !folder.exists());
    }

    #[test]
    fn a_test_that_passes_leaves_no_cluster_even_if_requested() {
        let mut cluster = start("harness_passed");
        cluster.keep_on_failure(true);
        let (folder, postmaster) = (cluster.folder().to_owned(), cluster.postmaster().unwrap());
        drop(cluster);
        assert!(!is_alive(postmaster) && !folder.exists());
    }

    #[test]
    fn the_variable_requests_it_unless_it_is_empty_or_zero() {
        let cases = [(None, false), (Some(""), false), (Some("0"), false)];
        let more = [(Some("1"), true), (Some("yes"), true)];
        for (value, expected) in cases.into_iter().chain(more) {
            assert_eq!(means_yes(value.map(OsStr::new)), expected, "{value:?}");
        }
    }
}
