//! A place of a worker's connections, which may be vacant.

use super::connection::Connection;

/// The place of a connection. A serial number detects events of an earlier connection in the same
/// place.
#[derive(Debug, Default)]
pub struct Place {
    /// `None` while the place waits for a new connection.
    pub connection: Option<Connection>,
    pub serial: u32,
    /// Whether the place is in the list of free ones.
    pub is_listed: bool,
}

impl Place {
    /// Returns the value that the events of this connection carry.
    pub fn mark(&self, index: usize) -> u64 {
        (u64::from(self.serial) << 32) | index as u64
    }
}
