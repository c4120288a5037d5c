//! `lanes.check(table)`: verifies a table's file, its rows and its indexes, and returns what is wrong.
//!
//! ```text
//! blocks      every block has one owner at most, lies in the file, and is not listed as free
//! runs        every run is in order and can be decoded; every zone is the zone of its rows
//! parts       segments lie within their part; a place map has one place for each row that is kept
//! tombstones  every tombstone names rows that the table has or had; a row is deleted once at most
//! indexes     every visible row has its entry; no entry names a row that the table never had
//! ```
//!
//! The check holds the lock that VACUUM and sealing take, so nothing is freed or moved meanwhile. Queries and writers
//! go on. Whatever is read later than a row's transaction is at least as new as the row, and each check relies on the
//! order in which it reads.
//!
//! Damage that keeps the table from being opened is an ERROR, as it is for a query: of the metapage, of a page of a
//! chain, or of the index of a part. All other damage is a row of the result.

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::pg::table::OpenedTable;
use crate::pg::{table_catalog, transaction};
use crate::table::pending_rows;
use crate::table::reader::Reader;

mod blocks;
mod indexes;
mod parts;
mod runs;
mod tombstones;

/// Findings that are returned at most. A file that was overwritten may have one for each row.
const FINDINGS_MAX: usize = 1000;

/// Where something is wrong, and what.
struct Finding {
    place: String,
    problem: String,
}

/// The findings so far.
#[derive(Default)]
struct Findings {
    list: Vec<Finding>,
}

impl Findings {
    /// Adds a finding; past the greatest number, only the first one that is left out is noted.
    fn add(&mut self, place: impl Into<String>, problem: impl Into<String>) {
        if self.list.len() < FINDINGS_MAX {
            self.list.push(Finding {
                place: place.into(),
                problem: problem.into(),
            });
        } else if self.list.len() == FINDINGS_MAX {
            self.list.push(Finding {
                place: "table".to_owned(),
                problem: format!("there is more than these {FINDINGS_MAX} findings"),
            });
        }
    }
}

/// Verifies a lanes table. `indexes`: its indexes too; `remote`: also rows in object storage, which are fetched.
#[pg_extern(sql = false)]
fn check_table(
    target: pg_sys::Oid,
    indexes: bool,
    remote: bool,
) -> TableIterator<'static, (name!(place, String), name!(problem, String))> {
    let is_standby = transaction::is_in_recovery();
    let lock = match is_standby {
        // A standby grants no stronger lock, and replays what the primary frees.
        true => pg_sys::AccessShareLock,
        false => pg_sys::ShareUpdateExclusiveLock,
    };
    // Before the table is locked: the lock keeps VACUUM out.
    table_catalog::check_owner(target);
    let opened = OpenedTable::open(target, lock);
    let table = opened.get();
    super::check_readable(table, "lanes.check()");
    pending_rows::flush_table(target);
    let mut findings = Findings::default();
    if !is_standby {
        blocks::check(table, &mut findings);
    }
    let reader = Reader::open(table);
    if let Some(content) = &reader.content {
        runs::check(&reader, content, remote, &mut findings);
        parts::check(table, content, &mut findings);
        tombstones::check(table, content, &mut findings);
    }
    drop(reader);
    if indexes && !is_standby {
        indexes::check(table, &mut findings);
    }
    let rows = findings.list.into_iter();
    TableIterator::new(rows.map(|finding| (finding.place, finding.problem)))
}
