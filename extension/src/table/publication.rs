//! Writes to lanes tables that are published for logical replication.
//!
//! A statement that would publish a lanes table is refused ([`crate::hooks`]), but two sessions may
//! publish and create at once, and a publication may be older than that check. Logical decoding
//! ignores the rows, so a subscriber would miss them silently. Therefore each write that a
//! subscriber should receive is refused. PostgreSQL keeps the published changes of a table in its
//! relation cache entry, and they are looked up only where `wal_level` is `logical`.

use pgrx::pg_sys;

use crate::error;
use crate::pg::ports;
use crate::pg::table::OpenTable;

/// A change of a table's rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Insert,
    Update,
    Delete,
}

/// Whether a publication includes changes of the table's rows.
pub fn is_published(table: OpenTable<'_>) -> bool {
    let published = table.published();
    published.pubinsert || published.pubupdate || published.pubdelete
}

/// Raises an ERROR if a subscriber should receive this change of the table. The rows of a rewrite
/// are not sent to subscribers.
#[inline]
pub fn check_write(table: OpenTable<'_>, change: Change) {
    if ports::XLogLogicalInfoActive() && !table.is_of_rewrite() {
        refuse_published(table, change);
    }
}

#[cold]
fn refuse_published(table: OpenTable<'_>, change: Change) {
    let pg_sys::PublicationActions {
        pubinsert,
        pubupdate,
        pubdelete,
        ..
    } = table.published();
    let (is_published, action, published) = match change {
        Change::Insert => (pubinsert, "insert into", "inserts"),
        Change::Update => (pubupdate, "update", "updates"),
        Change::Delete => (pubdelete, "delete from", "deletes"),
    };
    if is_published {
        error::refuse(
            &format!(
                "cannot {action} lanes table \"{}\" because a publication includes its {published}",
                table.name()
            ),
            "Logical replication cannot carry lanes tables. Drop the publication, or let it include only other tables, \
             by name (FOR TABLE).",
        );
    }
}
