//! The owner of a store: the one database whose gateways may write to it.
//!
//! The store contains one record of its owner ([`Owner`]). A gateway reads it before it opens the
//! store, because opening takes the store from the gateway that has it, and reads it again after it
//! has opened the store. Only gateways of the owner or its heir keep the store open. Each time that
//! a gateway acquires the claim, it checks that its session still leads to the same database.
//!
//! | the database of this gateway | effect |
//! |---|---|
//! | is the owner: cluster, database and data directory match the record | the gateway opens the store |
//! | is a promoted standby that has everything that the owner had offloaded | it opens the store, and its database becomes the owner |
//! | is a standby | it only reads |
//! | has another data directory on the same timeline: a copy, or files that were moved | it only reads, and logs why |
//! | lacks something that the owner has offloaded: a copy restored to an earlier point in time | it only reads, and logs why |
//! | is another database, of this cluster or not | it only reads, and logs why |
//!
//! A gateway that only reads still answers queries from the owner's objects. A copy that wrote
//! would put its own segments under the owner's keys, and would take for orphans what the owner has
//! offloaded since. `lanes-gateway --adopt` makes a database the owner regardless of the record, by
//! decision of an operator.
//!
//! A copy of a whole volume by its storage system is not detected while it stays on the same
//! timeline, because its data directory has the same inode.

use serde::{Deserialize, Serialize};

use super::model::record::Change;
use super::source::{Identity, Primary};
use crate::clock;

/// The name of the record.
pub const OWNER: &str = "owner";

/// The owner of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// `<system id>/<database's oid>`.
    pub scope: String,
    /// Distinguishes the database's data directory from copies of it.
    pub directory: String,
    /// The timeline that the database writes.
    pub timeline: u32,
    /// The WAL position that an heir must have, in bytes.
    pub wal_place: u64,
    /// The gateway of the database that opened the store last, for people.
    pub gateway: String,
    /// The time at which it opened the store, in milliseconds since the Unix epoch.
    pub since_ms: i64,
}

impl Owner {
    /// Creates the record of a database that becomes the owner now. `before` is the previous owner
    /// if it has the database's history.
    pub fn new(identity: &Identity, primary: &Primary, before: Option<&Owner>) -> Self {
        let timeline = primary.history.current;
        let is_same = |owner: &&Owner| owner.scope == identity.scope && owner.timeline == timeline;
        Self {
            scope: identity.scope.clone(),
            directory: identity.directory.clone(),
            timeline,
            // Keep the position of its last offload: a standby that lags a little may still take
            // its place.
            wal_place: before
                .filter(is_same)
                .map_or(primary.wal_place, |owner| owner.wal_place),
            gateway: gateway_name(),
            since_ms: clock::unix_ms(),
        }
    }

    /// Whether the owner is this database, on the same timeline.
    pub fn is(&self, database: &Identity) -> bool {
        let timeline = database
            .primary
            .as_ref()
            .map(|primary| primary.history.current);
        self.scope == database.scope
            && self.directory == database.directory
            && Some(self.timeline) == timeline
    }

    /// The change that writes the record.
    pub fn change(&self) -> Change {
        Change::document(OWNER.to_owned(), self)
    }
}

/// Checks whether a database may write to a store with this owner, and returns its state as a
/// primary.
///
/// # Errors
/// Returns why it may not, and what to do.
pub fn admit<'a>(owner: Option<&Owner>, database: &'a Identity) -> Result<&'a Primary, String> {
    let Some(primary) = &database.primary else {
        return Err(
            "this database is a standby; the gateway of its primary writes to the store".to_owned(),
        );
    };
    let Some(owner) = owner else {
        return Ok(primary);
    };
    let is_behind =
        owner.timeline == primary.history.current && owner.wal_place > primary.wal_place;
    let holds = !is_behind && primary.history.has(owner.timeline, owner.wal_place);
    let is_same_directory = owner.directory == database.directory;
    let why = if owner.scope != database.scope {
        "this is another database"
    } else if !holds {
        "this database lacks what that one has offloaded: it was restored to an earlier point in time, or is a copy from that time"
    } else if !is_same_directory && owner.timeline == primary.history.current {
        "this database is a copy of that one, or its data directory was moved"
    } else {
        return Ok(primary);
    };
    Err(format!(
        "objects.url belongs to database {}, timeline {} (opened last by gateway {} at {}); {why} ({}, timeline {}), \
         so its gateway only reads there. Give it its own objects.url; or, if it replaces that database, stop the other \
         gateway permanently and run lanes-gateway --adopt with the settings of this one",
        owner.scope,
        owner.timeline,
        owner.gateway,
        clock::utc(owner.since_ms),
        database.scope,
        primary.history.current,
    ))
}

/// Names this process for people.
fn gateway_name() -> String {
    let host = rustix::system::uname();
    format!(
        "{} (process {})",
        host.nodename().to_string_lossy(),
        std::process::id()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::model::{History, record};

    fn database(directory: &str, current: u32, left: &[(u32, u64)]) -> Identity {
        Identity {
            scope: "7/5".to_owned(),
            directory: directory.to_owned(),
            primary: Some(Primary {
                history: History {
                    current,
                    left: left.to_vec(),
                },
                wal_place: 500,
            }),
        }
    }

    fn owner_of(identity: &Identity, before: Option<&Owner>) -> Owner {
        Owner::new(identity, identity.primary.as_ref().unwrap(), before)
    }

    #[test]
    fn only_the_owner_and_its_heirs_write() {
        let first = database("a", 1, &[]);
        assert!(admit(None, &first).is_ok());
        let owner = owner_of(&first, None);
        assert!(admit(Some(&owner), &first).is_ok());
        let other_cluster = Identity {
            scope: "8/5".to_owned(),
            ..first.clone()
        };
        // A data directory was restored from a backup at the same path.
        let mut behind = first.clone();
        behind.primary.as_mut().unwrap().wal_place = 499;
        let standby = Identity {
            primary: None,
            ..first.clone()
        };
        for (other, why) in [
            (other_cluster, "another database"),
            (standby, "standby"),
            (database("b", 1, &[]), "a copy of that one"),
            (database("b", 2, &[(1, 499)]), "lacks"),
            (database("a", 2, &[(1, 499)]), "lacks"),
            (database("b", 3, &[(2, 900)]), "lacks"),
            (behind, "lacks"),
        ] {
            let error = admit(Some(&owner), &other).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let promoted = database("b", 2, &[(1, 500)]);
        assert!(admit(Some(&owner), &promoted).is_ok());
        // From then on the previous owner is no longer the owner.
        let heir = owner_of(&promoted, Some(&owner));
        assert!(admit(Some(&heir), &first).is_err());
        assert!(admit(Some(&heir), &promoted).is_ok());
    }

    #[test]
    fn a_returning_owner_keeps_the_position_of_its_last_offload() {
        let database = database("a", 1, &[]);
        let before = Owner {
            wal_place: 300,
            ..owner_of(&database, None)
        };
        assert_eq!(owner_of(&database, Some(&before)).wal_place, 300);
        let of_other_timeline = Owner {
            timeline: 9,
            ..before
        };
        assert_eq!(owner_of(&database, Some(&of_other_timeline)).wal_place, 500);
    }

    /// This text stands for records in existing stores, so it must never change.
    #[test]
    fn old_records_of_owners_are_still_readable() {
        let text = br#"{"scope":"7/5","directory":"a","timeline":1,"wal_place":9,"gateway":"g","since_ms":3}"#;
        let owner: Owner = record::read(OWNER, text).unwrap();
        assert_eq!((owner.scope.as_str(), owner.wal_place), ("7/5", 9));
    }
}
