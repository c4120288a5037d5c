//! The hook around utility statements. It hides this extension's storage parameters from PostgreSQL's check (see
//! [`crate::table_options`]), and refuses indexes that lanes tables cannot have before anything is created.

use std::ffi::CStr;

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::pg::definitions::Definitions;
use crate::pg::hooks::{self, UtilityHook};
use crate::pg::table::OpenedTable;
use crate::pg::tree::{
    AlterTableCmd, AlterTableStmt, CreateStmt, CreateTableAsStmt, Expr, IndexStmt, List, Node,
    PlannedStmt, RangeVar, RenameStmt, View, make, plan_node, tag,
};
use crate::pg::{server, table_catalog};
use crate::table::pending_rows::{self, Gathers};
use crate::table_am::index;
use crate::table_options;

/// Installs the hook. Called from `_PG_init`.
pub fn register() {
    hooks::chain_utility::<Statements>();
}

/// The utility hook of this extension: it handles table options.
struct Statements;

/// The work that remains after the statement. It borrows from the statement's memory, because an error may jump
/// over the frame that holds it.
#[derive(Clone, Copy)]
enum Afterwards {
    Nothing,
    /// Store this extension's parameters of the table that the statement created.
    Store {
        table: RangeVar<'static>,
        ours: Definitions<'static>,
    },
    /// Apply the new name of a column to the parameters of a table and of tables that inherit it.
    Rename {
        from: &'static CStr,
        to: &'static CStr,
    },
    /// Restore the parameters that were set aside, then apply the changes.
    Restore {
        table: pg_sys::Oid,
        aside: Definitions<'static>,
        set: Definitions<'static>,
        reset: Definitions<'static>,
    },
}

/// The work that a statement leaves for after its execution.
#[derive(Clone, Copy)]
struct Plan {
    afterwards: Afterwards,
    /// The depth of the frame that gathers the rows of a rewrite; 0 if there is none.
    frame: usize,
    /// The table whose stored parameters may no longer fit it; invalid if there is none.
    changed: pg_sys::Oid,
}

impl UtilityHook for Statements {
    type Plan = Plan;

    fn before(planned: PlannedStmt<'_>) -> (PlannedStmt<'_>, Plan) {
        // The statement's memory lives until the hook has returned.
        let statement: PlannedStmt<'static> = plan_node(planned.as_ptr());
        let mut plan = Plan {
            afterwards: Afterwards::Nothing,
            frame: 0,
            changed: pg_sys::InvalidOid,
        };
        let Some(node) = statement.utilityStmt() else {
            return (planned, plan);
        };
        let changed = plan.prepare(statement, node);
        (changed.unwrap_or(statement), plan)
    }

    fn after(plan: Plan) {
        if plan.frame > 0 {
            pending_rows::end(plan.frame);
        }
        plan.afterwards.run(plan.changed);
        if plan.changed != pg_sys::InvalidOid {
            table_options::drop_unfit(plan.changed, is_lanes);
        }
    }
}

impl Plan {
    /// Plans what is done after a statement. Returns a changed copy of the statement, if another one is to be executed.
    fn prepare(
        &mut self,
        planned: PlannedStmt<'static>,
        node: Expr<'static>,
    ) -> Option<PlannedStmt<'static>> {
        if let Some(create) = node.downcast::<CreateStmt<'static>>() {
            if !names_lanes(create.accessMethod()) {
                table_options::refuse_elsewhere(create.options());
                return None;
            }
            let (copy, create) = copy_of::<CreateStmt<'static>>(planned)?;
            let others =
                self.create_table(create.relation(), create.if_not_exists(), create.options());
            create.set_options(others);
            return Some(copy);
        }
        if let Some(create) = node.downcast::<CreateTableAsStmt<'static>>() {
            let into = create.into()?;
            if !names_lanes(into.accessMethod()) {
                table_options::refuse_elsewhere(into.options());
                return None;
            }
            let (copy, create) = copy_of::<CreateTableAsStmt<'static>>(planned)?;
            let into = create.into()?;
            let others = self.create_table(into.rel(), create.if_not_exists(), into.options());
            into.set_options(others);
            return Some(copy);
        }
        if let Some(alter) = node.downcast::<AlterTableStmt<'static>>() {
            let copy = self.alter_table(planned, alter);
            self.frame = pending_rows::begin(Gathers::BulkRows);
            self.changed = find(alter.relation());
            return copy;
        }
        if let Some(rename) = node.downcast::<RenameStmt<'static>>() {
            if rename.renameType() == pg_sys::ObjectType::OBJECT_COLUMN
                && let (Some(from), Some(to)) = (rename.subname(), rename.newname())
            {
                self.changed = find(rename.relation());
                self.afterwards = Afterwards::Rename { from, to };
            }
        } else if let Some(index) = node.downcast::<IndexStmt<'static>>() {
            let table = find(index.relation());
            if is_lanes(table) {
                index::check(table, index.accessMethod() == Some(c"brin"));
            }
        }
        None
    }

    /// A lanes table is created. Returns the parameters that PostgreSQL may see.
    fn create_table(
        &mut self,
        name: Option<RangeVar<'static>>,
        if_not_exists: bool,
        options: Definitions<'static>,
    ) -> Definitions<'static> {
        let (ours, others) = table_options::split(options);
        let existed = if_not_exists && find(name) != pg_sys::InvalidOid;
        if let Some(table) = name
            && !ours.is_empty()
            && !existed
        {
            self.afterwards = Afterwards::Store { table, ours };
        }
        others
    }

    /// `ALTER TABLE … SET / RESET (…)`. PostgreSQL checks all stored parameters again, so this extension's are set
    /// aside during the statement.
    fn alter_table(
        &mut self,
        planned: PlannedStmt<'static>,
        original: AlterTableStmt<'static>,
    ) -> Option<PlannedStmt<'static>> {
        if !original.cmds().iter().any(AlterTableCmd::sets_parameters) {
            return None;
        }
        let table = find(original.relation());
        if !is_lanes(table) || !table_catalog::owns(table) {
            if original.objtype() == pg_sys::ObjectType::OBJECT_TABLE && !is_lanes(table) {
                refuse_setting(original.cmds());
            }
            return None;
        }
        // As core itself will lock it.
        server::lock_table(table, pg_sys::ShareUpdateExclusiveLock);
        let (copy, alter) = copy_of::<AlterTableStmt<'static>>(planned)?;
        let (mut set, mut reset) = (Definitions::EMPTY, Definitions::EMPTY);
        for command in alter
            .cmds()
            .iter()
            .filter(|command| command.sets_parameters())
        {
            let (ours, others) = table_options::split(command.parameters());
            let target = match command.subtype() {
                pg_sys::AlterTableType::AT_SetRelOptions => &mut set,
                _ => &mut reset,
            };
            command.set_parameters(others);
            ours.iter().for_each(|definition| target.push(definition));
        }
        let aside = table_options::stored(table);
        table_options::check(table, aside, set, reset);
        table_options::store(table, aside, true);
        self.afterwards = Afterwards::Restore {
            table,
            aside,
            set,
            reset,
        };
        Some(copy)
    }
}

impl Afterwards {
    /// Does what remains. A column was renamed in the table `changed`.
    fn run(self, changed: pg_sys::Oid) {
        if matches!(self, Afterwards::Nothing) {
            return;
        }
        table_catalog::make_changes_visible();
        match self {
            Afterwards::Nothing => {}
            Afterwards::Store { table, ours } => {
                let table = table.find_created();
                if is_lanes(table) {
                    let none = Definitions::EMPTY;
                    table_options::check(table, none, ours, none);
                    table_options::store(table, ours, false);
                }
            }
            Afterwards::Rename { .. } if changed == pg_sys::InvalidOid => {}
            Afterwards::Rename { from, to } => {
                for table in table_catalog::with_inheritors(changed) {
                    if is_lanes(table) {
                        table_options::rename_column(table, from, to);
                    }
                }
            }
            Afterwards::Restore {
                table,
                aside,
                set,
                reset,
            } => {
                table_options::store(table, aside, false);
                table_options::store(table, set, false);
                table_options::store(table, reset, true);
                keep_for_dumps(table);
            }
        }
    }
}

/// Stores the parameters of a table that belongs to the extension for pg_dump, which does not dump such tables'
/// definitions.
fn keep_for_dumps(table: pg_sys::Oid) {
    if table_catalog::is_of_an_extension(table) {
        table_catalog::make_changes_visible();
        if let Err(error) = Spi::run("SELECT lanes.keep_samples_parameters()") {
            pgrx::error!(
                "parameters of table {} were not kept: {error}",
                table.to_u32()
            );
        }
    }
}

/// A copy of a statement, which may be changed.
fn copy_of<V: tag::Tagged<'static>>(
    planned: PlannedStmt<'static>,
) -> Option<(PlannedStmt<'static>, V)> {
    let copy = make::copy(planned);
    Some((copy, copy.utilityStmt()?.downcast()?))
}

/// Whether a CREATE statement's access method, or the default if it names none, is `lanes`.
fn names_lanes(name: Option<&CStr>) -> bool {
    match name {
        Some(name) => name == c"lanes",
        None => server::has_default_access_method(c"lanes"),
    }
}

/// The relation that a name refers to now; invalid if there is none.
fn find(name: Option<RangeVar<'_>>) -> pg_sys::Oid {
    name.map_or(pg_sys::InvalidOid, RangeVar::find)
}

/// Whether a relation is a lanes table.
fn is_lanes(relation: pg_sys::Oid) -> bool {
    relation != pg_sys::InvalidOid
        && OpenedTable::try_open(relation, pg_sys::AccessShareLock)
            .is_some_and(|opened| opened.keep_lock().get().is_lanes())
}

/// Refuses to set this extension's parameters on another table.
fn refuse_setting(commands: List<'_, AlterTableCmd<'_>>) {
    for command in commands {
        if command.subtype() == pg_sys::AlterTableType::AT_SetRelOptions {
            table_options::refuse_elsewhere(command.parameters());
        }
    }
}
