//! Refuses every statement that would publish a lanes table for logical replication.
//!
//! Logical decoding ignores generic WAL records, so a subscriber would silently miss the rows. A
//! publication includes a table by its name, its schema, an ancestor of a partition, or all tables,
//! and either the publication or the table may come first. So the statement is executed, then the
//! catalogs are searched for a lanes table that a publication includes, and an ERROR undoes the
//! statement. Two sessions may publish and create at once, and a publication may be older than this
//! check: [`crate::table::publication`] then refuses the writes.

use std::ffi::CStr;

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys};

use super::utility::{find, names_lanes};
use crate::pg::statement::{OwnedArgument, Statement};
use crate::pg::table::OpenedTable;
use crate::pg::table_catalog;
use crate::pg::tree::{
    AlterObjectSchemaStmt, AlterPublicationStmt, AlterTableStmt, CreatePublicationStmt, CreateStmt,
    CreateTableAsStmt, Expr, Node, PartitionCmd, RangeVar,
};
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

/// The tables that a statement may publish. It borrows from the statement and owns nothing, because an error of the
/// statement jumps over the frame that holds it.
#[derive(Clone, Copy)]
pub enum Suspect<'p> {
    Nothing,
    /// All that the named publication includes.
    Publication(&'p CStr),
    /// The table that the statement creates.
    Created(RangeVar<'p>),
    /// A table that the statement changes, and all its partitions.
    Changed(pg_sys::Oid),
}

/// Returns what a statement that is about to be executed may publish.
pub fn suspect(statement: Expr<'_>) -> Suspect<'_> {
    let found = if let Some(create) = statement.downcast::<CreatePublicationStmt<'_>>() {
        create.pubname().map(Suspect::Publication)
    } else if let Some(alter) = statement.downcast::<AlterPublicationStmt<'_>>() {
        let drops = alter.action() == pg_sys::AlterPublicationAction::AP_DropObjects;
        let name = alter.pubname().filter(|_| !drops);
        name.map(Suspect::Publication)
    } else if let Some(create) = statement.downcast::<CreateStmt<'_>>() {
        // Since 17 a partition takes the access method of its parent.
        let may_be_lanes = names_lanes(create.accessMethod()) || create.partbound().is_some();
        let name = create.relation().filter(|_| may_be_lanes);
        name.map(|name| created(name, create.if_not_exists()))
    } else if let Some(create) = statement.downcast::<CreateTableAsStmt<'_>>() {
        let into = create
            .into()
            .filter(|into| names_lanes(into.accessMethod()));
        let name = into.and_then(|into| into.rel());
        name.map(|name| created(name, create.if_not_exists()))
    } else if let Some(alter) = statement.downcast::<AlterTableStmt<'_>>() {
        altered(alter).map(Suspect::Changed)
    } else if let Some(alter) = statement.downcast::<AlterObjectSchemaStmt<'_>>() {
        let is_table = alter.objectType() == pg_sys::ObjectType::OBJECT_TABLE;
        is_table.then(|| Suspect::Changed(find(alter.relation())))
    } else {
        None
    };
    found.unwrap_or(Suspect::Nothing)
}

/// Returns the table of a CREATE statement, unless it exists already or is not permanent.
fn created(name: RangeVar<'_>, if_not_exists: bool) -> Suspect<'_> {
    let exists = || if_not_exists && name.find() != pg_sys::InvalidOid;
    match !name.is_permanent() || exists() {
        true => Suspect::Nothing,
        false => Suspect::Created(name),
    }
}

/// Returns the table that ALTER TABLE turns into a lanes table, a logged table or a partition.
fn altered(alter: AlterTableStmt<'_>) -> Option<pg_sys::Oid> {
    alter
        .cmds()
        .iter()
        .find_map(|command| match command.subtype() {
            pg_sys::AlterTableType::AT_SetAccessMethod | pg_sys::AlterTableType::AT_SetLogged => {
                Some(find(alter.relation()))
            }
            pg_sys::AlterTableType::AT_AttachPartition => {
                let partition = command.def()?.downcast::<PartitionCmd<'_>>()?;
                Some(find(partition.name()))
            }
            _ => None,
        })
}

/// Raises an ERROR if the statement, which has been executed, published a lanes table.
pub fn check(suspect: Suspect<'_>) {
    match suspect {
        Suspect::Nothing | Suspect::Changed(pg_sys::InvalidOid) => {}
        Suspect::Publication(name) => refuse_included(name.to_bytes(), pg_sys::InvalidOid),
        Suspect::Created(name) => {
            table_catalog::make_changes_visible();
            check_table(name.find_created());
        }
        Suspect::Changed(table) => {
            table_catalog::make_changes_visible();
            let tables = table_catalog::with_inheritors(table);
            tables.into_iter().for_each(check_table);
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
