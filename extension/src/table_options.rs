//! Storage parameters of lanes tables: `WITH (order_by = 'series, ts')`.
//!
//! Core offers no way to add parameters for tables. It rejects names that it does not know when it
//! checks a statement, and ignores them when it reads `pg_class.reloptions` back. So our parameters
//! are stored there like any other: pg_dump writes them, and rewrites copy them. But core never
//! checks them: `crate::hooks::utility` takes ours out of a statement before core sees it, and this
//! module stores them afterwards. [`settings`] holds their meaning, [`time_column`] the column that
//! ages of rows follow from.

use std::ffi::CStr;

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::error;
use crate::pg::definitions::{Definition, Definitions};
use crate::pg::table_catalog;

mod settings;
pub mod time_column;

pub use settings::{Settings, refuse_index_with_dedup};

/// Splits the definitions after WITH into ours and the others.
pub fn split(definitions: Definitions<'_>) -> (Definitions<'_>, Definitions<'_>) {
    definitions.partition(|definition| settings::NAMES.iter().any(|name| definition.is(name)))
}

/// Our parameters of a table as they are stored.
pub fn stored(table: pg_sys::Oid) -> Definitions<'static> {
    split(table_catalog::stored_definitions(table)).0
}

/// Stores parameters (or, with `reset`, removes them) in `pg_class.reloptions`, and makes that
/// visible. The caller owns the table and has locked it.
pub fn store(table: pg_sys::Oid, parameters: Definitions<'_>, reset: bool) {
    if !parameters.is_empty() {
        let parameters = match reset {
            true => parameters.without_values(),
            false => parameters,
        };
        table_catalog::store_definitions(table, parameters, reset);
    }
}

/// Checks the parameters that a table is going to have against one another and the table's columns: the stored ones,
/// with some set and some reset. The transaction has locked the table.
pub fn check(
    table: pg_sys::Oid,
    stored: Definitions<'_>,
    set: Definitions<'_>,
    reset: Definitions<'_>,
) {
    // A wrong value is an ERROR even if its parameter is reset.
    Settings::read(set.iter());
    let is_left = |definition: &Definition<'_>| !reset.names(definition.name());
    // Of two values of a parameter the later counts.
    let left = stored.iter().chain(set.iter()).filter(is_left);
    Settings::read(left).check(table);
}

/// Raises an ERROR if a statement about another kind of table has parameters of this extension,
/// which PostgreSQL does not know.
pub fn refuse_elsewhere(parameters: Definitions<'_>) {
    let (ours, _) = split(parameters);
    if let Some(first) = ours.iter().next() {
        let name = first.name().to_string_lossy();
        error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("unrecognized parameter \"{name}\""),
            format!(
                "Lanes tables have it: CREATE TABLE … USING lanes WITH ({name} = …), or ALTER TABLE … SET ACCESS METHOD lanes first."
            ),
        );
    }
}

/// The settings that a table's parameters make.
pub fn of(table: pg_sys::Oid) -> Settings {
    Settings::read(stored(table).iter())
}

/// Follows a column that a command of the table's owner has renamed.
pub fn rename_column(table: pg_sys::Oid, from: &CStr, to: &CStr) {
    let (from, to) = (from.to_string_lossy(), to.to_string_lossy());
    let Some(order_by) = of(table).order_by_renamed(&from, &to) else {
        return;
    };
    if let Some(definition) = Definition::of_text(settings::ORDER_BY, &order_by) {
        let mut renamed = Definitions::EMPTY;
        renamed.push(definition);
        store(table, renamed, false);
    }
}

/// Removes parameters of this extension that a table no longer fits after a command of its owner:
/// they name a column that is gone, or the table is not a lanes table any more. Otherwise
/// PostgreSQL would raise an error for them later, and so would the restore of a dump.
pub fn drop_unfit(table: pg_sys::Oid, is_lanes: impl Fn(pg_sys::Oid) -> bool) {
    table_catalog::make_changes_visible();
    let ours = stored(table);
    if ours.is_empty() {
        return;
    }
    if !is_lanes(table) {
        store(table, ours, true);
        pgrx::notice!("the table is not a lanes table any more: its lanes parameters are dropped");
    } else if Settings::read(ours.iter()).keys(table).is_none() {
        let names_columns = |definition: Definition<'_>| {
            definition.is(settings::ORDER_BY) || definition.is(settings::DEDUP)
        };
        store(table, ours.partition(names_columns).0, true);
        pgrx::notice!(
            "order_by of the table no longer fits it and is dropped; set it again with ALTER TABLE … SET (order_by = '…')"
        );
    }
}
