//! Whose a store is: of all databases, the one whose gateways may write to it.
//!
//! The store has one record of its owner ([`Owner`]). A gateway reads it before it opens the store, since to open it
//! takes it from the gateway that has it; once more when it has it open; and only the owner or its heir keeps it.
//! Whenever the gateway gets the claim anew, it looks whether the database behind its session is still the same one.
//!
//! | the database of this gateway | then |
//! |---|---|
//! | is the owner: cluster, database and data directory are those of the record | opens the store |
//! | is a standby that was promoted, and has what the owner had offloaded | opens it, and is the owner from then on |
//! | is a standby | reads only |
//! | has another data directory on the same timeline: a copy, or files that were moved | reads only, and says so |
//! | lacks what the owner has offloaded: a copy that was restored to an earlier moment | reads only, and says so |
//! | is another one, of this cluster or not | reads only, and says so |
//!
//! Who reads only still answers queries, from what the owner has put there. A copy that wrote would put segments of its
//! own under the owner's keys, and would take for orphans what the owner offloaded since. `lanes-gateway --adopt` makes
//! a database the owner whatever the record says: an operator's decision.
//!
//! Not seen: a copy of a whole volume by its storage, which has the same data directory to the inode, while it stays on
//! the same timeline.

use serde::{Deserialize, Serialize};

use super::model::record::Change;
use super::source::{Identity, Primary};
use crate::clock;

/// The record's name.
pub const OWNER: &str = "owner";

/// Whose the store is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// `<system id>/<database's oid>`.
    pub scope: String,
    /// What tells the database's data directory from a copy of it.
    pub directory: String,
    /// The timeline that the database writes.
    pub timeline: u32,
    /// A place of its WAL that an heir must have, in bytes.
    pub wal_place: u64,
    /// Its gateway that opened the store last, for people.
    pub gateway: String,
    /// When that was: milliseconds since the Unix epoch.
    pub since_ms: i64,
}

impl Owner {
    /// A database as the owner, from now on. `before`: the one until now, if it had the database's history.
    pub fn new(identity: &Identity, primary: &Primary, before: Option<&Owner>) -> Self {
        let timeline = primary.history.current;
        let is_same = |owner: &&Owner| owner.scope == identity.scope && owner.timeline == timeline;
        Self {
            scope: identity.scope.clone(),
            directory: identity.directory.clone(),
            timeline,
            // Where it offloaded last: a standby that lags a little may still take its place.
            wal_place: before
                .filter(is_same)
                .map_or(primary.wal_place, |owner| owner.wal_place),
            gateway: gateway_name(),
            since_ms: clock::unix_ms(),
        }
    }

    /// Whether that is the database, on the timeline that it was on.
    pub fn is(&self, database: &Identity) -> bool {
        let timeline = database
            .primary
            .as_ref()
            .map(|primary| primary.history.current);
        self.scope == database.scope
            && self.directory == database.directory
            && Some(self.timeline) == timeline
    }

    /// The record.
    pub fn change(&self) -> Change {
        Change::document(OWNER.to_owned(), self)
    }
}

/// Whether a database may write to a store of this owner; where it is, if it may.
///
/// # Errors
/// Why not, and what to do.
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
        "this database lacks what that one has offloaded: it was restored to an earlier moment, or is a copy of one"
    } else if !is_same_directory && owner.timeline == primary.history.current {
        "this database is a copy of that one, or its data directory was moved"
    } else {
        return Ok(primary);
    };
    Err(format!(
        "objects.url belongs to database {}, timeline {} (opened last by gateway {} at {}); {why} ({}, timeline {}), \
         and only reads there. Give it an objects.url of its own; or, where it takes that one's place, stop that one's \
         gateway for good and run lanes-gateway --adopt with this one's settings",
        owner.scope,
        owner.timeline,
        owner.gateway,
        clock::utc(owner.since_ms),
        database.scope,
        primary.history.current,
    ))
}

/// This process, for people who look for it.
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
        // A directory that was put back in place from a backup.
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
        // From then on the one before is no longer the owner.
        let heir = owner_of(&promoted, Some(&owner));
        assert!(admit(Some(&heir), &first).is_err());
        assert!(admit(Some(&heir), &promoted).is_ok());
    }

    #[test]
    fn an_owner_that_comes_back_keeps_the_place_of_its_last_offload() {
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

    /// This text stands for what is in stores already: it is never changed.
    #[test]
    fn an_owner_that_was_written_once_is_read_as_ever() {
        let text = br#"{"scope":"7/5","directory":"a","timeline":1,"wal_place":9,"gateway":"g","since_ms":3}"#;
        let owner: Owner = record::read(OWNER, text).unwrap();
        assert_eq!((owner.scope.as_str(), owner.wal_place), ("7/5", 9));
    }
}
