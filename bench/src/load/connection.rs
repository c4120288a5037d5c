//! One keep-alive connection: the bytes to send, and the requests that wait for their responses, in
//! order.

use super::response::{Answer, Answers, Malformed};
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_nodelay, socket_error};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// A request that was handed to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Its number.
    pub number: u64,
    /// The start of its latency, in nanoseconds since the start of the run.
    pub intended: u64,
    /// The number of earlier refusals.
    pub attempts: u32,
}

/// The reason why a connection cannot be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// It could not be opened.
    Connect,
    /// The server or the network closed it. This is no error if no request was waiting.
    Closed,
    /// The received bytes are no HTTP response.
    Malformed,
}

/// A connection that is open or is being opened.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    is_open: bool,
    out: Vec<u8>,
    written: usize,
    waiting: VecDeque<Sent>,
    answers: Answers,
}

impl Connection {
    /// Starts to open a connection. It is ready when the socket is writable.
    ///
    /// # Errors
    /// The system has no more sockets or ports.
    pub fn open(address: SocketAddr) -> Result<Connection, Errno> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        set_tcp_nodelay(&socket, true)?;
        let is_open = match rustix::net::connect(&socket, &address) {
            Ok(()) => true,
            Err(Errno::INPROGRESS) => false,
            Err(error) => return Err(error),
        };
        Ok(Connection {
            socket,
            is_open,
            out: Vec::new(),
            written: 0,
            waiting: VecDeque::new(),
            answers: Answers::new(),
        })
    }

    /// Returns the socket, to register it for events.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Whether the handshake is over.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the number of requests that wait for responses.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Abandons and returns the requests that wait for responses.
    pub fn give_up(&mut self) -> impl Iterator<Item = Sent> + '_ {
        self.waiting.drain(..)
    }

    /// Adds a request, whose bytes `write` appends. [`Connection::flush`] sends it. Returns `false`
    /// if there is no request.
    pub fn add(&mut self, request: Sent, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let added = write(&mut self.out);
        if added {
            self.waiting.push_back(request);
        }
        added
    }

    /// Sends as much as the socket accepts. The rest is sent when the socket is writable again.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn flush(&mut self) -> Result<(), Broken> {
        if !self.is_open {
            return Ok(());
        }
        while self.written < self.out.len() {
            match send(&self.socket, &self.out[self.written..], SendFlags::NOSIGNAL) {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(_) => return Err(Broken::Closed),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    /// Handles a socket that is writable or has failed: finishes the handshake, or sends the
    /// remaining bytes. Returns `true` if the connection has just opened.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn writable(&mut self) -> Result<bool, Broken> {
        let opens = !self.is_open;
        if opens {
            match socket_error(&self.socket) {
                Ok(Ok(())) => self.is_open = true,
                _ => return Err(Broken::Connect),
            }
        }
        self.flush().map(|()| opens)
    }

    /// Receives all available bytes and reports each response with its request. `scratch` is the
    /// receive buffer.
    ///
    /// # Errors
    /// The connection is broken, or the server announced that it closes the connection. Earlier
    /// responses have been reported.
    pub fn readable(
        &mut self,
        scratch: &mut [u8],
        mut tell: impl FnMut(Sent, Answer),
    ) -> Result<(), Broken> {
        let (waiting, answers) = (&mut self.waiting, &mut self.answers);
        let (mut closes, mut unasked) = (false, false);
        let mut on_answer = |answer: Answer| {
            closes |= answer.closes;
            match waiting.pop_front() {
                Some(request) => tell(request, answer),
                None => unasked = true,
            }
        };
        loop {
            match recv(&self.socket, &mut *scratch, RecvFlags::empty()) {
                Ok((_, 0)) => {
                    answers.close(&mut on_answer);
                    return Err(Broken::Closed);
                }
                Ok((_, count)) => {
                    let taken = answers.take(&scratch[..count], &mut on_answer);
                    // The read did not fill the buffer, so there are no more bytes; the next
                    // arrival is a new event.
                    if taken == Err(Malformed) {
                        return Err(Broken::Malformed);
                    }
                    if count < scratch.len() {
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return Err(Broken::Closed),
            }
        }
        match (unasked, closes) {
            (true, _) => Err(Broken::Malformed),
            (false, true) => Err(Broken::Closed),
            (false, false) => Ok(()),
        }
    }
}
