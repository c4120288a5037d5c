//! Statements that need no plan.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Oid};

use super::list::List;
use super::view::{Field, View, views};
use crate::pg::definitions::Definitions;

views! {
    /// The name of a relation in a statement.
    RangeVar of RangeVar {} {
        relname: Option<&'p CStr>;
    } {}

    /// CREATE TABLE.
    CreateStmt of CreateStmt {
        if_not_exists: bool;
    } {
        relation: Option<RangeVar<'p>>;
        accessMethod: Option<&'p CStr>;
        options: Definitions<'p>;
    } {} {
        set_options = options: Definitions<'p>;
    }

    /// CREATE TABLE AS and CREATE MATERIALIZED VIEW.
    CreateTableAsStmt of CreateTableAsStmt {
        if_not_exists: bool;
    } {
        into: Option<IntoClause<'p>>;
    } {}

    /// The table that CREATE TABLE AS makes.
    IntoClause of IntoClause {} {
        rel: Option<RangeVar<'p>>;
        accessMethod: Option<&'p CStr>;
        options: Definitions<'p>;
    } {} {
        set_options = options: Definitions<'p>;
    }

    /// ALTER TABLE and its like.
    AlterTableStmt of AlterTableStmt {
        objtype: pg_sys::ObjectType::Type;
    } {
        relation: Option<RangeVar<'p>>;
        cmds: List<'p, AlterTableCmd<'p>>;
    } {}

    /// A subcommand of ALTER TABLE.
    AlterTableCmd of AlterTableCmd {
        subtype: pg_sys::AlterTableType::Type;
    } {} {}

    /// ALTER … RENAME.
    RenameStmt of RenameStmt {
        renameType: pg_sys::ObjectType::Type;
    } {
        relation: Option<RangeVar<'p>>;
        subname: Option<&'p CStr>;
        newname: Option<&'p CStr>;
    } {}

    /// CREATE INDEX.
    IndexStmt of IndexStmt {} {
        relation: Option<RangeVar<'p>>;
        accessMethod: Option<&'p CStr>;
    } {}
}

impl RangeVar<'_> {
    /// The relation that the name refers to now; invalid if there is none.
    pub fn find(self) -> Oid {
        let (no_lock, missing_ok) = (pg_sys::NoLock as i32, pg_sys::RVROption::RVR_MISSING_OK);
        // SAFETY: a live name; missing is no error.
        unsafe {
            let (name, none) = (self.as_ptr(), std::ptr::null_mut());
            pg_sys::RangeVarGetRelidExtended(name, no_lock, missing_ok, None, none)
        }
    }

    /// The relation that was just created under the name. The search path might find another relation of that name
    /// first.
    pub fn find_created(self) -> Oid {
        // SAFETY: a live name; look-ups in the system catalogs.
        unsafe {
            let schema = pg_sys::RangeVarGetCreationNamespace(self.as_ptr());
            pg_sys::get_relname_relid((*self.as_ptr()).relname, schema)
        }
    }
}

impl<'p> AlterTableCmd<'p> {
    /// Whether the subcommand sets or resets parameters.
    pub fn sets_parameters(self) -> bool {
        matches!(
            self.subtype(),
            pg_sys::AlterTableType::AT_SetRelOptions | pg_sys::AlterTableType::AT_ResetRelOptions
        )
    }

    /// The parameters that SET and RESET name.
    pub fn parameters(self) -> Definitions<'p> {
        match self.sets_parameters() {
            // SAFETY: such a subcommand has a list of them, or null.
            true => unsafe { Field::of((*self.as_ptr()).def.cast()) },
            false => Definitions::empty(),
        }
    }

    /// Replaces the parameters that SET and RESET name.
    pub fn set_parameters(self, parameters: Definitions<'p>) {
        assert!(self.sets_parameters(), "only SET and RESET name parameters");
        // SAFETY: a live subcommand, of which no view lends a reference.
        unsafe { (*self.as_ptr()).def = parameters.as_ptr().cast() }
    }
}
