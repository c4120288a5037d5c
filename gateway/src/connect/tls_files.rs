//! Certificates and keys as the settings of a TLS client, read again when they change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls::{Check, Demand, Roots};
use super::verifier::Verifier;
use crate::stamp::Stamp;

/// The protocol inside TLS, as servers from PostgreSQL 17 on know it. Earlier ones ignore it.
const PROTOCOL: &[u8] = b"postgresql";

/// The settings of TLS for one connection, as its files have them.
pub struct TlsFiles {
    demand: Demand,
    current: Mutex<(Stamp, MakeRustlsConnect)>,
}

impl TlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// Returns the file that cannot be used, and why.
    pub fn load(demand: Demand) -> Result<Self, String> {
        let current = (stamp(&demand), read(&demand)?);
        Ok(Self {
            demand,
            current: Mutex::new(current),
        })
    }

    /// The demands of the connection on TLS.
    pub fn demand(&self) -> &Demand {
        &self.demand
    }

    /// Returns the settings for a new session. Files that have changed are read again, and those
    /// that cannot be used change nothing.
    pub fn current(&self) -> MakeRustlsConnect {
        let stamp = stamp(&self.demand);
        let mut current = self.current.lock();
        if current.0 != stamp {
            match read(&self.demand) {
                Ok(settings) => {
                    tracing::info!("the certificates for PostgreSQL were read again");
                    current.1 = settings;
                }
                Err(reason) => tracing::error!(
                    "the certificates for PostgreSQL cannot be used, those read before stay: {reason}"
                ),
            }
            current.0 = stamp;
        }
        current.1.clone()
    }
}

/// The stamp of the files that a demand names. The authorities of the system are read once.
fn stamp(demand: &Demand) -> Stamp {
    let roots = match &demand.roots {
        Roots::System => None,
        Roots::File(path) => Some(path),
    };
    let identity = demand.identity.iter().flat_map(|(cert, key)| [cert, key]);
    Stamp::of(roots.into_iter().chain(identity).map(PathBuf::as_path))
}

fn read(demand: &Demand) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = match (&demand.roots, demand.check) {
        _ if !demand.may_use_tls() => RootCertStore::empty(),
        (_, Check::Nothing) => RootCertStore::empty(),
        (Roots::System, _) => system_roots()?,
        (Roots::File(path), _) => roots(path)?,
    };
    let verifier = Verifier::new(demand.check, roots, &provider);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        // The check of the authority alone is one that rustls does not have.
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match &demand.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates("sslcert", certificate)?;
            builder
                .with_client_auth_cert(chain, private_key(key)?)
                .map_err(|error| {
                    format!("sslcert {certificate:?} and sslkey {key:?} do not fit: {error}")
                })?
        }
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(MakeRustlsConnect::new(config))
}

fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Some systems have certificates among them that nobody can use.
    let (added, _) = roots.add_parsable_certificates(found.certs);
    match added {
        0 => Err(
            "this system knows no authorities: install its package ca-certificates, or name a file in sslrootcert"
                .to_owned(),
        ),
        _ => Ok(roots),
    }
}

fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("sslrootcert", path)? {
        let added = roots.add(certificate);
        added.map_err(|error| format!("sslrootcert {path:?}: {error}"))?;
    }
    Ok(roots)
}

/// Returns the certificates of a PEM file; at least one.
fn certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("{key} {path:?}: {}", words(error)))?;
    match certificates.is_empty() {
        true => Err(format!("{key} {path:?} has no certificate in PEM")),
        false => Ok(certificates),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        pem::Error::NoItemsFound => format!(
            "sslkey {path:?} has no private key in PEM without a password; to remove one, run openssl pkey -in KEY \
                -out NEW"
        ),
        error => format!("sslkey {path:?}: {}", words(error)),
    })
}

/// The error of reading a file. Its own words would name the kind of the error in Rust.
fn words(error: pem::Error) -> String {
    match error {
        pem::Error::Io(error) => format!("the gateway cannot read it: {error}"),
        error => error.to_string(),
    }
}

#[cfg(test)]
#[path = "tls_files_tests.rs"]
mod tests;
