//! The description of a cluster to be created.

use super::layout::Layout;
use super::running::Cluster;
use crate::account::Account;
use crate::error::Result;
use crate::installation::Postgres;
use crate::{place, port};
use std::path::{Path, PathBuf};

/// The properties of a cluster. [`Cluster::builder`] creates one with defaults.
#[derive(Debug, Clone)]
pub struct Builder {
    pub(super) name: String,
    folder: Option<PathBuf>,
    port: Option<u16>,
    extension: bool,
    durable: bool,
    is_distinct: bool,
    settings: Vec<(String, String)>,
    postgres: Option<Postgres>,
}

impl Builder {
    pub(super) fn new(name: &str) -> Builder {
        Builder {
            name: name.to_owned(),
            folder: None,
            port: None,
            extension: true,
            durable: false,
            is_distinct: false,
            settings: Vec::new(),
            postgres: None,
        }
    }

    /// Creates the cluster in this folder and leaves the folder in place.
    ///
    /// Without a folder the cluster is temporary: its folder is removed with the value, unless the
    /// test fails and `LANES_KEEP` is set (see [`kept`](super::kept)).
    pub fn folder(mut self, folder: &Path) -> Builder {
        self.folder = Some(folder.to_owned());
        self
    }

    /// Runs the programs of this installation. By default it is the [chosen](Postgres::chosen) one.
    pub fn postgres(mut self, postgres: &Postgres) -> Builder {
        self.postgres = Some(postgres.clone());
        self
    }

    /// Listens on this port. By default a free port is used.
    pub fn port(mut self, port: u16) -> Builder {
        self.port = Some(port);
        self
    }

    /// Does not load the extension's library, which then need not be installed.
    pub fn without_extension(mut self) -> Builder {
        self.extension = false;
        self
    }

    /// Waits for the disk, as a production cluster does. Test clusters do not (`fsync = off`): the
    /// operating system keeps what a killed process has written, so crash tests are equally valid.
    pub fn durable(mut self) -> Builder {
        self.durable = true;
        self
    }

    /// Gives the cluster its own system identifier. By default all temporary clusters are copies of
    /// one cluster.
    pub fn distinct(mut self) -> Builder {
        self.is_distinct = true;
        self
    }

    /// Adds a line to `postgresql.conf`. The last one for a name wins.
    pub fn setting(mut self, name: &str, value: &str) -> Builder {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Disables automatic sealing and vacuuming, and lets manual sealing seal any number of rows.
    pub fn sealed_by_hand(self) -> Builder {
        self.setting("autovacuum", "off")
            .setting("lanes.seal_naptime", "0")
            .setting("lanes.seal_rows", "1")
    }

    /// Creates the cluster unless it exists, and starts it.
    pub fn start(self) -> Result<Cluster> {
        let mut cluster = self.create()?;
        cluster.start()?;
        Ok(cluster)
    }

    /// Creates the cluster unless it exists, without starting it.
    pub fn create(self) -> Result<Cluster> {
        let account = Account::for_postgres()?;
        let postgres = match &self.postgres {
            Some(postgres) => postgres.clone(),
            None => Postgres::chosen()?,
        };
        postgres.require_server()?;
        if self.extension {
            postgres.require_extension()?;
        }
        let temporary = self.folder.is_none();
        let folder = match &self.folder {
            Some(folder) => {
                place::make_folder(folder)?;
                account.make_owner_of(folder)?;
                folder.clone()
            }
            None => place::test_folder(&self.name, &account)?,
        };
        let layout = Layout::new(&folder);
        let port = match self.port {
            Some(port) => port,
            None => port::free()?,
        };
        let mut settings = self.base_settings();
        settings.extend(self.settings);
        let mut cluster = Cluster::new(
            self.name,
            account,
            postgres.programs,
            layout,
            port,
            settings,
            temporary,
        );
        cluster.is_distinct = self.is_distinct;
        cluster.make_data()?;
        Ok(cluster)
    }

    fn base_settings(&self) -> Vec<(String, String)> {
        let mut settings = vec![
            ("listen_addresses", "127.0.0.1"),
            ("password_encryption", "scram-sha-256"),
            ("log_line_prefix", "%m [%p] %q%u@%d "),
            ("max_prepared_transactions", "20"),
            ("timezone", "UTC"),
        ];
        if !self.durable {
            settings.extend([("fsync", "off"), ("shared_buffers", "32MB")]);
            // A statement that waits for ever then fails, and the test reports the statement.
            settings.push(("statement_timeout", "5min"));
        }
        if self.extension {
            settings.push(("shared_preload_libraries", "lanes"));
            if !self.durable {
                // Nothing is sealed unless the test requests it.
                settings.push(("lanes.seal_naptime", "0"));
            }
        }
        settings
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}
