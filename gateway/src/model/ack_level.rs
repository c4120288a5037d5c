//! The promise of an acknowledgement.

use std::str::FromStr;

/// The levels of acknowledgement, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AckLevel {
    /// The rows are committed and visible. The write-ahead log is flushed within three times
    /// `wal_writer_delay` (0.6 s by default). If the server crashes, what was acknowledged in that
    /// time is lost.
    Memory,
    /// The commit is flushed to the server's disk.
    Wal,
    /// The commit is also flushed to the disks of the synchronous standbys.
    Replica,
    /// Like `Replica` if the server has synchronous standbys, otherwise like `Wal`. In addition,
    /// the rows are durable in object storage, from which alone they can be restored.
    Object,
}

impl AckLevel {
    /// All levels, weakest first.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Wal, Self::Replica, Self::Object];

    /// The name used in configuration, headers and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Wal => "wal",
            Self::Replica => "replica",
            Self::Object => "object",
        }
    }

    /// The index in [`AckLevel::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The value of PostgreSQL's `synchronous_commit` that keeps the promise.
    pub fn synchronous_commit(self) -> &'static str {
        match self {
            Self::Memory => "off",
            Self::Wal => "local",
            Self::Replica | Self::Object => "on",
        }
    }
}

impl FromStr for AckLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|level| text.eq_ignore_ascii_case(level.name()))
            .ok_or_else(|| {
                format!(
                    "acknowledgement level {text:?} is unknown; use memory, wal, replica or object"
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_unknown_names_are_reported() {
        for level in AckLevel::ALL {
            assert_eq!(level.name().parse(), Ok(level));
            assert_eq!(AckLevel::ALL[level.index()], level);
        }
        assert_eq!("WAL".parse(), Ok(AckLevel::Wal));
        assert!(
            "disk"
                .parse::<AckLevel>()
                .unwrap_err()
                .contains("\"disk\" is unknown")
        );
    }
}
