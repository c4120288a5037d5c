//! Loopback ports.

use crate::error::{Error, Result};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// The first port for tests. The range is below Linux's range for outgoing connections (from
/// 32768), so no connection of another program takes a port between the check and its use.
const TEST_PORT_FIRST: u16 = 20_000;
/// The number of ports for tests.
const TEST_PORTS: u16 = 12_000;

/// Returns a loopback port that nothing listens on. Calls return distinct ports until the range is
/// used up.
pub fn free() -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test programs that run at the same time start at different ports.
    let start = (std::process::id().wrapping_mul(61) % u32::from(TEST_PORTS)) as u16;
    for _ in 0..TEST_PORTS {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = TEST_PORT_FIRST + start.wrapping_add(step) % TEST_PORTS;
        if is_free(port) {
            return Ok(port);
        }
    }
    Err(Error::Other(format!(
        "no free port from {TEST_PORT_FIRST} on"
    )))
}

/// Whether a program could listen on the loopback port.
pub fn is_free(port: u16) -> bool {
    // The standard library sets SO_REUSEADDR, so a port in TIME_WAIT counts as free, as it does for
    // PostgreSQL.
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Fails if the port is in use, with its holder and the remedy.
pub fn require_free(port: u16, variable: &'static str) -> Result<()> {
    if is_free(port) {
        return Ok(());
    }
    let holder = holder(port)
        .map(|holder| format!(" by {holder}"))
        .unwrap_or_default();
    Err(Error::PortTaken {
        port,
        holder,
        variable,
    })
}

/// Returns a port from the environment, or the default.
pub fn from_environment(variable: &'static str, default: u16) -> Result<u16> {
    match std::env::var(variable) {
        Err(_) => Ok(default),
        Ok(value) => match value.parse::<u16>() {
            Ok(port) if port > 0 => Ok(port),
            _ => Err(Error::Setting {
                variable,
                value,
                reason: "not a port (1 to 65535)",
            }),
        },
    }
}

/// Returns the program that listens on a port, from `/proc`. Processes of other accounts may be
/// hidden.
fn holder(port: u16) -> Option<String> {
    let socket = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .find_map(|table| table.lines().find_map(|line| listening_inode(line, port)))?;
    let wanted = format!("socket:[{socket}]");
    for process in std::fs::read_dir("/proc").ok()?.flatten() {
        // Processes are the folders with numbers; `self` and `thread-self` are aliases of one of
        // them.
        if process
            .file_name()
            .to_string_lossy()
            .parse::<u32>()
            .is_err()
        {
            continue;
        }
        let Ok(handles) = std::fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        for handle in handles.flatten() {
            if std::fs::read_link(handle.path())
                .is_ok_and(|target| target.to_string_lossy() == wanted)
            {
                let name = std::fs::read_to_string(process.path().join("comm")).ok()?;
                return Some(format!(
                    "{} (process {})",
                    name.trim(),
                    process.file_name().to_string_lossy()
                ));
            }
        }
    }
    None
}

/// Returns the socket number in a line of `/proc/net/tcp`, if the line is about listening on this
/// port.
fn listening_inode(line: &str, port: u16) -> Option<String> {
    const STATE_LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    let (_, port_hex) = local.rsplit_once(':')?;
    (u16::from_str_radix(port_hex, 16).ok()? == port && *state == STATE_LISTEN)
        .then(|| (*inode).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_refused_with_its_holder_and_the_remedy() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let message = require_free(port, "LANES_PG_PORT").unwrap_err().to_string();
        assert!(message.contains(&format!("port {port} ")), "{message}");
        assert!(
            message.contains(&format!("process {}", std::process::id())),
            "{message}"
        );
        assert!(message.contains("LANES_PG_PORT="), "{message}");
        drop(listener);
        require_free(port, "LANES_PG_PORT").unwrap();
    }

    #[test]
    fn free_ports_differ() {
        let (first, second) = (free().unwrap(), free().unwrap());
        assert_ne!(first, second);
    }
}
