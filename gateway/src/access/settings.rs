//! The file of `listen.web_config`, loaded with its certificates, and what an address wants of it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;

use super::accounts::Accounts;
use super::tls;
use super::web_config::{self, ClientAuth, FILE_BYTES_MAX, WebConfig, WebConfigError};
use crate::stamp::Stamp;

/// Whether an address may be served without TLS and credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// A loopback address, or `listen.insecure`: the file decides.
    Nothing,
    /// Any other address: TLS, and credentials or client certificates.
    Protection,
}

/// The users and certificates of a gateway.
#[derive(Clone)]
pub struct AccessSettings {
    /// The file; `None` if there is none.
    pub path: Option<PathBuf>,
    /// What the address demands.
    pub demand: Demand,
    /// The file as it was at the start.
    pub loaded: Arc<Loaded>,
}

/// A file that can be used.
#[derive(Default)]
pub struct Loaded {
    /// Users and tokens; `None` if no credentials are wanted.
    pub accounts: Option<Arc<Accounts>>,
    /// TLS; `None` if it is not served.
    pub tls: Option<Arc<ServerConfig>>,
}

/// The remedy for an address that others can reach.
const REMEDY: &str = "set listen.web_config to a file with tls_server_config and users, or listen.insecure = true if a proxy or a private network protects the port";

impl AccessSettings {
    /// Loads a file, if one is named.
    ///
    /// # Errors
    /// Returns why the file cannot be used, or that the address demands more.
    pub fn load(path: Option<PathBuf>, demand: Demand) -> Result<Self, WebConfigError> {
        let loaded = match &path {
            Some(path) => load(path, demand)?,
            None if demand == Demand::Protection => {
                let reason =
                    format!("an address other than loopback needs TLS and credentials: {REMEDY}");
                return Err(WebConfigError::TooOpen(reason));
            }
            None => Loaded::default(),
        };
        Ok(Self {
            path,
            demand,
            loaded: Arc::new(loaded),
        })
    }
}

/// Loads a file and its certificates.
///
/// # Errors
/// Returns why the file cannot be used, or that the address demands more.
pub fn load(path: &Path, demand: Demand) -> Result<Loaded, WebConfigError> {
    let config = read(path)?;
    let tls = config.tls.as_ref().map(tls::server_config).transpose()?;
    let knows_clients = config
        .tls
        .as_ref()
        .is_some_and(|tls| tls.client_auth == ClientAuth::Required);
    let accounts = Accounts::new(config.passwords, config.tokens);
    if demand == Demand::Protection {
        let lacks = match (&tls, accounts.is_some() || knows_clients) {
            (None, _) => Some("tls_server_config"),
            (_, false) => Some("basic_auth_users, bearer_tokens or required client certificates"),
            _ => None,
        };
        if let Some(lacks) = lacks {
            return Err(WebConfigError::TooOpen(format!(
                "for an address other than loopback the file needs {lacks}, unless listen.insecure = true"
            )));
        }
    }
    Ok(Loaded {
        accounts: accounts.map(Arc::new),
        tls,
    })
}

fn read(path: &Path) -> Result<WebConfig, WebConfigError> {
    let unreadable = |source| WebConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(WebConfigError::TooLong(path.to_owned()));
    }
    web_config::parse(&text, folder(path))
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// Returns the stamp of a file and of the certificates that it names.
pub fn stamp(path: &Path) -> Stamp {
    let mut files = vec![path.to_owned()];
    if let Ok(WebConfig { tls: Some(tls), .. }) = read(path) {
        files.extend([tls.certificate, tls.key]);
        files.extend(tls.client_ca);
    }
    Stamp::of(files.iter().map(PathBuf::as_path))
}
