//! Certificates of tests.

use std::path::PathBuf;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd,
};

/// An authority.
pub struct Authority {
    pub certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self {
            certificate: parameters.self_signed(&key).unwrap(),
            issuer: Issuer::new(parameters, key),
        }
    }

    /// Signs a certificate for a name that ends with a year.
    pub fn sign(&self, name: &str, last_year: i32) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        parameters.not_after = date_time_ymd(last_year, 1, 1);
        (parameters.signed_by(&key, &self.issuer).unwrap(), key)
    }
}

/// A folder that is removed at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let name = format!("lanes-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file, and returns its path.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
