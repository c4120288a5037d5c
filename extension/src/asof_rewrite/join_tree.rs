//! Makes a right side that is a join itself, `t LEFT JOIN (q JOIN r …) ON …`, one sub-select.
//!
//! The join's range-table entries move into the sub-select. Its columns are the columns of these
//! entries that the rest of the query uses, and the rest is changed to refer to the sub-select.
//! Empty entries take the places of the entries that moved, because the rest of the query refers to
//! entries by index.

use pgrx::pg_sys;

use super::descend::{self, Moved};
use super::lateral;
use crate::error;
use crate::pg::tree::{
    Expression, JoinExpr, JoinKind, JoinTree, Kind, List, Query, RangeTblEntry, Var, make, tag,
    walk,
};
use crate::pg::{outer_joins, permission};

/// A column that the rest of the query uses.
struct Column<'p> {
    entry: i32,
    attribute: i16,
    /// A copy of the first reference to the column.
    reference: Var<'p>,
}

/// Makes the right side of a join one range-table entry, and returns its index. The query shares no nodes.
pub fn gather(parent: Query<'_>, join: JoinExpr<'_>) -> i32 {
    let Some(side) = join.rarg() else {
        unreachable!("a join has a right side");
    };
    let mut moved = Moved::default();
    members(side, &mut moved.0);
    refuse_locks(parent, &moved);
    let query = lateral::select_like(parent);
    let entries: Vec<_> = moved
        .0
        .iter()
        .filter_map(|&index| parent.entry(index))
        .collect();
    query.set_rtable(List::new(entries.iter().copied()));
    query.set_jointree(Some(make::from(&[side], None)));
    for (&index, &entry) in moved.0.iter().zip(&entries) {
        leave_behind(parent, index, entry);
    }
    let index = parent.rtable().len() as i32 + 1;
    join.set_right(Some(make::reference(index)));

    let (mut names, mut targets) = (List::EMPTY, List::EMPTY);
    for column in redirect(parent, &moved, index) {
        let entry = entries[moved.renumber(column.entry).unwrap_or(1) as usize - 1];
        let name = entry.attribute_name(column.attribute);
        let expr = column.reference.as_expr();
        targets.push(make::target(expr, targets.len() + 1, name, false));
        names.push(make::name(name.unwrap_or_default()));
    }
    query.set_targets(targets);
    permission::adopt(parent, query);
    descend::descend(query, &moved);
    let alias = entries.last().and_then(|last| last.attribute_name(0));
    let entry = lateral::sub_select_entry(query, alias.unwrap_or(c"asof"), names);
    entry.set_lateral(true);
    let mut rtable = parent.rtable();
    rtable.push(entry);
    parent.set_rtable(rtable);
    index
}

/// The entries of a join tree: the joined tables, then their join, so the outermost join is last.
fn members(node: JoinTree<'_>, found: &mut Vec<i32>) {
    match node.kind() {
        JoinKind::Entry(reference) => found.push(reference.rtindex()),
        JoinKind::Join(join) => {
            for side in [join.larg(), join.rarg()].into_iter().flatten() {
                members(side, found);
            }
            if join.rtindex() > 0 {
                found.push(join.rtindex());
            }
        }
        JoinKind::From(from) => {
            for part in from.fromlist() {
                members(part, found);
            }
        }
        JoinKind::Other(_) => {}
    }
}

/// Raises an error if the query locks rows of an entry that moves.
pub fn refuse_locks(parent: Query<'_>, moved: &Moved) {
    let mut marks = parent.rowMarks().iter();
    if marks.any(|mark| moved.contains(mark.rti() as i32)) {
        error::refuse(
            "rows of the right side of an ASOF join cannot be locked",
            "Name the tables to lock: FOR UPDATE OF the left side.",
        );
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
fn leave_behind<'p>(parent: Query<'p>, index: i32, old: RangeTblEntry<'p>) {
    let empty: RangeTblEntry<'p> = tag::new();
    empty.set_kind(pg_sys::RTEKind::RTE_RESULT);
    let name = old.attribute_name(0).unwrap_or_default();
    empty.set_names(Some(make::alias(name, List::EMPTY)));
    parent.rtable().set(index as usize - 1, empty);
}

/// Changes references to entries that move into references to columns of entry `index`, and returns these columns.
fn redirect<'p>(parent: Query<'p>, moved: &Moved, index: i32) -> Vec<Column<'p>> {
    let mut columns: Vec<Column<'p>> = Vec::new();
    let mut system = false;
    walk::query(parent, &mut |node, depth| {
        let Kind::Var(var) = node.kind() else {
            return false;
        };
        let (entry, attribute) = (var.varno(), var.varattno());
        if var.varlevelsup() != depth || !moved.contains(entry) {
            return false;
        }
        system |= attribute < 0;
        let known = columns
            .iter()
            .position(|column| (column.entry, column.attribute) == (entry, attribute));
        let place = known.unwrap_or_else(|| {
            let reference = make::copy(var);
            reference.set_levels_up(0);
            columns.push(Column {
                entry,
                attribute,
                reference,
            });
            columns.len() - 1
        });
        var.refer_to(index, place as i16 + 1);
        outer_joins::renumber(var, |join| (!moved.contains(join)).then_some(join));
        false
    });
    if system {
        refuse_system_column();
    }
    columns
}
