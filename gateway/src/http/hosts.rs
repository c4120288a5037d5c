//! The host names that the gateway serves. The check keeps web pages from writing.
//!
//! A page can make its reader's browser send requests to an address that only the reader can reach,
//! such as loopback. Browsers send two headers that a page cannot forge. `Origin` names the site of
//! the page; only the gateway's own site is accepted. `Host` names the server that the browser
//! believes to address. A site that points its own name at the gateway's address (DNS rebinding) is
//! recognised by that name. Addresses and `localhost` cannot be redirected, so they are always
//! served. Other names have to be listed in `listen.hosts`.
//!
//! This is no authentication, which is in [`crate::access`].

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};

use super::Refusal;

/// The host names that are served besides addresses and `localhost`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    names: Vec<String>,
    is_any: bool,
}

impl Hosts {
    /// Parses a comma-separated list of names. `*` stands for any name.
    ///
    /// # Errors
    /// Returns the entry that is not a host name.
    pub fn parse(list: &str) -> Result<Self, String> {
        let mut hosts = Self::default();
        for name in list
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            if name == "*" {
                hosts.is_any = true;
            } else if is_name(name) {
                hosts.names.push(name.to_ascii_lowercase());
            } else {
                return Err(format!(
                    "{name:?} is not a host name without scheme and port, such as gateway.example.org"
                ));
            }
        }
        Ok(hosts)
    }

    /// Refuses requests that a web page of another site makes a browser send.
    ///
    /// # Errors
    /// Returns a 403 that names the refused `Host` or `Origin`, and for a host the setting
    /// `listen.hosts`.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let host = headers.get(HOST).map(|host| host.as_bytes());
        if let Some(host) = host
            && !self.has(host)
        {
            return Err(Refusal::Forbidden(format!(
                "Host {:?} is not served here; if it names this gateway, add it to listen.hosts",
                String::from_utf8_lossy(host)
            )));
        }
        let Some(origin) = headers.get(ORIGIN) else {
            return Ok(());
        };
        // The scheme does not matter: a proxy that terminates TLS does not pass it on in `Host`.
        let site = origin.as_bytes();
        let site = site
            .strip_prefix(b"http://")
            .or_else(|| site.strip_prefix(b"https://"));
        match (site, host) {
            (Some(site), Some(host)) if site.eq_ignore_ascii_case(host) => Ok(()),
            _ => Err(Refusal::Forbidden(format!(
                "a web page of {origin:?} may not send requests to this gateway"
            ))),
        }
    }

    fn has(&self, host: &[u8]) -> bool {
        let name = without_port(host);
        self.is_any
            || name.eq_ignore_ascii_case(b"localhost")
            || is_address(name)
            || self
                .names
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    }
}

/// Whether the text can be a host name.
fn is_name(text: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes().all(is_legal)
}

/// Returns `Host` without its port. An IPv6 address keeps its brackets.
fn without_port(host: &[u8]) -> &[u8] {
    match host.iter().rposition(|byte| *byte == b':') {
        Some(colon) if host[colon + 1..].iter().all(u8::is_ascii_digit) => &host[..colon],
        _ => host,
    }
}

fn is_address(name: &[u8]) -> bool {
    let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
    match name {
        [b'[', inner @ .., b']'] => text(inner).parse::<Ipv6Addr>().is_ok(),
        _ => text(name).parse::<Ipv4Addr>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_served(hosts: &str, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        Hosts::parse(hosts).unwrap().check(&headers).is_ok()
    }

    #[test]
    fn addresses_localhost_and_listed_names_are_served() {
        for host in [
            "127.0.0.1:9201",
            "10.1.2.3",
            "[::1]:9201",
            "[fe80::1]",
            "localhost:9201",
            "LOCALHOST",
        ] {
            assert!(is_served("", host, None), "{host}");
        }
        for host in ["gateway", "gateway:9201", "Gateway.Example.org:80"] {
            assert!(!is_served("", host, None), "{host}");
            assert!(
                is_served("gateway, gateway.example.org", host, None),
                "{host}"
            );
            assert!(is_served("*", host, None), "{host}");
        }
        assert!(Hosts::default().check(&HeaderMap::new()).is_ok());
    }

    #[test]
    fn names_that_only_look_similar_are_refused() {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:9201",
            "127.1",
            "gateway.evil.example",
            "[::1].evil.example",
            "",
            "xgateway",
        ] {
            assert!(!is_served("gateway", host, None), "{host}");
        }
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let own = "127.0.0.1:9201";
        assert!(is_served("", own, Some("http://127.0.0.1:9201")));
        assert!(is_served("g", "g", Some("https://G")));
        for origin in [
            "http://evil.example",
            "http://127.0.0.1:8080",
            "http://127.0.0.1",
            "null",
            "file://",
            "127.0.0.1:9201",
        ] {
            assert!(!is_served("*", own, Some(origin)), "{origin}");
        }
    }

    #[test]
    fn a_list_contains_only_names() {
        assert_eq!(Hosts::parse(" , "), Ok(Hosts::default()));
        for list in ["http://gateway", "gateway:9201", "a,b c"] {
            assert!(Hosts::parse(list).is_err(), "{list}");
        }
    }
}
