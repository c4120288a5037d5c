//! The keys of segments in object storage.
//!
//! `<system identifier>/<database oid>/<storage id>/<origin>/<first row>`, in decimal except for the storage id, which
//! has 16 hexadecimal digits. The first two fields are the [`scope`] of the database. A storage id is random and new
//! with every new file of a table. An origin is a number that a table uses once. The key has only the low half of it,
//! which is unique too: it would repeat after four thousand million sealings. The first row names a segment within its
//! part.

use std::fmt;

use super::scope;
use crate::pg::server;

/// A segment of some table of this server.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    pub storage_id: u64,
    pub first_row: u64,
    pub database: u32,
    /// The low half of the origin of the segment's part.
    pub origin: u32,
}

impl Key {
    /// The key of a segment of a table of this database.
    pub fn of(storage_id: u64, origin: u32, first_row: u64) -> Key {
        Key {
            storage_id,
            first_row,
            database: server::database(),
            origin,
        }
    }

    /// Parses a key of this database; `None`: it is no key, or a key of another database.
    pub fn parse(text: &str) -> Option<Key> {
        let mut fields = text.split('/');
        let system: u64 = fields.next()?.parse().ok()?;
        let key = Key {
            database: fields.next()?.parse().ok()?,
            storage_id: u64::from_str_radix(fields.next()?, 16).ok()?,
            origin: fields.next()?.parse().ok()?,
            first_row: fields.next()?.parse().ok()?,
        };
        let is_ours = system == scope::system_identifier() && key.database == server::database();
        // A key has only one spelling.
        (fields.next().is_none() && is_ours && key.to_string() == text).then_some(key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}/{}/{:016x}/{}/{}",
            scope::system_identifier(),
            self.database,
            self.storage_id,
            self.origin,
            self.first_row
        )
    }
}
