//! Certificates as the settings of a TLS server.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};

use super::web_config::{ClientAuth, TlsFiles, TlsVersion, WebConfigError};

/// The protocol that is negotiated within TLS.
const HTTP_1_1: &[u8] = b"http/1.1";

/// Reads the certificates, and returns the settings of a server that has them.
///
/// # Errors
/// Returns the file that cannot be used, and why.
pub fn server_config(files: &TlsFiles) -> Result<Arc<ServerConfig>, WebConfigError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions: Vec<&SupportedProtocolVersion> = [
        (TlsVersion::Tls12, &version::TLS12),
        (TlsVersion::Tls13, &version::TLS13),
    ]
    .into_iter()
    .filter(|(version, _)| (files.least..=files.greatest).contains(version))
    .map(|(_, version)| version)
    .collect();
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .map_err(|error| wrong("min_version", &files.certificate, &error))?;
    let builder = match (&files.client_ca, files.client_auth) {
        (Some(path), auth @ (ClientAuth::IfGiven | ClientAuth::Required)) => {
            let roots = Arc::new(roots(path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            let verifier = match auth {
                ClientAuth::Required => verifier,
                _ => verifier.allow_unauthenticated(),
            };
            let verifier = verifier
                .build()
                .map_err(|error| wrong("client_ca_file", path, &error))?;
            builder.with_client_cert_verifier(verifier)
        }
        _ => builder.with_no_client_auth(),
    };
    let chain = certificates("cert_file", &files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| wrong("key_file", &files.key, &error))?;
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| wrong("cert_file", &files.certificate, &error))?;
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
    Ok(Arc::new(config))
}

fn roots(path: &Path) -> Result<RootCertStore, WebConfigError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("client_ca_file", path)? {
        roots
            .add(certificate)
            .map_err(|error| wrong("client_ca_file", path, &error))?;
    }
    Ok(roots)
}

/// Returns the certificates of a PEM file; at least one.
fn certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, WebConfigError> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(key, path, &error))?;
    if certificates.is_empty() {
        return Err(wrong(key, path, &"no certificate in PEM"));
    }
    Ok(certificates)
}

fn wrong(key: &str, path: &Path, reason: &dyn std::fmt::Display) -> WebConfigError {
    WebConfigError::Value {
        key: format!("tls_server_config.{key}"),
        reason: format!("{path:?}: {reason}"),
    }
}
