//! Certificates, and the file of users.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::CertificateDer;
use std::path::Path;

/// Passwords, and their bcrypt hashes at the least cost.
pub const ALICE: (&str, &str) = (
    "alice-pass-7391",
    "$2b$04$abcdefghijklmnopqrstuu3O71A7q.orkAwX//2vQAjQK0wRSWzZG",
);
pub const ALICE_NEW: (&str, &str) = (
    "alice-new-9917",
    "$2b$04$abcdefghijklmnopqrstuulJLdKtSbpx1JaQGDtoJnE2w5l6bQlU6",
);
pub const BOB: (&str, &str) = (
    "bob-pass-2846",
    "$2b$04$abcdefghijklmnopqrstuuQ/rkWmq61PoJWw7CaOi6Pa3hKq92Ph6",
);
pub const CAROL: (&str, &str) = (
    "carol-pass-5520",
    "$2b$04$abcdefghijklmnopqrstuuQkyyQO00jVOpyESeEuZm1qu06YqlN.2",
);
/// A token and its SHA-256. Its user `feed` has the role `writer`.
pub const FEED: (&str, &str) = (
    "feed-token-48213",
    "fffe4dc280e9fcb0b47295862584a55ff9908f98f392131981944de5addc5f95",
);

/// The header of a user.
pub fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

/// The header of `feed`.
pub fn feed() -> String {
    format!("Bearer {}", FEED.0)
}

/// Writes the file of users, where some have another hash than usual.
pub fn write_users(folder: &Path, changed: &[(&str, &str)]) {
    let hash = |name: &str, usual: &str| {
        let changed = changed.iter().find(|(known, _)| *known == name);
        changed.map_or(usual.to_owned(), |(_, hash)| (*hash).to_owned())
    };
    let text = format!(
        "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\nbasic_auth_users:\n  alice: {}\n  bob: {}\n  carol: {}\nbearer_tokens:\n  feed: {}\npostgres_roles:\n  feed: writer\n",
        hash("alice", ALICE.1),
        hash("bob", BOB.1),
        hash("carol", CAROL.1),
        FEED.1
    );
    std::fs::write(folder.join("web.yml"), text).unwrap();
}

/// An authority that signs the certificates of servers and clients.
pub struct Authority {
    certificate: CertificateDer<'static>,
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key).unwrap();
        Authority {
            certificate: certificate.der().clone(),
            pem: certificate.pem(),
            issuer: Issuer::new(parameters, key),
        }
    }

    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Writes the certificate of the authority itself.
    pub fn write(&self, file: &Path) {
        std::fs::write(file, &self.pem).unwrap();
    }

    /// Writes a new certificate of `localhost` and its key.
    pub fn write_server(&self, folder: &Path) {
        let parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        self.write_signed(parameters, &folder.join("server"));
    }

    /// Writes a new certificate with which a role logs in to PostgreSQL, and its key.
    pub fn write_client(&self, folder: &Path, role: &str) {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, role);
        self.write_signed(parameters, &folder.join(role));
    }

    fn write_signed(&self, parameters: CertificateParams, path: &Path) {
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(path.with_extension("crt"), certificate.pem()).unwrap();
        std::fs::write(path.with_extension("key"), key.serialize_pem()).unwrap();
    }
}
