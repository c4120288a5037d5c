//! A server for tests, whose responses and stalls depend on the number of the request.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns the action for a request by its number, counted over all connections from 0.
pub type Script = dyn Fn(u64) -> Act + Send + Sync;

/// The server's action on a request.
pub enum Act {
    /// Sends these bytes.
    Answer(&'static [u8]),
    /// Closes the connection.
    Close,
}

/// A response without a body.
pub const NO_CONTENT: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
/// A refusal that can be retried at once.
pub const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n";

/// A server on a free port with a thread for each connection. It ends with the process.
pub struct ToyServer {
    pub address: SocketAddr,
    /// The number of received requests.
    pub requests: Arc<AtomicU64>,
}

impl ToyServer {
    pub fn start(script: Arc<Script>) -> ToyServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, count) = (Arc::clone(&script), Arc::clone(&count));
                std::thread::spawn(move || serve(stream, &*script, &count));
            }
        });
        ToyServer { address, requests }
    }
}

/// Serves one connection. Requests have no body, so each ends with an empty line.
fn serve(mut stream: TcpStream, script: &Script, count: &AtomicU64) {
    let mut buffer = [0; 4096];
    let mut matched = 0;
    const END: &[u8] = b"\r\n\r\n";
    while let Ok(received @ 1..) = stream.read(&mut buffer) {
        for byte in &buffer[..received] {
            matched = match *byte == END[matched] {
                true => matched + 1,
                false => usize::from(*byte == END[0]),
            };
            if matched < END.len() {
                continue;
            }
            matched = 0;
            match script(count.fetch_add(1, Ordering::SeqCst)) {
                Act::Answer(bytes) => {
                    if stream.write_all(bytes).is_err() {
                        return;
                    }
                }
                Act::Close => return,
            }
        }
    }
}
