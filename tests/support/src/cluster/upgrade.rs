//! pg_upgrade: the move of a cluster's data to the same or a later version of PostgreSQL.

use super::running::Cluster;
use crate::error::{Error, Result};
use crate::process::{run, tail};
use std::path::{Path, PathBuf};

impl Cluster {
    /// Copies the data of this cluster into an empty one by pg_upgrade. Both are stopped, and have been started once,
    /// so that their settings are written.
    pub fn upgrade_into(&self, new: &Cluster) -> Result<()> {
        let mut command = new.account.command(new.programs.join("pg_upgrade"));
        command.args(["--username=postgres", "--retain"]);
        command.arg("--old-bindir").arg(&self.programs);
        command.arg("--new-bindir").arg(&new.programs);
        command.arg("--old-datadir").arg(&self.layout.data);
        command.arg("--new-datadir").arg(&new.layout.data);
        command.arg("--socketdir").arg(&new.layout.socket);
        command.arg("--old-port").arg(self.port.to_string());
        command.arg("--new-port").arg(new.port.to_string());
        // It writes scripts into the current folder.
        command.current_dir(&new.layout.folder);
        run(&mut command).map(drop).map_err(|error| {
            let logs = logs_below(&new.layout.data.join("pg_upgrade_output.d"));
            let ends = logs
                .iter()
                .map(|log| format!("{}:\n{}", log.display(), tail(log)));
            let ends: Vec<String> = ends.collect();
            Error::Other(format!("{error}\n{}", ends.join("\n")))
        })
    }
}

/// Returns the files below a folder that pg_upgrade has written.
fn logs_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(logs_below(&path)),
            false => found.push(path),
        }
    }
    found
}
