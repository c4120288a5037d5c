//! Requests by number, as bytes that are ready to send.

use lanes_support::error::{Error, Result};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The requests of a load. Numbers are requested in any order, from any thread, and again for a
/// retry.
pub trait Source: Send + Sync {
    /// Appends the request of a number, head and body. Returns `false`, and appends nothing, if
    /// there is no request of this or any higher number.
    fn request(&self, number: u64, into: &mut Vec<u8>) -> bool;

    /// Returns the request's part of the checksum of acknowledged requests, which verifies the
    /// server.
    fn weight(&self, _number: u64) -> u64 {
        0
    }

    /// Reports that a request had a 2xx response.
    fn acknowledged(&self, _number: u64) {}
}

/// A source that repeats one request for ever.
#[derive(Debug, Clone)]
pub struct Repeated(pub Vec<u8>);

impl Source for Repeated {
    fn request(&self, _number: u64, into: &mut Vec<u8>) -> bool {
        into.extend_from_slice(&self.0);
        true
    }
}

/// Encodes a request with its head. `headers` are those besides `Host` and `Content-Length`.
pub fn encode(
    method: &str,
    host: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() || method != "GET" {
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// An `http://` URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Host and port for the `Host` header.
    pub host: String,
    /// Path and query; at least `/`.
    pub path: String,
    /// The address to connect to.
    pub address: SocketAddr,
}

impl Url {
    /// Parses a URL and resolves its host.
    ///
    /// # Errors
    /// The URL is not plain HTTP, or the host does not exist. The host is on another machine and
    /// `remote` is false.
    pub fn parse(text: &str, remote: bool) -> Result<Url> {
        let wrong = |reason: &str| Error::Other(format!("{text:?}: {reason}"));
        let rest = text
            .strip_prefix("http://")
            .ok_or_else(|| wrong("it does not begin with http://"))?;
        let (host, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let with_port = match has_port {
            true => host.to_owned(),
            false => format!("{host}:80"),
        };
        let mut addresses = with_port
            .to_socket_addrs()
            .map_err(|error| wrong(&error.to_string()))?;
        // IPv4 comes first: the servers of this project listen on 127.0.0.1.
        let all: Vec<SocketAddr> = addresses.by_ref().collect();
        let address = all
            .iter()
            .find(|address| matches!(address.ip(), IpAddr::V4(_)))
            .or(all.first())
            .copied()
            .ok_or_else(|| wrong("the host has no address"))?;
        if !remote && !address.ip().is_loopback() {
            return Err(wrong(
                "the host is another machine; pass --remote to allow it",
            ));
        }
        Ok(Url {
            host: host.to_owned(),
            path: path.to_owned(),
            address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_complete() {
        let request = encode("POST", "h:1", "/x", &[("a", "b")], b"body");
        assert_eq!(
            request,
            b"POST /x HTTP/1.1\r\nhost: h:1\r\na: b\r\ncontent-length: 4\r\n\r\nbody"
        );
        assert_eq!(
            encode("GET", "h", "/", &[], b""),
            b"GET / HTTP/1.1\r\nhost: h\r\n\r\n"
        );
    }

    #[test]
    fn urls_are_parsed() {
        let url = Url::parse("http://127.0.0.1:9201/a?b=c", false).unwrap();
        assert_eq!(
            (url.host.as_str(), url.path.as_str()),
            ("127.0.0.1:9201", "/a?b=c")
        );
        assert_eq!(url.address.port(), 9201);
        let plain = Url::parse("http://localhost", false).unwrap();
        assert_eq!((plain.path.as_str(), plain.address.port()), ("/", 80));
        assert!(Url::parse("https://localhost/", false).is_err());
    }

    #[test]
    fn a_remote_host_requires_an_option() {
        let url = "http://192.0.2.1:80/";
        assert!(
            Url::parse(url, false)
                .unwrap_err()
                .to_string()
                .contains("--remote")
        );
        assert!(Url::parse(url, true).is_ok());
    }
}
