//! The files of a cluster, and its settings.
//!
//! ```text
//! <folder>/data/           the data folder (0700), created by initdb
//!          data/lanes.conf our settings, written at each start; included at the end of postgresql.conf
//! <folder>/socket/         the Unix socket (or a short folder under /tmp if the path would be too long)
//! <folder>/postgres.log    the server's log
//! ```

use crate::account::Account;
use crate::error::{Error, Result};
use crate::place;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The paths of one cluster.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) folder: PathBuf,
    pub(super) data: PathBuf,
    pub(super) socket: PathBuf,
    pub(super) log: PathBuf,
}

impl Layout {
    pub(super) fn new(folder: &Path) -> Layout {
        Layout {
            folder: folder.to_owned(),
            data: folder.join("data"),
            socket: place::socket_folder(folder),
            log: folder.join("postgres.log"),
        }
    }

    /// Whether the data folder is complete: our include line is written last.
    pub(super) fn is_made(&self) -> bool {
        std::fs::read_to_string(self.data.join("postgresql.conf"))
            .is_ok_and(|text| text.contains(INCLUDE))
    }

    /// Adds our files to a data folder that initdb has created.
    pub(super) fn adopt(&self, account: &Account) -> Result<()> {
        self.write("pg_hba.conf", HOST_BASED_ACCESS, account)?;
        self.write("pg_ident.conf", &admin_map(account), account)?;
        self.write("lanes.conf", "", account)?;
        let path = self.data.join("postgresql.conf");
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .map_err(Error::file("open", &path))?;
        writeln!(file, "\n{INCLUDE}").map_err(Error::file("write", &path))
    }

    /// Writes the settings for the next start.
    pub(super) fn write_settings(
        &self,
        port: u16,
        settings: &[(String, String)],
        account: &Account,
    ) -> Result<()> {
        let socket = self.socket.to_string_lossy().into_owned();
        let mut text =
            "# Written at each start; put lasting settings of your own into postgresql.conf.\n"
                .to_owned();
        let own = [
            ("port".to_owned(), port.to_string()),
            ("unix_socket_directories".to_owned(), socket),
        ];
        for (name, value) in own.iter().chain(settings) {
            text.push_str(&format!("{name} = '{}'\n", value.replace('\'', "''")));
        }
        self.write("lanes.conf", &text, account)?;
        place::make_folder(&self.socket)?;
        account.make_owner_of(&self.socket)
    }

    /// Writes a file in the data folder.
    pub(super) fn write(&self, name: &str, text: &str, account: &Account) -> Result<()> {
        let path = self.data.join(name);
        place::write_private(&path, text)?;
        account.make_owner_of(&path)
    }
}

const INCLUDE: &str = "include 'lanes.conf'";

const HOST_BASED_ACCESS: &str = "\
# type  database     user      address       method
local   all          postgres                peer map=admin
local   replication  postgres                peer map=admin
local   all          all                     scram-sha-256
host    all          all       127.0.0.1/32  scram-sha-256
host    all          all       ::1/128       scram-sha-256
";

/// Returns the accounts that may connect as superuser through the socket: the cluster's owner, and
/// root, who has all rights anyway.
fn admin_map(account: &Account) -> String {
    let mut names = vec!["root", "postgres"];
    if !names.contains(&account.name.as_str()) {
        names.push(&account.name);
    }
    names
        .iter()
        .map(|name| format!("admin  \"{name}\"  postgres\n"))
        .collect()
}
