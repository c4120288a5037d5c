//! Statements that need no plan.

use std::ffi::CStr;

use pgrx::pg_sys::{self, Oid};

use super::expression::Expr;
use super::list::List;
use super::view::views;
use crate::pg::definitions::Definitions;
use crate::pg::functions::catalog;

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
    } {
        /// What the subcommand defines, which depends on its type.
        definition = def: Option<Expr<'p>>;
    } {} {
        set_definitions = def: Definitions<'p>;
    }

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
        catalog::relation_by_name(self)
    }

    /// The relation that was just created under the name. The search path might find another relation of that name
    /// first.
    pub fn find_created(self) -> Oid {
        let schema = catalog::RangeVarGetCreationNamespace(self);
        let name = self.relname().unwrap_or_default();
        catalog::get_relname_relid(name, schema)
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
        let definition = self.definition().filter(|_| self.sets_parameters());
        let list = definition.and_then(Expr::as_list);
        list.unwrap_or(Definitions::EMPTY)
    }

    /// Replaces the parameters that SET and RESET name.
    pub fn set_parameters(self, parameters: Definitions<'p>) {
        assert!(self.sets_parameters(), "only SET and RESET name parameters");
        self.set_definitions(parameters);
    }
}
