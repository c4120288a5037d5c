//! The fuzzing entry: any bytes as an entry of the log, as they are and with a correct checksum.

use bytes::Bytes;

use super::log::entry::{self, Entry};

/// Panics if an entry that was read differs from itself after it was written again.
pub fn exercise_log_entry(data: &[u8]) {
    for bytes in [data.to_vec(), entry::with_checksum(data.to_vec())] {
        if let Ok(entry) = Entry::decode(&Bytes::from(bytes)) {
            let again = Entry::decode(&Entry::encode(&entry.head, &entry.batch));
            assert_eq!(again, Ok(entry));
        }
    }
}
