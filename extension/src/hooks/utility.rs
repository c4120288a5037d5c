//! The hook around utility statements. It hides this extension's storage parameters from PostgreSQL's check (see
//! [`crate::table_options`]), and refuses indexes that lanes tables cannot have before anything is created.
//! [`publications`] refuses to publish them.

use std::ffi::CStr;

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::publications;
use crate::pg::definitions::Definitions;
use crate::pg::{names, ports};
use crate::table::pending_rows::{self, Gathers};
use crate::table_am::{index, routine};
use crate::table_options;

static mut PREVIOUS: pg_sys::ProcessUtility_hook_type = None;

/// Installs the hook. Called from `_PG_init`.
pub fn register() {
    // SAFETY: single-threaded, once a process.
    unsafe {
        PREVIOUS = pg_sys::ProcessUtility_hook;
        pg_sys::ProcessUtility_hook = Some(process_utility);
    }
}

unsafe extern "C-unwind" {
    // Called without the bindings' error boundary: see `process_utility`.
    #[link_name = "standard_ProcessUtility"]
    fn standard_process_utility(
        planned: *mut pg_sys::PlannedStmt,
        query: *const std::ffi::c_char,
        read_only: bool,
        context: pg_sys::ProcessUtilityContext::Type,
        parameters: pg_sys::ParamListInfo,
        environment: *mut pg_sys::QueryEnvironment,
        destination: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    );
}

unsafe extern "C-unwind" {
    fn find_all_inheritors(
        relation: pg_sys::Oid,
        lock: pg_sys::LOCKMODE,
        parents: *mut *mut pg_sys::List,
    ) -> *mut pg_sys::List;
}

/// What remains to be done after the statement. It holds plain pointers into the statement's memory, because an error may
/// jump over the frame that owns it.
#[derive(Clone, Copy)]
enum Afterwards {
    Nothing,
    /// Store this extension's parameters of the table that the statement created.
    Store {
        table: *mut pg_sys::RangeVar,
        ours: Definitions<'static>,
    },
    /// Apply the new name of a column to the parameters of a table and of tables that inherit it.
    Rename {
        from: *mut std::ffi::c_char,
        to: *mut std::ffi::c_char,
    },
    /// Restore the parameters that were set aside, then apply the changes.
    Restore {
        table: pg_sys::Oid,
        aside: Definitions<'static>,
        set: Definitions<'static>,
        reset: Definitions<'static>,
    },
}

/// The statement to execute, possibly a changed copy, and what remains to be done after it.
#[derive(Clone, Copy)]
struct Plan {
    planned: *mut pg_sys::PlannedStmt,
    afterwards: Afterwards,
    /// The depth of the frame that gathers the rows of a rewrite; 0 if there is none.
    frame: usize,
    /// The table whose stored parameters may no longer fit it; invalid if there is none.
    changed: pg_sys::Oid,
}

/// The hook. An error of the statement itself must reach the client with the position, constraint names and context that
/// PostgreSQL gave it. So it jumps over this frame, nothing here needs dropping, and only what runs before and after the
/// statement is guarded.
unsafe extern "C-unwind" fn process_utility(
    planned: *mut pg_sys::PlannedStmt,
    query: *const std::ffi::c_char,
    read_only: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    parameters: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    destination: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: the arguments are the ones we were called with, but for the statement, which is it or a copy of it.
    unsafe {
        let suspect = publications::suspect(planned);
        let plan = before(planned);
        let next = PREVIOUS.unwrap_or(standard_process_utility);
        next(
            plan.planned,
            query,
            read_only,
            context,
            parameters,
            environment,
            destination,
            completion,
        );
        after(plan);
        publications::check(suspect);
    }
}

#[pg_guard]
#[expect(
    improper_ctypes_definitions,
    reason = "called from Rust only; the signature is what the guard takes"
)]
unsafe extern "C-unwind" fn before(planned: *mut pg_sys::PlannedStmt) -> Plan {
    let unchanged = Plan {
        planned,
        afterwards: Afterwards::Nothing,
        frame: 0,
        changed: pg_sys::InvalidOid,
    };
    // SAFETY: a live planned statement; each arm casts the node to what its tag says.
    unsafe {
        let node = (*planned).utilityStmt;
        match (*node).type_ {
            pg_sys::NodeTag::T_CreateStmt => {
                let create: *mut pg_sys::CreateStmt = node.cast();
                if names_lanes((*create).accessMethod) {
                    return create_table(
                        planned,
                        (*create).relation,
                        (*create).if_not_exists,
                        |tree| &raw mut (*tree.cast::<pg_sys::CreateStmt>()).options,
                    );
                }
                table_options::refuse_elsewhere(Definitions::new((*create).options));
            }
            pg_sys::NodeTag::T_CreateTableAsStmt => {
                let create: *mut pg_sys::CreateTableAsStmt = node.cast();
                if names_lanes((*(*create).into).accessMethod) {
                    return create_table(
                        planned,
                        (*(*create).into).rel,
                        (*create).if_not_exists,
                        |tree| &raw mut (*(*tree.cast::<pg_sys::CreateTableAsStmt>()).into).options,
                    );
                }
                table_options::refuse_elsewhere(Definitions::new((*(*create).into).options));
            }
            pg_sys::NodeTag::T_AlterTableStmt => {
                let alter: *mut pg_sys::AlterTableStmt = node.cast();
                let plan = alter_table(planned, alter);
                return Plan {
                    frame: pending_rows::begin(Gathers::BulkRows),
                    changed: find((*alter).relation),
                    ..plan
                };
            }
            pg_sys::NodeTag::T_RenameStmt => {
                let rename: *mut pg_sys::RenameStmt = node.cast();
                if (*rename).renameType == pg_sys::ObjectType::OBJECT_COLUMN {
                    return Plan {
                        changed: find((*rename).relation),
                        afterwards: Afterwards::Rename {
                            from: (*rename).subname,
                            to: (*rename).newname,
                        },
                        ..unchanged
                    };
                }
            }
            pg_sys::NodeTag::T_IndexStmt => {
                let index: *mut pg_sys::IndexStmt = node.cast();
                let table = find((*index).relation);
                if is_lanes(table) {
                    let method = names::text((*index).accessMethod);
                    index::check(table, method.as_deref() == Some("brin"));
                }
            }
            _ => {}
        }
    }
    unchanged
}

#[pg_guard]
#[expect(
    improper_ctypes_definitions,
    reason = "called from Rust only; the signature is what the guard takes"
)]
unsafe extern "C-unwind" fn after(plan: Plan) {
    if plan.frame > 0 {
        pending_rows::end(plan.frame);
    }
    // SAFETY: the lists live in the statement's memory context.
    unsafe {
        match plan.afterwards {
            Afterwards::Nothing => {}
            Afterwards::Store { table, ours } => {
                pg_sys::CommandCounterIncrement();
                let table = find_created(table);
                if is_lanes(table) {
                    let none = Definitions::empty();
                    table_options::check(table, none, ours, none);
                    table_options::store(table, ours, false);
                }
            }
            Afterwards::Rename { from, to } if plan.changed != pg_sys::InvalidOid => {
                pg_sys::CommandCounterIncrement();
                for table in with_inheritors(plan.changed) {
                    if is_lanes(table) {
                        let (from, to) = (CStr::from_ptr(from), CStr::from_ptr(to));
                        table_options::rename_column(table, from, to);
                    }
                }
            }
            Afterwards::Rename { .. } => {}
            Afterwards::Restore {
                table,
                aside,
                set,
                reset,
            } => {
                pg_sys::CommandCounterIncrement();
                table_options::store(table, aside, false);
                table_options::store(table, set, false);
                table_options::store(table, reset, true);
                keep_for_dumps(table);
            }
        }
        if plan.changed != pg_sys::InvalidOid {
            table_options::drop_unfit(plan.changed, |table| is_lanes(table));
        }
    }
}

/// Stores the parameters of a table that belongs to the extension for pg_dump, which does not dump such tables'
/// definitions.
unsafe fn keep_for_dumps(table: pg_sys::Oid) {
    // SAFETY: inside a transaction; the statement's snapshot is there for the function that is called.
    unsafe {
        if pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, table) != pg_sys::InvalidOid {
            pg_sys::CommandCounterIncrement();
            if let Err(error) = Spi::run("SELECT lanes.keep_samples_parameters()") {
                pgrx::error!(
                    "parameters of table {} were not kept: {error}",
                    table.to_u32()
                );
            }
        }
    }
}

/// A copy of the statement, which may be changed.
unsafe fn own_copy(planned: *mut pg_sys::PlannedStmt) -> *mut pg_sys::PlannedStmt {
    // SAFETY: a live tree.
    unsafe { pg_sys::copyObjectImpl(planned.cast()).cast() }
}

/// Whether a CREATE statement's access method, or the default if it names none, is `lanes`.
pub(super) unsafe fn names_lanes(name: *mut std::ffi::c_char) -> bool {
    // SAFETY: a C string or null; the default is a GUC string.
    unsafe {
        let name = if name.is_null() {
            pg_sys::default_table_access_method
        } else {
            name
        };
        !name.is_null() && CStr::from_ptr(name) == c"lanes"
    }
}

/// The relation that a name refers to now; invalid if there is none.
pub(super) unsafe fn find(name: *mut pg_sys::RangeVar) -> pg_sys::Oid {
    // SAFETY: a live range variable; missing is no error.
    unsafe {
        pg_sys::RangeVarGetRelidExtended(
            name,
            pg_sys::NoLock as i32,
            pg_sys::RVROption::RVR_MISSING_OK,
            None,
            std::ptr::null_mut(),
        )
    }
}

/// The relation that was just created under a name. The search path might find another relation of that name first.
pub(super) unsafe fn find_created(name: *mut pg_sys::RangeVar) -> pg_sys::Oid {
    // SAFETY: a live range variable; catalogue look-ups.
    unsafe {
        let schema = pg_sys::RangeVarGetCreationNamespace(name);
        pg_sys::get_relname_relid((*name).relname, schema)
    }
}

/// A table and all tables that inherit it, directly or indirectly.
pub(super) unsafe fn with_inheritors(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let (lock, none) = (pg_sys::NoLock as pg_sys::LOCKMODE, std::ptr::null_mut());
    // SAFETY: catalogue look-ups, which give a list of oids; the boundary turns an ERROR into a panic.
    unsafe {
        let tables = pg_sys::ffi::pg_guard_ffi_boundary(|| find_all_inheritors(table, lock, none));
        (0..ports::list_length(tables) as usize)
            .map(|index| (*(*tables).elements.add(index)).oid_value)
            .collect()
    }
}

/// Whether a relation is a lanes table.
unsafe fn is_lanes(relation: pg_sys::Oid) -> bool {
    if relation == pg_sys::InvalidOid {
        return false;
    }
    // SAFETY: a relcache look-up without a lock that tolerates a relation that goes away.
    unsafe {
        let open = pg_sys::try_relation_open(relation, pg_sys::AccessShareLock as i32);
        if open.is_null() {
            return false;
        }
        let ours = (*open).rd_tableam == routine::routine();
        pg_sys::relation_close(open, pg_sys::NoLock as i32);
        ours
    }
}

unsafe fn create_table(
    planned: *mut pg_sys::PlannedStmt,
    name: *mut pg_sys::RangeVar,
    if_not_exists: bool,
    options_of: impl FnOnce(*mut pg_sys::Node) -> *mut *mut pg_sys::List,
) -> Plan {
    // SAFETY: `options_of` finds the list in our copy of the tree.
    unsafe {
        let planned = own_copy(planned);
        let options = options_of((*planned).utilityStmt);
        let (ours, others) = table_options::split(Definitions::new(*options));
        table_options::warn_of_useless(others);
        *options = others.as_ptr();
        let existed = if_not_exists && find(name) != pg_sys::InvalidOid;
        let afterwards = if !ours.is_empty() && !existed {
            Afterwards::Store { table: name, ours }
        } else {
            Afterwards::Nothing
        };
        Plan {
            planned,
            afterwards,
            frame: 0,
            changed: pg_sys::InvalidOid,
        }
    }
}

/// `ALTER TABLE … SET / RESET (…)`. PostgreSQL checks all stored parameters again, so this extension's are set aside
/// during the statement.
unsafe fn alter_table(
    planned: *mut pg_sys::PlannedStmt,
    original: *mut pg_sys::AlterTableStmt,
) -> Plan {
    // SAFETY: live trees; the table is locked as core itself will lock it, and owned by the caller.
    unsafe {
        let unchanged = Plan {
            planned,
            afterwards: Afterwards::Nothing,
            frame: 0,
            changed: pg_sys::InvalidOid,
        };
        if !sets_parameters((*original).cmds) {
            return unchanged;
        }
        let table = find((*original).relation);
        if !is_lanes(table) || !ports::owns_relation(table) {
            if (*original).objtype == pg_sys::ObjectType::OBJECT_TABLE && !is_lanes(table) {
                refuse_setting((*original).cmds);
            }
            return unchanged;
        }
        pg_sys::LockRelationOid(table, pg_sys::ShareUpdateExclusiveLock as i32);
        let planned = own_copy(planned);
        let tree: *mut pg_sys::AlterTableStmt = (*planned).utilityStmt.cast();
        let (mut set, mut reset) = (Definitions::empty(), Definitions::empty());
        for i in 0..ports::list_length((*tree).cmds) {
            let command: *mut pg_sys::AlterTableCmd = ports::list_nth((*tree).cmds, i);
            let target = match (*command).subtype {
                pg_sys::AlterTableType::AT_SetRelOptions => &mut set,
                pg_sys::AlterTableType::AT_ResetRelOptions => &mut reset,
                _ => continue,
            };
            let (ours, others) = table_options::split(Definitions::new((*command).def.cast()));
            if (*command).subtype == pg_sys::AlterTableType::AT_SetRelOptions {
                table_options::warn_of_useless(others);
            }
            (*command).def = others.as_ptr().cast();
            ours.iter().for_each(|definition| target.push(definition));
        }
        let aside = table_options::stored(table);
        table_options::check(table, aside, set, reset);
        table_options::store(table, aside, true);
        Plan {
            planned,
            afterwards: Afterwards::Restore {
                table,
                aside,
                set,
                reset,
            },
            frame: 0,
            changed: pg_sys::InvalidOid,
        }
    }
}

/// Refuses to set this extension's parameters on another table.
unsafe fn refuse_setting(commands: *mut pg_sys::List) {
    // SAFETY: a live list of AlterTableCmds; those that set parameters have a list of them.
    unsafe {
        for i in 0..ports::list_length(commands) {
            let command: *mut pg_sys::AlterTableCmd = ports::list_nth(commands, i);
            if (*command).subtype == pg_sys::AlterTableType::AT_SetRelOptions {
                table_options::refuse_elsewhere(Definitions::new((*command).def.cast()));
            }
        }
    }
}

unsafe fn sets_parameters(commands: *mut pg_sys::List) -> bool {
    // SAFETY: a live list of AlterTableCmds.
    unsafe {
        (0..ports::list_length(commands)).any(|i| {
            let command: *mut pg_sys::AlterTableCmd = ports::list_nth(commands, i);
            matches!(
                (*command).subtype,
                pg_sys::AlterTableType::AT_SetRelOptions
                    | pg_sys::AlterTableType::AT_ResetRelOptions
            )
        })
    }
}
