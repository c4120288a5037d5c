//! The file of `listen.web_config`: Prometheus's web configuration, with three sections of our own.
//!
//! ```yaml
//! tls_server_config:
//!   cert_file: server.crt        # paths are relative to the folder of this file
//!   key_file: server.key
//!   client_auth_type: RequireAndVerifyClientCert
//!   client_ca_file: clients.crt
//!   min_version: TLS12
//!   max_version: TLS13
//! basic_auth_users:
//!   alice: $2y$10$…              # bcrypt
//! bearer_tokens:
//!   feed: 5e884898da28…          # SHA-256 of the token, in hexadecimal digits
//! postgres_roles:
//!   feed: writer                 # by default a user has the role of its own name
//! write_limits:
//!   feed: {samples_per_second: 10000, series_max: 50000}   # by default those of section users
//! ```
//!
//! Keys that are not listed here are refused by name. Messages never contain a value of the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use bcrypt::HashParts;
use serde::Deserialize;
use serde_saphyr::Error as YamlError;
use thiserror::Error;

use super::user::{User, check_role};
use crate::quota::limits::{Limit, OwnLimits};

/// The maximum length of the file, in bytes.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// The largest cost of a hash. A password takes about a tenth of a second at cost 10, and twice as
/// long with each step.
const COST_MAX: u32 = 16;

/// Why the file cannot be used.
#[derive(Debug, Error)]
pub enum WebConfigError {
    /// A file cannot be read.
    #[error("{path:?}: {source}")]
    Read {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is too long.
    #[error("{0:?} is longer than {FILE_BYTES_MAX} bytes")]
    TooLong(PathBuf),
    /// The file is no YAML of this form.
    #[error("line {line}: {reason}")]
    Syntax {
        /// The line; 0 if it is unknown.
        line: u64,
        /// The problem.
        reason: String,
    },
    /// A value cannot be used.
    #[error("{key}: {reason}")]
    Value {
        /// The key: `section.key`.
        key: String,
        /// The problem.
        reason: String,
    },
    /// The file allows more than the address may have.
    #[error("{0}")]
    TooOpen(String),
}

/// Which client certificates are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuth {
    /// None.
    No,
    /// One that a client sends has to be valid.
    IfGiven,
    /// Every client has to send a valid one.
    Required,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// The section `tls_server_config`, with absolute paths or such relative to the current folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and those that it is signed by.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// The certificates that sign those of clients.
    pub client_ca: Option<PathBuf>,
    /// Which client certificates are wanted.
    pub client_auth: ClientAuth,
    /// The least version.
    pub least: TlsVersion,
    /// The greatest version.
    pub greatest: TlsVersion,
}

/// The content of the file.
pub struct WebConfig {
    /// TLS, if it is served.
    pub tls: Option<TlsFiles>,
    /// Users with their bcrypt hashes.
    pub passwords: Vec<(Arc<User>, String)>,
    /// Users with the SHA-256 of their tokens.
    pub tokens: Vec<(Arc<User>, [u8; 32])>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tls_server_config: Option<TlsSection>,
    basic_auth_users: Option<BTreeMap<String, String>>,
    bearer_tokens: Option<BTreeMap<String, String>>,
    postgres_roles: Option<BTreeMap<String, String>>,
    write_limits: Option<BTreeMap<String, BTreeMap<Limit, Option<u64>>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsSection {
    cert_file: Option<String>,
    key_file: Option<String>,
    client_ca_file: Option<String>,
    client_auth_type: Option<String>,
    min_version: Option<String>,
    max_version: Option<String>,
}

/// Parses the text of a file in `folder`.
///
/// # Errors
/// Returns what is wrong, without a value of the file.
pub fn parse(text: &str, folder: &Path) -> Result<WebConfig, WebConfigError> {
    // An empty file is one without sections.
    let file: Option<File> = serde_saphyr::from_str(text).map_err(|error| syntax(&error))?;
    let file = file.unwrap_or(File {
        tls_server_config: None,
        basic_auth_users: None,
        bearer_tokens: None,
        postgres_roles: None,
        write_limits: None,
    });
    let tls = file.tls_server_config.map(|section| tls(section, folder));
    let passwords = file.basic_auth_users.unwrap_or_default();
    let tokens = file.bearer_tokens.unwrap_or_default();
    let roles = file.postgres_roles.unwrap_or_default();
    let limits = limits(file.write_limits.unwrap_or_default())?;
    let of_roles = roles.keys().map(|name| ("postgres_roles", name));
    let of_limits = limits.keys().map(|name| ("write_limits", name));
    if let Some((section, name)) = of_roles
        .chain(of_limits)
        .find(|(_, name)| !passwords.contains_key(*name) && !tokens.contains_key(*name))
    {
        let reason = "neither basic_auth_users nor bearer_tokens has this user".to_owned();
        return Err(value(&format!("{section}.{name}"), reason));
    }
    let user = |section: &str, name: &str| -> Result<Arc<User>, WebConfigError> {
        let role = roles.get(name).map_or(name, String::as_str);
        let key = match roles.contains_key(name) {
            true => format!("postgres_roles.{name}"),
            false => format!("{section}.{name}"),
        };
        check_role(role).map_err(|reason| value(&key, reason))?;
        Ok(Arc::new(User {
            name: name.to_owned(),
            role: role.into(),
            limits: limits.get(name).copied().unwrap_or_default(),
        }))
    };
    let passwords = passwords.into_iter().map(|(name, hash)| {
        let key = format!("basic_auth_users.{name}");
        if name.contains(':') {
            return Err(value(&key, "a name has no colon".to_owned()));
        }
        check_hash(&hash).map_err(|reason| value(&key, reason))?;
        Ok((user("basic_auth_users", &name)?, hash))
    });
    let tokens = tokens.into_iter().map(|(name, digits)| {
        let key = format!("bearer_tokens.{name}");
        let digest = digest(&digits).ok_or_else(|| {
            let reason = "must be the SHA-256 of the token, as 64 hexadecimal digits: printf %s TOKEN | sha256sum";
            value(&key, reason.to_owned())
        })?;
        Ok((user("bearer_tokens", &name)?, digest))
    });
    Ok(WebConfig {
        tls: tls.transpose()?,
        passwords: passwords.collect::<Result<_, _>>()?,
        tokens: tokens.collect::<Result<_, _>>()?,
    })
}

fn limits(
    section: BTreeMap<String, BTreeMap<Limit, Option<u64>>>,
) -> Result<BTreeMap<String, OwnLimits>, WebConfigError> {
    let limits = section.into_iter().map(|(name, section)| {
        OwnLimits::of(section)
            .map_err(|limit| {
                let key = format!("write_limits.{name}.{}", limit.name());
                value(&key, format!("must be at most {}", limit.most()))
            })
            .map(|limits| (name.clone(), limits))
    });
    limits.collect()
}

fn value(key: &str, reason: String) -> WebConfigError {
    WebConfigError::Value {
        key: key.to_owned(),
        reason,
    }
}

/// Converts an error of the parser, whose own text may show lines of the file.
fn syntax(error: &YamlError) -> WebConfigError {
    let reason = match error.without_snippet() {
        YamlError::SerdeUnknownField {
            field, expected, ..
        } => format!("unknown key {field}; known are {}", expected.join(", ")),
        YamlError::DuplicateMappingKey { key: Some(key), .. } => format!("{key} is there twice"),
        YamlError::DuplicateMappingKey { .. } => "a key is there twice".to_owned(),
        _ => "not YAML of the form section, name: text, or of numbers in write_limits".to_owned(),
    };
    WebConfigError::Syntax {
        line: error.location().map_or(0, |location| location.line()),
        reason,
    }
}

fn check_hash(hash: &str) -> Result<(), String> {
    let is_known = ["$2a$", "$2b$", "$2y$"]
        .iter()
        .any(|start| hash.starts_with(start));
    let parts = HashParts::from_str(hash);
    match parts {
        Ok(parts) if is_known && (4..=COST_MAX).contains(&parts.get_cost()) => Ok(()),
        Ok(parts) if is_known && parts.get_cost() > COST_MAX => {
            Err(format!("the cost of the hash is greater than {COST_MAX}"))
        }
        _ => Err("must be a bcrypt hash ($2a$, $2b$ or $2y$): htpasswd -nBC 10 ''".to_owned()),
    }
}

fn digest(digits: &str) -> Option<[u8; 32]> {
    let digits = digits.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |place: usize| char::from(*pair.get(place)?).to_digit(16);
        *byte = u8::try_from(16 * digit(0)? + digit(1)?).ok()?;
    }
    Some(digest)
}

fn tls(section: TlsSection, folder: &Path) -> Result<TlsFiles, WebConfigError> {
    let key = |name: &str| format!("tls_server_config.{name}");
    let path = |name: &str, file: Option<String>| match file {
        // An absolute path replaces the folder.
        Some(file) if !file.is_empty() => Ok(folder.join(file)),
        _ => Err(value(&key(name), "must name a file".to_owned())),
    };
    let client_ca = match section.client_ca_file {
        Some(file) if !file.is_empty() => Some(folder.join(file)),
        _ => None,
    };
    let client_auth = match section.client_auth_type.as_deref() {
        None | Some("" | "NoClientCert") => ClientAuth::No,
        Some("VerifyClientCertIfGiven") => ClientAuth::IfGiven,
        Some("RequireAndVerifyClientCert") => ClientAuth::Required,
        Some("RequestClientCert" | "RequireAnyClientCert") => {
            let reason = "certificates that nobody verifies are not supported; use VerifyClientCertIfGiven or RequireAndVerifyClientCert";
            return Err(value(&key("client_auth_type"), reason.to_owned()));
        }
        Some(_) => {
            let reason =
                "is none of NoClientCert, VerifyClientCertIfGiven and RequireAndVerifyClientCert";
            return Err(value(&key("client_auth_type"), reason.to_owned()));
        }
    };
    match (client_auth, &client_ca) {
        (ClientAuth::No, Some(_)) => {
            let reason = "client_ca_file has no effect without it; use RequireAndVerifyClientCert";
            return Err(value(&key("client_auth_type"), reason.to_owned()));
        }
        (ClientAuth::IfGiven | ClientAuth::Required, None) => {
            let reason = "must name a file, because client_auth_type wants certificates verified";
            return Err(value(&key("client_ca_file"), reason.to_owned()));
        }
        _ => {}
    }
    let least = version(&key("min_version"), section.min_version, TlsVersion::Tls12)?;
    let greatest = version(&key("max_version"), section.max_version, TlsVersion::Tls13)?;
    if least > greatest {
        let reason = "is greater than max_version".to_owned();
        return Err(value(&key("min_version"), reason));
    }
    Ok(TlsFiles {
        certificate: path("cert_file", section.cert_file)?,
        key: path("key_file", section.key_file)?,
        client_ca,
        client_auth,
        least,
        greatest,
    })
}

fn version(
    key: &str,
    text: Option<String>,
    default: TlsVersion,
) -> Result<TlsVersion, WebConfigError> {
    match text.as_deref() {
        None => Ok(default),
        Some("TLS12") => Ok(TlsVersion::Tls12),
        Some("TLS13") => Ok(TlsVersion::Tls13),
        Some("TLS10" | "TLS11") => {
            let reason = "TLS 1.0 and 1.1 are not supported; use TLS12 or TLS13".to_owned();
            Err(value(key, reason))
        }
        Some(_) => Err(value(key, "is neither TLS12 nor TLS13".to_owned())),
    }
}

#[cfg(test)]
#[path = "web_config_tests.rs"]
mod tests;
