//! What the keys of this database's objects begin with: `<system identifier>/<database oid>`.
//!
//! The identifier is that of the cluster in which the database was created, which `lanes.object_scopes` keeps. So keys
//! stay as they are when pg_upgrade moves the database into a cluster with another identifier. The rows of the table
//! distinguish what happened to the database:
//!
//! | rows | the database | its scope |
//! |---|---|---|
//! | one of this database | was created here, or was moved or copied with its oid | the row |
//! | others only | is a copy by CREATE DATABASE | the server's identifier |
//! | no table | has SQL from before there was the table | the server's identifier |
//!
//! pg_upgrade keeps the oids of databases, and so does a copy of a data directory. What a copy by CREATE DATABASE has
//! in object storage is the other database's; it gets a row of its own once it offloads.
//!
//! A dump does not contain the table, so a database that was restored from one has a scope of its own. A copy of a data
//! directory has the scope of the original. The store's record of its owner distinguishes them, as it did before.

use std::cell::Cell;

use pgrx::prelude::*;

use crate::error;
use crate::pg::{catalog, server, table_catalog, transaction};

thread_local! {
    /// The table, and the identifier that its row of this database has. Such a row never changes.
    static KNOWN: Cell<Option<(pg_sys::Oid, u64)>> = const { Cell::new(None) };
}

/// What `lanes.object_scopes` says about this database.
enum Scope {
    /// The identifier with which its keys begin.
    Kept(u64),
    /// It is a copy by CREATE DATABASE and has not offloaded yet. The value is the table.
    OfCopy(pg_sys::Oid),
    /// There is no such table.
    Unknown,
}

fn find() -> Scope {
    let Some(table) = catalog::lanes_table(c"object_scopes") else {
        return Scope::Unknown;
    };
    if let Some((of, system)) = KNOWN.get()
        && of == table
    {
        return Scope::Kept(system);
    }
    let mut found = None;
    table_catalog::object_scopes(table, |row| {
        if row.database.to_u32() == server::database() {
            found = Some(row.system_identifier as u64);
        }
    });
    match found {
        Some(system) => {
            // A transaction that has written may have added the row, and may still be rolled back.
            if transaction::top_xid().is_none() {
                KNOWN.set(Some((table, system)));
            }
            Scope::Kept(system)
        }
        None => Scope::OfCopy(table),
    }
}

/// The identifier with which keys of this database begin.
pub fn system_identifier() -> u64 {
    match find() {
        Scope::Kept(system) => system,
        Scope::OfCopy(_) | Scope::Unknown => server::system_identifier(),
    }
}

/// Whether rows of this database in object storage are those of the database that it was copied from.
pub fn is_of_copy() -> bool {
    matches!(find(), Scope::OfCopy(_))
}

/// Gives a copy by CREATE DATABASE a scope of its own, before it offloads for the first time. `has_remote_rows` says
/// whether it was copied with rows in object storage: their keys are the other database's, and could not be told from
/// its own afterwards.
pub fn claim(has_remote_rows: impl FnOnce() -> bool) {
    let Scope::OfCopy(table) = find() else {
        return;
    };
    if has_remote_rows() {
        error::raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "a copy of a database with rows in object storage cannot offload",
            "CREATE DATABASE with a template copies no objects. Copy by pg_dump, or drop the tables with such rows.",
        );
    }
    let scope = table_catalog::ObjectScope {
        database: server::database().into(),
        system_identifier: server::system_identifier() as i64,
    };
    table_catalog::add_object_scope(table, &scope);
}

/// What the keys of this database begin with.
#[pg_extern(sql = false)]
fn object_scope() -> String {
    format!("{}/{}", system_identifier(), server::database())
}
