//! Requests over TLS, one on each connection.

use crate::files::Authority;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Result, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The lines of the head.
    pub head: String,
    /// The body, with its chunks joined. Bytes that are not UTF-8 are replaced.
    pub body: String,
}

/// A client that trusts one authority.
pub struct Client {
    port: u16,
    config: Arc<ClientConfig>,
}

impl Client {
    /// Returns a client of a port on 127.0.0.1.
    pub fn new(port: u16, authority: &Authority) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificate().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Client {
            port,
            config: Arc::new(config),
        }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Opens a connection.
    pub fn connect(&self) -> Result<StreamOwned<ClientConnection, TcpStream>> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.config), name);
        Ok(StreamOwned::new(connection.unwrap(), stream))
    }

    /// Sends a request.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let answer = self.try_send(method, path, headers, body);
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Sends a request, and returns the error of the connection.
    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer> {
        let mut stream = self.connect()?;
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        read(&mut stream)
    }
}

/// Reads an answer to the end of the connection.
pub fn read(stream: &mut impl Read) -> Result<Answer> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&part[..count]),
            // The server may end the connection without saying so in TLS.
            Err(_) if !bytes.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    let end = find(&bytes, b"\r\n\r\n").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let body = bytes.get(end + 4..).unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other(format!("no answer: {head:?}")))?;
    let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let body = match is_chunked {
        true => joined(body),
        false => body.to_vec(),
    };
    Ok(Answer {
        status,
        head,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn joined(chunks: &[u8]) -> Vec<u8> {
    let (mut rest, mut body) = (chunks, Vec::new());
    while let Some(end) = find(rest, b"\r\n") {
        let length = String::from_utf8_lossy(&rest[..end]);
        let length = usize::from_str_radix(&length, 16).unwrap_or(0);
        if length == 0 {
            break;
        }
        let chunk = end + 2..end + 2 + length;
        body.extend_from_slice(&rest[chunk.clone()]);
        rest = &rest[chunk.end + 2..];
    }
    body
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|found| found == wanted)
}
