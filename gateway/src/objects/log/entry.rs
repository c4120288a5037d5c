//! The bytes of an entry of the log.
//!
//! | bytes | contents |
//! |---|---|
//! | 1 | version, 1 |
//! | 8 | XXH3-64 of everything that follows; all numbers are little-endian |
//! | 4 | length of the head |
//! | | the head: [`Head`], as JSON |
//! | the rest | the batch in the wire format, as appended |

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::objects::model::record::Head;

const VERSION: u8 = 1;
const CHECKED_FROM: usize = 9;
const HEAD_FROM: usize = 13;

/// A batch that was appended, and the position of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The position of the rows.
    pub head: Head,
    /// The batch.
    pub batch: Bytes,
}

impl Entry {
    /// Encodes an entry.
    pub fn encode(head: &Head, batch: &[u8]) -> Bytes {
        // Serialization of a structure without maps cannot fail.
        let head = serde_json::to_vec(head).unwrap_or_default();
        let mut bytes = Vec::with_capacity(HEAD_FROM + head.len() + batch.len());
        bytes.push(VERSION);
        bytes.extend([0; CHECKED_FROM - 1]);
        bytes.extend((head.len() as u32).to_le_bytes());
        bytes.extend(head);
        bytes.extend(batch);
        with_checksum(bytes).into()
    }

    /// Decodes an entry.
    ///
    /// # Errors
    /// Returns an error if the bytes are not an entry, or are damaged.
    pub fn decode(bytes: &Bytes) -> Result<Self, String> {
        let (Some(&version), Some(checksum), Some(length)) = (
            bytes.first(),
            bytes.get(1..CHECKED_FROM),
            bytes.get(CHECKED_FROM..HEAD_FROM),
        ) else {
            return Err("an entry of the log is truncated".to_owned());
        };
        if version != VERSION {
            return Err(format!(
                "an entry of the log has the unknown version {version}"
            ));
        }
        if checksum != xxh3_64(&bytes[CHECKED_FROM..]).to_le_bytes() {
            return Err("an entry of the log is damaged".to_owned());
        }
        let length = length
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | usize::from(*byte));
        let head = bytes[HEAD_FROM..]
            .get(..length)
            .and_then(|head| serde_json::from_slice(head).ok())
            .ok_or("an entry of the log has no head")?;
        Ok(Self {
            head,
            batch: bytes.slice(HEAD_FROM + length..),
        })
    }
}

/// Writes the checksum into an entry that is long enough to contain one.
pub fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() >= CHECKED_FROM {
        let checksum = xxh3_64(&bytes[CHECKED_FROM..]).to_le_bytes();
        bytes[1..CHECKED_FROM].copy_from_slice(&checksum);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            head: Head {
                target: 7,
                storage: u64::MAX,
                runs: vec![(0, 65_536), (70_000, 3)],
                bytes: 5,
                logged_ms: 1,
                columns: Vec::new(),
                timeline: 0,
                wal_place: 0,
            },
            batch: Bytes::from_static(b"batch"),
        }
    }

    #[test]
    fn entries_round_trip() {
        let Entry { head, batch } = entry();
        let bytes = Entry::encode(&head, &batch);
        assert_eq!(Entry::decode(&bytes), Ok(entry()));
    }

    /// With `LANES_WRITE_GOLDEN`, the test writes the file as this version would, if it is missing.
    #[test]
    fn old_entries_are_still_readable() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/src/objects/log/golden_entry.bin"
        );
        if std::env::var_os("LANES_WRITE_GOLDEN").is_some() && !std::path::Path::new(path).exists()
        {
            let Entry { head, batch } = entry();
            std::fs::write(path, Entry::encode(&head, &batch)).unwrap();
        }
        let kept = std::fs::read(path).unwrap();
        assert_eq!(Entry::decode(&kept.into()), Ok(entry()));
    }

    #[test]
    fn damage_is_detected_at_every_byte() {
        let Entry { head, batch } = entry();
        let bytes = Entry::encode(&head, &batch);
        for place in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[place] ^= 1;
            assert!(Entry::decode(&damaged.into()).is_err(), "byte {place}");
            assert!(
                Entry::decode(&bytes.slice(..place)).is_err(),
                "cut at {place}"
            );
        }
    }
}
