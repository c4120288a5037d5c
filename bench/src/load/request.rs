//! Requests as bytes that are ready to send, by number.

use lanes_support::error::{Error, Result};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Gives the requests of a load. Numbers are asked for in any order, from any thread, and again for a retry.
pub trait Source: Send + Sync {
    /// Appends the whole request of this number, head and body; `false`, with nothing appended, when there is none and none of a
    /// higher number.
    fn request(&self, number: u64, into: &mut Vec<u8>) -> bool;

    /// What this request adds to the checksum of what was acknowledged, by which the server's answer is verified.
    fn weight(&self, _number: u64) -> u64 {
        0
    }

    /// This request was answered 2xx.
    fn acknowledged(&self, _number: u64) {}
}

/// The same request for ever.
#[derive(Debug, Clone)]
pub struct Repeated(pub Vec<u8>);

impl Source for Repeated {
    fn request(&self, _number: u64, into: &mut Vec<u8>) -> bool {
        into.extend_from_slice(&self.0);
        true
    }
}

/// A request with its head, as it goes over the wire. `headers` are those beside `Host` and `Content-Length`.
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
    /// Host and port as in the `Host` header.
    pub host: String,
    /// Path and query, at least `/`.
    pub path: String,
    /// Where to connect to.
    pub address: SocketAddr,
}

impl Url {
    /// Reads a URL and looks its host up.
    ///
    /// # Errors
    /// Not plain HTTP, or no such host; hosts elsewhere than on this machine when `remote` is false.
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
        // IPv4 first: servers of this project listen on 127.0.0.1.
        let all: Vec<SocketAddr> = addresses.by_ref().collect();
        let address = all
            .iter()
            .find(|address| matches!(address.ip(), IpAddr::V4(_)))
            .or(all.first())
            .copied()
            .ok_or_else(|| wrong("the host has no address"))?;
        if !remote && !address.ip().is_loopback() {
            return Err(wrong(
                "not on this machine; --remote says that this is meant",
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
    fn urls_are_read() {
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
    fn other_machines_have_to_be_meant() {
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
