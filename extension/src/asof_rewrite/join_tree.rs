//! Makes a right side that is a join itself, `t LEFT JOIN (q JOIN r …) ON …`, one sub-select.
//!
//! The join's range-table entries move into the sub-select. Its columns are the columns of these entries that the rest of
//! the query uses, and the rest is changed to refer to the sub-select. Empty entries take the places of the entries that
//! moved, because the rest of the query refers to entries by index.

use pgrx::pg_sys;

use super::descend::{self, Moved};
use super::lateral;
use crate::error;
use crate::pg::{outer_joins, permission, ports, tree};

/// A column that the rest of the query uses.
struct Column {
    entry: i32,
    attribute: i16,
    /// A reference to the column.
    variable: pg_sys::Var,
}

/// Makes the right side of a join one range-table entry, and returns its index.
///
/// # Safety
/// A live join in the join tree of a live query that shares no nodes.
pub unsafe fn gather(parent: *mut pg_sys::Query, join: *mut pg_sys::JoinExpr) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        let side = (*join).rarg;
        let mut moved = Moved::default();
        members(side, &mut moved.0);
        refuse_locks(parent, &moved);
        let query: *mut pg_sys::Query = tree::make(pg_sys::NodeTag::T_Query);
        (*query).commandType = pg_sys::CmdType::CMD_SELECT;
        (*query).canSetTag = true;
        (*query).hasSubLinks = (*parent).hasSubLinks;
        (*query).hasRowSecurity = (*parent).hasRowSecurity;
        (*query).stmt_location = -1;
        let entries: Vec<_> = moved
            .0
            .iter()
            .map(|&index| tree::entry(parent, index))
            .collect();
        (*query).rtable = tree::list(&entries);
        (*query).jointree = pg_sys::makeFromExpr(tree::list(&[side]), std::ptr::null_mut());
        for (&index, &entry) in moved.0.iter().zip(&entries) {
            leave_behind(parent, index, entry);
        }
        let reference: *mut pg_sys::RangeTblRef = tree::make(pg_sys::NodeTag::T_RangeTblRef);
        let index = ports::list_length((*parent).rtable) + 1;
        (*reference).rtindex = index;
        (*join).rarg = reference.cast();

        let columns = redirect(parent, &moved, index);
        let mut names = Vec::new();
        let mut targets = Vec::new();
        for column in &columns {
            let name = name_of(
                entries[moved.renumber(column.entry).unwrap_or(1) as usize - 1],
                column,
            );
            let mut variable = column.variable;
            variable.varno = column.entry as _;
            variable.varattno = column.attribute;
            variable.varlevelsup = 0;
            let expression: *mut pg_sys::Var = tree::copy(&raw mut variable);
            let place = targets.len() as i16 + 1;
            targets.push(pg_sys::makeTargetEntry(
                expression.cast(),
                place,
                name,
                false,
            ));
            names.push(pg_sys::makeString(name).cast());
        }
        (*query).targetList = tree::list(&targets);
        permission::adopt(parent, query);
        descend::descend(query, &moved);
        let alias = entries.last().map_or(c"asof".as_ptr(), |&last| {
            (*(*last).eref).aliasname.cast_const()
        });
        let entry = lateral::sub_select_entry(query, std::ffi::CStr::from_ptr(alias), &names);
        (*entry).lateral = true;
        (*parent).rtable = pg_sys::lappend((*parent).rtable, entry.cast());
        index
    }
}

/// The entries of a join tree: the joined tables, then their join, so the outermost join is last.
unsafe fn members(node: *mut pg_sys::Node, found: &mut Vec<i32>) {
    // SAFETY: a live join tree; the casts follow the tags.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_RangeTblRef => {
                found.push((*node.cast::<pg_sys::RangeTblRef>()).rtindex);
            }
            pg_sys::NodeTag::T_JoinExpr => {
                let join: *mut pg_sys::JoinExpr = node.cast();
                members((*join).larg, found);
                members((*join).rarg, found);
                if (*join).rtindex > 0 {
                    found.push((*join).rtindex);
                }
            }
            pg_sys::NodeTag::T_FromExpr => {
                for part in tree::elements((*node.cast::<pg_sys::FromExpr>()).fromlist) {
                    members(part, found);
                }
            }
            _ => {}
        }
    }
}

/// Raises an error if the query locks rows of an entry that moves.
///
/// # Safety
/// A live query.
pub unsafe fn refuse_locks(parent: *const pg_sys::Query, moved: &Moved) {
    // SAFETY: live row marks.
    unsafe {
        for mark in tree::elements::<pg_sys::RowMarkClause>((*parent).rowMarks) {
            if moved.contains((*mark).rti as i32) {
                error::refuse(
                    "rows of the right side of an ASOF join cannot be locked",
                    "Name the tables to lock: FOR UPDATE OF the left side.",
                );
            }
        }
    }
}

/// Raises the error for a system column of the right side outside the join's conditions.
pub fn refuse_system_column() -> ! {
    error::refuse(
        "system columns of the right side of an ASOF join are not visible outside its conditions",
        "Join a sub-select that names the column, as in: (SELECT ctid AS place, * FROM quotes) q.",
    )
}

/// Puts an empty entry in the place of an entry that moves.
unsafe fn leave_behind(parent: *mut pg_sys::Query, index: i32, old: *mut pg_sys::RangeTblEntry) {
    // SAFETY: live trees.
    unsafe {
        let empty: *mut pg_sys::RangeTblEntry = tree::make(pg_sys::NodeTag::T_RangeTblEntry);
        (*empty).rtekind = pg_sys::RTEKind::RTE_RESULT;
        (*empty).eref = pg_sys::makeAlias((*(*old).eref).aliasname, std::ptr::null_mut());
        tree::list_set((*parent).rtable, index - 1, empty);
    }
}

/// Changes references to entries that move into references to columns of entry `index`, and returns these columns.
unsafe fn redirect(parent: *mut pg_sys::Query, moved: &Moved, index: i32) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    let mut system = false;
    // SAFETY: the visitor changes live nodes that nothing else shares; the cast follows the tag.
    unsafe {
        tree::walk_query(parent, &mut |node, depth| {
            if (*node).type_ != pg_sys::NodeTag::T_Var {
                return false;
            }
            let variable: *mut pg_sys::Var = node.cast();
            if (*variable).varlevelsup != depth || !moved.contains((*variable).varno) {
                return false;
            }
            let (entry, attribute) = ((*variable).varno, (*variable).varattno);
            system |= attribute < 0;
            let known = columns
                .iter()
                .position(|column| (column.entry, column.attribute) == (entry, attribute));
            let place = known.unwrap_or_else(|| {
                columns.push(Column {
                    entry,
                    attribute,
                    variable: *variable,
                });
                columns.len() - 1
            });
            (*variable).varno = index as _;
            (*variable).varattno = place as i16 + 1;
            (*variable).varnosyn = index as _;
            (*variable).varattnosyn = place as i16 + 1;
            outer_joins::renumber(&mut *variable, |join| {
                (!moved.0.contains(&join)).then_some(join)
            });
            false
        });
    }
    if system {
        refuse_system_column();
    }
    columns
}

unsafe fn name_of(entry: *mut pg_sys::RangeTblEntry, column: &Column) -> *mut std::ffi::c_char {
    // SAFETY: a live entry that has the column.
    unsafe {
        if column.attribute > 0 {
            pg_sys::get_rte_attribute_name(entry, column.attribute)
        } else {
            (*(*entry).eref).aliasname
        }
    }
}
