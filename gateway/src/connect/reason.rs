//! The words for an error of the driver: what happened, and for TLS the remedy.

use std::error::Error as StdError;

use rustls::{AlertDescription, CertificateError, Error as TlsError};
use tokio_postgres::Error;

/// The cause in `tokio-postgres` if a server has no TLS.
const NO_TLS: &str = "server does not support TLS";

/// Describes an error that is not one of the database.
pub fn reason(error: &Error) -> String {
    match (error.source(), remedy(error)) {
        (_, Some(remedy)) => format!("PostgreSQL: {remedy}"),
        (Some(source), None) => format!("PostgreSQL: {error}: {source}"),
        (None, None) => format!("PostgreSQL: {error}"),
    }
}

/// Whether TLS with the server failed, or was refused.
pub fn is_of_tls(error: &Error) -> bool {
    tls_error(error).is_some() || has_no_tls(error)
}

fn has_no_tls(error: &Error) -> bool {
    error
        .source()
        .is_some_and(|source| source.to_string() == NO_TLS)
}

/// Returns the error of TLS. An alert may arrive after the handshake, as an error of the socket.
fn tls_error(error: &Error) -> Option<&TlsError> {
    let error = error.source()?.downcast_ref::<std::io::Error>()?;
    error.get_ref()?.downcast_ref()
}

/// Returns what to do about an error of TLS.
fn remedy(error: &Error) -> Option<String> {
    if has_no_tls(error) {
        return Some(
            "the server has no TLS, which sslmode demands; set ssl = on in postgresql.conf, or sslmode=disable in the \
                connection if the network is trusted"
                .to_owned(),
        );
    }
    let error = tls_error(error)?;
    Some(match error {
        TlsError::InvalidCertificate(error) => of_certificate(error),
        TlsError::AlertReceived(alert) => of_alert(*alert),
        _ => format!("TLS failed: {error}"),
    })
}

pub(super) fn of_certificate(error: &CertificateError) -> String {
    match error {
        // An authority of the same name with another key makes the second.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the server's certificate is signed by no known authority; name the authority's file in \
                sslrootcert".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            let names = match error {
                CertificateError::NotValidForNameContext { presented, .. }
                    if !presented.is_empty() =>
                {
                    format!(", but for {}", presented.join(", "))
                }
                _ => String::new(),
            };
            format!(
                "the server's certificate is not for this host{names}; connect to a name of the certificate (hostaddr \
                    may give the address), or set sslmode=verify-ca"
            )
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate, or its authority's, has expired; renew it, or correct this machine's \
                clock".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet; correct this machine's clock".to_owned()
        }
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "the server's certificate is that of an authority; sign a certificate for the server with it".to_owned()
        }
        _ => format!("the server's certificate cannot be verified: {error}"),
    }
}

fn of_alert(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateRequired => {
            "the server demands a client certificate; set sslcert and sslkey".to_owned()
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::DecryptError => {
            "the server does not accept the client certificate; PostgreSQL's ssl_ca_file has to contain the authority \
                that signed sslcert"
                .to_owned()
        }
        AlertDescription::CertificateExpired => {
            "the client certificate (sslcert) has expired; renew it".to_owned()
        }
        alert => format!("the server ended TLS: {alert:?}"),
    }
}
