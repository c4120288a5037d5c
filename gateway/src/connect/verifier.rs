//! The check of a server's certificate: of nothing, of its authority, or of its name too.
//!
//! Whatever is checked, the server has to prove that it has the private key of its certificate.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::tls::Check;

/// A check with the authorities that it knows.
#[derive(Debug)]
pub struct Verifier {
    check: Check,
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    /// Returns a verifier. `roots` may be empty if nothing is checked.
    pub fn new(check: Check, roots: RootCertStore, provider: &CryptoProvider) -> Arc<Self> {
        Arc::new(Self {
            check,
            roots,
            algorithms: provider.signature_verification_algorithms,
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.check == Check::Nothing {
            return Ok(ServerCertVerified::assertion());
        }
        let certificate = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.roots,
            intermediates,
            now,
            algorithms,
        )?;
        if self.check == Check::AuthorityAndName {
            verify_server_name(&certificate, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::reason::of_certificate;
    use super::super::test_certificates::Authority;
    use super::*;

    /// The error of a check of a certificate for the host `db`, in words.
    fn refused(check: Check, known: &Authority, certificate: &rcgen::Certificate) -> String {
        let mut roots = RootCertStore::empty();
        roots.add(known.certificate.der().clone()).unwrap();
        let provider = rustls::crypto::ring::default_provider();
        let verifier = Verifier::new(check, roots, &provider);
        let name = ServerName::try_from("db").unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_700_000_000));
        let verified = verifier.verify_server_cert(certificate.der(), &[], &name, &[], now);
        match verified {
            Ok(_) => String::new(),
            Err(Error::InvalidCertificate(error)) => of_certificate(&error),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn each_mode_checks_what_it_says() {
        let (known, other) = (Authority::new(), Authority::new());
        let right = known.sign("db", 2100).0;
        let elsewhere = known.sign("other", 2100).0;
        let expired = known.sign("db", 2020).0;
        let unknown = other.sign("db", 2100).0;
        let authority = &known.certificate;
        for (certificate, words) in [
            (&elsewhere, "not for this host, but for "),
            (&expired, "has expired; renew it"),
            (
                &unknown,
                "signed by no known authority; name the authority's file in sslrootcert",
            ),
            (authority, "is that of an authority; sign a certificate"),
        ] {
            assert_eq!(refused(Check::Nothing, &known, certificate), "");
            let by_authority = refused(Check::Authority, &known, certificate);
            match std::ptr::eq(certificate, &elsewhere) {
                true => assert_eq!(by_authority, ""),
                false => assert!(by_authority.contains(words), "{by_authority}"),
            }
            let by_name = refused(Check::AuthorityAndName, &known, certificate);
            assert!(by_name.contains(words), "{by_name}");
        }
        for check in [Check::Nothing, Check::Authority, Check::AuthorityAndName] {
            assert_eq!(refused(check, &known, &right), "");
        }
    }
}
