//! The demands of TLS keys for a server: which modes are tried, and what is verified.
//!
//! | `sslmode` | first attempt | second attempt | verified |
//! |---|---|---|---|
//! | `disable` | without TLS | | |
//! | `allow` | without TLS | with TLS | the authority, if `sslrootcert` is a file |
//! | `prefer` | with TLS if the server has it | without TLS | the same |
//! | `require` | with TLS | | the same |
//! | `verify-ca` | with TLS | | the authority |
//! | `verify-full` | with TLS | | the authority and the host name |
//!
//! These are libpq's meanings. The defaults are not libpq's:
//!
//! | server | default |
//! |---|---|
//! | named with `sslrootcert` | `verify-full` |
//! | a Unix socket | `disable`; libpq and PostgreSQL have no TLS there |
//! | a loopback address, `localhost` | `allow`: as fast as without TLS, and possible if the server demands TLS |
//! | any other | `verify-full`, by the authorities of the system |

use std::path::PathBuf;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::ssl_keys::SslKeys;

/// The checks of a server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Nothing: TLS protects only from those who listen.
    Nothing,
    /// Whether a known authority has signed it.
    Authority,
    /// The authority, and that the certificate is for the host of the connection.
    AuthorityAndName,
}

/// The authorities that may have signed a server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Roots {
    /// The authorities of the operating system.
    System,
    /// The authorities in a file.
    File(PathBuf),
}

/// The demands of a connection on TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// The first attempt.
    pub first: SslMode,
    /// The second attempt, after the first was refused for its mode.
    pub second: Option<SslMode>,
    /// The checks of the server's certificate.
    pub check: Check,
    /// The authorities.
    pub roots: Roots,
    /// The certificate of the gateway and its private key, for servers that ask for one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Where the servers of a connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Sockets,
    Loopback,
    Network,
    /// At least one is a socket, and at least one is in the network.
    SocketsAndNetwork,
}

impl Demand {
    /// Returns what keys demand for the servers of a connection.
    ///
    /// # Errors
    /// Returns why the keys cannot be kept.
    pub fn new(keys: SslKeys, connection: &Config) -> Result<Self, String> {
        let place = place(connection);
        let identity = match (keys.certificate, keys.key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate.into(), key.into())),
            (Some(_), None) => return Err("sslcert needs sslkey, its private key".to_owned()),
            (None, Some(_)) => return Err("sslkey needs sslcert, its certificate".to_owned()),
        };
        let mode = match (&keys.mode, place) {
            (_, Place::Sockets) => "disable",
            (Some(mode), _) => mode,
            (None, _) if keys.root.is_some() => "verify-full",
            (None, Place::Loopback) => "allow",
            (None, _) => "verify-full",
        };
        let roots = match keys.root {
            Some(root) if root != "system" => Roots::File(root.into()),
            Some(_) if !matches!(mode, "disable" | "verify-full") => {
                return Err(format!(
                    "sslrootcert=system with sslmode={mode}: anyone can have a certificate of these authorities; use \
                        sslmode=verify-full"
                ));
            }
            _ => Roots::System,
        };
        let check = match (mode, &roots) {
            ("verify-full", _) => Check::AuthorityAndName,
            ("verify-ca", _) | (_, Roots::File(_)) => Check::Authority,
            _ => Check::Nothing,
        };
        let (first, second) = match mode {
            "disable" => (SslMode::Disable, None),
            "allow" => (SslMode::Disable, Some(SslMode::Require)),
            "prefer" => (SslMode::Prefer, Some(SslMode::Disable)),
            "require" | "verify-ca" | "verify-full" => (SslMode::Require, None),
            // The value is not repeated, because it may be a part of a password.
            _ => {
                return Err(
                    "sslmode is none of disable, allow, prefer, require, verify-ca and verify-full"
                        .to_owned(),
                );
            }
        };
        if place == Place::SocketsAndNetwork && first == SslMode::Require {
            return Err(
                "sockets have no TLS: name them in a connection of their own, or set sslmode=prefer"
                    .to_owned(),
            );
        }
        Ok(Self {
            first,
            second,
            check,
            roots,
            identity,
        })
    }

    /// Whether any attempt may use TLS.
    pub fn may_use_tls(&self) -> bool {
        self.first != SslMode::Disable || self.second.is_some()
    }
}

/// Returns where the servers are that a connection tries.
fn place(connection: &Config) -> Place {
    let (hosts, addresses) = (connection.get_hosts(), connection.get_hostaddrs());
    let (mut sockets, mut loopback, mut network) = (false, false, false);
    for index in 0..hosts.len().max(addresses.len()) {
        match (addresses.get(index), hosts.get(index)) {
            (Some(address), _) if address.is_loopback() => loopback = true,
            (Some(_), _) => network = true,
            (None, Some(Host::Unix(_))) => sockets = true,
            (None, Some(Host::Tcp(name))) if is_loopback(name) => loopback = true,
            (None, _) => network = true,
        }
    }
    match (sockets, loopback, network) {
        (true, _, true) => Place::SocketsAndNetwork,
        (_, _, true) => Place::Network,
        (true, false, false) => Place::Sockets,
        // Without any host, no session can be opened.
        _ => Place::Loopback,
    }
}

fn is_loopback(name: &str) -> bool {
    let address = name.parse::<std::net::IpAddr>();
    address.map_or(name.eq_ignore_ascii_case("localhost"), |address| {
        address.is_loopback()
    })
}

#[cfg(test)]
mod tests {
    use super::super::ssl_keys;
    use super::*;

    fn demand(text: &str) -> Result<Demand, String> {
        let (keys, rest) = ssl_keys::take(text)?;
        Demand::new(keys, &rest.parse().unwrap())
    }

    #[test]
    fn servers_in_the_network_are_verified_unless_less_is_asked_for() {
        use Check::{Authority, AuthorityAndName, Nothing};
        use SslMode::{Disable, Prefer, Require};
        for (text, first, second, check) in [
            ("host=db.example.org", Require, None, AuthorityAndName),
            ("host=10.0.0.1", Require, None, AuthorityAndName),
            ("postgres://db/lanes", Require, None, AuthorityAndName),
            (
                "host=localhost hostaddr=10.0.0.1",
                Require,
                None,
                AuthorityAndName,
            ),
            ("host=127.0.0.1,10.0.0.1", Require, None, AuthorityAndName),
            ("host=db sslmode=disable", Disable, None, Nothing),
            ("host=db sslmode=allow", Disable, Some(Require), Nothing),
            ("host=db sslmode=prefer", Prefer, Some(Disable), Nothing),
            ("host=db sslmode=require", Require, None, Nothing),
            (
                "host=db sslmode=require sslrootcert=f",
                Require,
                None,
                Authority,
            ),
            (
                "host=db sslmode=verify-ca sslrootcert=f",
                Require,
                None,
                Authority,
            ),
            (
                "host=db sslmode=verify-full",
                Require,
                None,
                AuthorityAndName,
            ),
            ("host=127.0.0.1", Disable, Some(Require), Nothing),
            ("host=LocalHost", Disable, Some(Require), Nothing),
            ("host=::1", Disable, Some(Require), Nothing),
            (
                "host=db hostaddr=127.0.0.1",
                Disable,
                Some(Require),
                Nothing,
            ),
            (
                "host=127.0.0.1 sslrootcert=f",
                Require,
                None,
                AuthorityAndName,
            ),
            (
                "host=127.0.0.1 sslrootcert=system",
                Require,
                None,
                AuthorityAndName,
            ),
            ("host=/run/postgresql", Disable, None, Nothing),
            (
                "host=/run/postgresql sslmode=verify-full",
                Disable,
                None,
                Nothing,
            ),
            (
                "host=/run/postgresql,db sslmode=prefer",
                Prefer,
                Some(Disable),
                Nothing,
            ),
        ] {
            let demand = demand(text).unwrap();
            let got = (demand.first, demand.second, demand.check);
            assert_eq!(got, (first, second, check), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        for (text, expected) in [
            ("host=db sslmode=secret", "sslmode is none of"),
            ("host=db sslcert=c", "needs sslkey"),
            ("host=db sslkey=k", "needs sslcert"),
            (
                "host=db sslmode=require sslrootcert=system",
                "use sslmode=verify-full",
            ),
            ("host=/run/postgresql,db", "sockets have no TLS"),
        ] {
            let error = demand(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
