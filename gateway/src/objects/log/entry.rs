//! An entry's bytes.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | version, 1 |
//! | 8 | XXH3-64 of all that follows, little-endian, as all numbers are |
//! | 4 | bytes of the head |
//! | | the head: [`Head`], as JSON |
//! | the rest | the batch in the wire format, as it was appended |

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::objects::model::record::Head;

const VERSION: u8 = 1;
const CHECKED_FROM: usize = 9;
const HEAD_FROM: usize = 13;

/// A batch that was appended, and where its rows lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where.
    pub head: Head,
    /// What.
    pub batch: Bytes,
}

impl Entry {
    /// The bytes to keep.
    pub fn encode(head: &Head, batch: &[u8]) -> Bytes {
        // Of a structure without maps, nothing can fail.
        let head = serde_json::to_vec(head).unwrap_or_default();
        let mut bytes = Vec::with_capacity(HEAD_FROM + head.len() + batch.len());
        bytes.push(VERSION);
        bytes.extend([0; CHECKED_FROM - 1]);
        bytes.extend((head.len() as u32).to_le_bytes());
        bytes.extend(head);
        bytes.extend(batch);
        with_checksum(bytes).into()
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// Bytes that are none, or damaged.
    pub fn decode(bytes: &Bytes) -> Result<Self, String> {
        let (Some(&version), Some(checksum), Some(length)) = (
            bytes.first(),
            bytes.get(1..CHECKED_FROM),
            bytes.get(CHECKED_FROM..HEAD_FROM),
        ) else {
            return Err("an entry of the log is cut off".to_owned());
        };
        if version != VERSION {
            return Err(format!(
                "an entry of the log is of version {version}, which this program does not know"
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

/// Writes the checksum into an entry that is long enough to have one.
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
    fn entries_are_read_as_they_were_written() {
        let Entry { head, batch } = entry();
        let bytes = Entry::encode(&head, &batch);
        assert_eq!(Entry::decode(&bytes), Ok(entry()));
    }

    /// `LANES_WRITE_GOLDEN` writes the file as it would be today, if it is missing.
    #[test]
    fn an_entry_that_was_written_once_is_read_as_ever() {
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
    fn damage_is_noticed_wherever_it_is() {
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
