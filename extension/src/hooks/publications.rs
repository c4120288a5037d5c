//! Refuses every statement that would publish a lanes table for logical replication.
//!
//! Logical decoding ignores generic WAL records, so a subscriber would silently miss the rows. A
//! publication includes a table by its name, its schema, an ancestor of a partition, or all tables,
//! and either the publication or the table may come first. So the statement is executed, then the
//! catalogs are searched for a lanes table that a publication includes, and an ERROR undoes the
//! statement. Two sessions may publish and create at once, and a publication may be older than this
//! check: [`crate::table::publication`] then refuses the writes.

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys};

use super::utility::{find, find_created, names_lanes, with_inheritors};
use crate::pg::ports;
use crate::pg::statement::{OwnedArgument, Statement};
use crate::pg::table::OpenedTable;
use crate::table::publication::is_published;

/// Returns the first lanes table that a publication includes. An empty name stands for every
/// publication, OID 0 for every table.
static INCLUDED: Statement = Statement::changing(
    c"SELECT publication.pubname::pg_catalog.text,
             pg_catalog.concat(schema.nspname, '.', relation.relname)
        FROM pg_catalog.pg_publication publication
        JOIN pg_catalog.pg_class relation
          ON $2 OPERATOR(pg_catalog.=) ANY (ARRAY[relation.oid, 0::pg_catalog.oid])
        JOIN pg_catalog.pg_namespace schema
          ON schema.oid OPERATOR(pg_catalog.=) relation.relnamespace
       WHERE $1 OPERATOR(pg_catalog.=) ANY (ARRAY[publication.pubname::pg_catalog.text, ''])
         AND (publication.pubinsert OR publication.pubupdate OR publication.pubdelete)
         AND relation.relkind OPERATOR(pg_catalog.=) 'r'
         AND relation.relpersistence OPERATOR(pg_catalog.=) 'p'
         AND relation.relam OPERATOR(pg_catalog.=)
             (SELECT oid FROM pg_catalog.pg_am WHERE amname OPERATOR(pg_catalog.=) 'lanes')
         AND (publication.puballtables OR EXISTS (
               SELECT
                 FROM (SELECT relation.oid
                       UNION ALL
                       SELECT relid FROM pg_catalog.pg_partition_ancestors(relation.oid)) self (id)
                 JOIN pg_catalog.pg_class ancestor ON ancestor.oid OPERATOR(pg_catalog.=) self.id
                WHERE EXISTS (
                        SELECT FROM pg_catalog.pg_publication_rel
                         WHERE prpubid OPERATOR(pg_catalog.=) publication.oid
                           AND prrelid OPERATOR(pg_catalog.=) ancestor.oid)
                   OR EXISTS (
                        SELECT FROM pg_catalog.pg_publication_namespace
                         WHERE pnpubid OPERATOR(pg_catalog.=) publication.oid
                           AND pnnspid OPERATOR(pg_catalog.=) ancestor.relnamespace)))
       ORDER BY relation.oid, publication.oid
       LIMIT 1",
    &[pg_sys::BuiltinOid::TEXTOID, pg_sys::BuiltinOid::OIDOID],
);

/// What a statement may publish. It holds plain pointers into the statement's memory, because an
/// error of the statement jumps over the frame that owns it.
#[derive(Clone, Copy)]
pub enum Suspect {
    Nothing,
    /// All that the named publication includes.
    Publication(*const std::ffi::c_char),
    /// The table that the statement creates.
    Created(*mut pg_sys::RangeVar),
    /// A table that the statement changes, and all its partitions.
    Changed(pg_sys::Oid),
}

/// Returns what a statement that is about to be executed may publish.
#[pg_guard]
#[expect(
    improper_ctypes_definitions,
    reason = "called from Rust only; the signature is what the guard takes"
)]
pub unsafe extern "C-unwind" fn suspect(planned: *mut pg_sys::PlannedStmt) -> Suspect {
    // SAFETY: a live planned statement; each arm casts the node to what its tag says.
    unsafe {
        let node = (*planned).utilityStmt;
        match (*node).type_ {
            pg_sys::NodeTag::T_CreatePublicationStmt => {
                let create: *mut pg_sys::CreatePublicationStmt = node.cast();
                Suspect::Publication((*create).pubname)
            }
            pg_sys::NodeTag::T_AlterPublicationStmt => {
                let alter: *mut pg_sys::AlterPublicationStmt = node.cast();
                match (*alter).action {
                    pg_sys::AlterPublicationAction::AP_DropObjects => Suspect::Nothing,
                    _ => Suspect::Publication((*alter).pubname),
                }
            }
            pg_sys::NodeTag::T_CreateStmt => {
                let create: *mut pg_sys::CreateStmt = node.cast();
                // Since 17 a partition takes the access method of its parent.
                let may_be_lanes =
                    names_lanes((*create).accessMethod) || !(*create).partbound.is_null();
                match may_be_lanes {
                    true => created((*create).relation, (*create).if_not_exists),
                    false => Suspect::Nothing,
                }
            }
            pg_sys::NodeTag::T_CreateTableAsStmt => {
                let create: *mut pg_sys::CreateTableAsStmt = node.cast();
                match names_lanes((*(*create).into).accessMethod) {
                    true => created((*(*create).into).rel, (*create).if_not_exists),
                    false => Suspect::Nothing,
                }
            }
            pg_sys::NodeTag::T_AlterTableStmt => altered(node.cast()),
            pg_sys::NodeTag::T_AlterObjectSchemaStmt => {
                let alter: *mut pg_sys::AlterObjectSchemaStmt = node.cast();
                match (*alter).objectType {
                    pg_sys::ObjectType::OBJECT_TABLE => Suspect::Changed(find((*alter).relation)),
                    _ => Suspect::Nothing,
                }
            }
            _ => Suspect::Nothing,
        }
    }
}

/// Returns the table of a CREATE statement, unless it exists already or is not permanent.
unsafe fn created(name: *mut pg_sys::RangeVar, if_not_exists: bool) -> Suspect {
    // SAFETY: a live range variable.
    unsafe {
        let permanent = pg_sys::RELPERSISTENCE_PERMANENT as std::ffi::c_char;
        let exists = || if_not_exists && find(name) != pg_sys::InvalidOid;
        if (*name).relpersistence != permanent || exists() {
            return Suspect::Nothing;
        }
        Suspect::Created(name)
    }
}

/// Returns the table that ALTER TABLE turns into a lanes table, a logged table or a partition.
unsafe fn altered(alter: *mut pg_sys::AlterTableStmt) -> Suspect {
    // SAFETY: a live statement with a list of AlterTableCmds; ATTACH PARTITION has a PartitionCmd.
    unsafe {
        for i in 0..ports::list_length((*alter).cmds) {
            let command: *mut pg_sys::AlterTableCmd = ports::list_nth((*alter).cmds, i);
            match (*command).subtype {
                pg_sys::AlterTableType::AT_SetAccessMethod
                | pg_sys::AlterTableType::AT_SetLogged => {
                    return Suspect::Changed(find((*alter).relation));
                }
                pg_sys::AlterTableType::AT_AttachPartition => {
                    let partition: *mut pg_sys::PartitionCmd = (*command).def.cast();
                    return Suspect::Changed(find((*partition).name));
                }
                _ => {}
            }
        }
    }
    Suspect::Nothing
}

/// Raises an ERROR if the statement, which has been executed, published a lanes table.
#[pg_guard]
#[expect(
    improper_ctypes_definitions,
    reason = "called from Rust only; the signature is what the guard takes"
)]
pub unsafe extern "C-unwind" fn check(suspect: Suspect) {
    // SAFETY: inside a transaction; the pointers lead into the statement's memory context.
    unsafe {
        match suspect {
            Suspect::Nothing => {}
            Suspect::Publication(name) => {
                let name = std::ffi::CStr::from_ptr(name).to_bytes();
                refuse_included(name, pg_sys::InvalidOid);
            }
            Suspect::Created(name) => {
                pg_sys::CommandCounterIncrement();
                check_table(find_created(name));
            }
            Suspect::Changed(pg_sys::InvalidOid) => {}
            Suspect::Changed(table) => {
                pg_sys::CommandCounterIncrement();
                with_inheritors(table).into_iter().for_each(check_table);
            }
        }
    }
}

/// Raises an ERROR if the table is a lanes table and published.
fn check_table(table: pg_sys::Oid) {
    if table == pg_sys::InvalidOid {
        // An event trigger has dropped or moved the new table.
        return;
    }
    let is_refused = OpenedTable::try_open(table, pg_sys::AccessShareLock)
        .is_some_and(|opened| opened.get().is_lanes() && is_published(opened.get()));
    if is_refused {
        refuse_included(b"", table);
    }
}

/// Raises the ERROR about a lanes table that a publication includes, if there is one.
fn refuse_included(publication: &[u8], table: pg_sys::Oid) {
    let name = OwnedArgument::of_text(publication);
    let mut detail = None;
    INCLUDED.each_row(&[name.datum(), pg_sys::Datum::from(table)], |row| {
        if let Some((publication, table)) = row.get::<String>(1).zip(row.get::<String>(2)) {
            detail = Some(format!(
                "Publication \"{publication}\" would include the lanes table \"{table}\"."
            ));
        }
    });
    let Some(detail) = detail else {
        return;
    };
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        "lanes tables cannot be published for logical replication",
        "",
    )
    .set_detail(detail)
    .set_hint(
        "Publish only other tables, by name (FOR TABLE). Physical (streaming) replication carries lanes tables.",
    )
    .report(PgLogLevel::ERROR);
}
