//! A TCP proxy on loopback that delays responses, or cuts them off, on request.

use crate::error::{Error, Result};
use crate::seed::Random;
use rand::{RngExt, SeedableRng};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The number of bytes that are forwarded at a time.
const CHUNK_BYTES: usize = 16 << 10;
/// The delay of each such chunk in a slow proxy.
const SLOWNESS: Duration = Duration::from_millis(50);
/// One of this many chunks is cut in two while the proxy cuts responses.
const CUT_RATIO: u32 = 6;

#[derive(Debug, Default)]
struct State {
    is_slow: AtomicBool,
    cuts: AtomicBool,
    slowed: AtomicU64,
    cut: AtomicU64,
    is_over: AtomicBool,
}

/// A proxy. It ends with the value.
#[derive(Debug)]
pub struct FaultyProxy {
    address: SocketAddr,
    state: Arc<State>,
}

impl FaultyProxy {
    /// Starts a proxy for a server on loopback that forwards everything unchanged.
    ///
    /// # Errors
    /// There is no free port.
    pub fn start(server_port: u16, seed: u64) -> Result<FaultyProxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .map_err(|error| Error::Other(format!("cannot listen for a proxy: {error}")))?;
        let address = listener
            .local_addr()
            .map_err(|error| Error::Other(format!("no address of a proxy: {error}")))?;
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            let mut random = Random::seed_from_u64(seed);
            for client in listener.incoming().flatten() {
                if shared.is_over.load(Ordering::Relaxed) {
                    return;
                }
                // If the server cannot be reached, the client's connection is closed.
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)) {
                    let random = Random::seed_from_u64(random.random());
                    let _ = connect(client, server, &shared, random);
                }
            }
        });
        Ok(FaultyProxy { address, state })
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Starts or stops delaying responses.
    pub fn be_slow(&self, is_slow: bool) {
        self.state.is_slow.store(is_slow, Ordering::Relaxed);
    }

    /// Starts or stops cutting responses off.
    pub fn cut(&self, cuts: bool) {
        self.state.cuts.store(cuts, Ordering::Relaxed);
    }

    /// Returns the number of delayed chunks, and the number of cut responses.
    pub fn faults(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.state.slowed), count(&self.state.cut))
    }
}

impl Drop for FaultyProxy {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        // The thread waits for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

/// Starts the threads of both directions of a connection.
fn connect(
    client: TcpStream,
    server: TcpStream,
    state: &Arc<State>,
    random: Random,
) -> std::io::Result<()> {
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || pass_requests(from_client, to_server));
    let state = Arc::clone(state);
    std::thread::spawn(move || pass_answers(server, client, &state, random));
    Ok(())
}

fn pass_requests(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

fn pass_answers(mut from: TcpStream, mut to: TcpStream, state: &State, mut random: Random) {
    let mut chunk = vec![0; CHUNK_BYTES];
    while let Ok(bytes @ 1..) = from.read(&mut chunk) {
        let mut bytes = &chunk[..bytes];
        if state.is_slow.load(Ordering::Relaxed) {
            state.slowed.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(SLOWNESS);
        }
        let is_cut = state.cuts.load(Ordering::Relaxed) && random.random_ratio(1, CUT_RATIO);
        if is_cut {
            state.cut.fetch_add(1, Ordering::Relaxed);
            bytes = &bytes[..bytes.len() / 2];
        }
        if to.write_all(bytes).is_err() || is_cut {
            break;
        }
    }
    for stream in [from, to] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a server that sends `bytes` bytes on each connection after a request.
    fn server(bytes: usize) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let mut asked = [0];
                if client.read_exact(&mut asked).is_ok() {
                    let _ = client.write_all(&vec![asked[0]; bytes]);
                }
            }
        });
        port
    }

    fn ask(proxy: &FaultyProxy, with: u8) -> Vec<u8> {
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        client.write_all(&[with]).unwrap();
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        answer
    }

    #[test]
    fn responses_are_complete_delayed_or_cut_as_requested() {
        const BYTES: usize = 100_000;
        let proxy = FaultyProxy::start(server(BYTES), 7).unwrap();
        assert_eq!(ask(&proxy, 5), vec![5; BYTES]);
        assert_eq!(proxy.faults(), (0, 0));
        proxy.be_slow(true);
        assert_eq!(ask(&proxy, 6), vec![6; BYTES]);
        assert!(proxy.faults().0 > 0);
        proxy.be_slow(false);
        proxy.cut(true);
        let whole = (0..20).filter(|_| ask(&proxy, 7).len() == BYTES).count();
        assert!(whole < 20 && proxy.faults().1 as usize == 20 - whole);
        proxy.cut(false);
        assert_eq!(ask(&proxy, 8), vec![8; BYTES]);
    }
}
