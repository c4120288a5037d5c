//! Adapts a tree that moves one query level down.
//!
//! A part of a query that becomes a sub-select of the query is first built in the query's own terms. [`descend`] then
//! adapts it: references to entries that move along keep their level and get new indexes, and all other references go one
//! level further up.

use pgrx::pg_sys;

use crate::pg::outer_joins;
use crate::pg::tree::{self, Visitor};

/// The old range-table indexes of the entries that move. The new index of an entry is its position here, counted from 1.
#[derive(Clone, Debug, Default)]
pub struct Moved(pub Vec<i32>);

impl Moved {
    /// The new index of an entry; `None` if it does not move.
    pub fn renumber(&self, old: i32) -> Option<i32> {
        let place = self.0.iter().position(|&member| member == old)?;
        Some(place as i32 + 1)
    }

    /// Whether an entry moves.
    pub fn contains(&self, old: i32) -> bool {
        self.0.contains(&old)
    }
}

/// Adapts a query that is in the terms of its future parent.
///
/// # Safety
/// A live tree that shares no node with anything else.
pub unsafe fn descend(query: *mut pg_sys::Query, moved: &Moved) {
    // SAFETY: the caller's promise.
    unsafe { tree::walk_query(query, &mut *adapter(moved)) };
}

/// Adapts an expression that is in the terms of its query's future parent.
///
/// # Safety
/// A live expression that shares no node with anything else.
pub unsafe fn descend_expression(expression: *mut pg_sys::Node, moved: &Moved) {
    // SAFETY: the caller's promise.
    unsafe { tree::walk_expression(expression, &mut *adapter(moved)) };
}

fn adapter(moved: &Moved) -> Box<Visitor<'_>> {
    Box::new(move |node, depth| {
        // SAFETY: the walker hands over live nodes; each cast follows the tag.
        unsafe {
            match (*node).type_ {
                pg_sys::NodeTag::T_Var => variable(&mut *node.cast(), depth, moved),
                pg_sys::NodeTag::T_Aggref => {
                    let aggregate: *mut pg_sys::Aggref = node.cast();
                    if (*aggregate).agglevelsup >= depth {
                        (*aggregate).agglevelsup += 1;
                    }
                }
                pg_sys::NodeTag::T_GroupingFunc => {
                    let grouping: *mut pg_sys::GroupingFunc = node.cast();
                    if (*grouping).agglevelsup >= depth {
                        (*grouping).agglevelsup += 1;
                    }
                }
                pg_sys::NodeTag::T_RangeTblEntry => {
                    let entry: *mut pg_sys::RangeTblEntry = node.cast();
                    if (*entry).rtekind == pg_sys::RTEKind::RTE_CTE && (*entry).ctelevelsup >= depth
                    {
                        (*entry).ctelevelsup += 1;
                    }
                }
                pg_sys::NodeTag::T_RangeTblRef if depth == 0 => {
                    let reference: *mut pg_sys::RangeTblRef = node.cast();
                    if let Some(new) = moved.renumber((*reference).rtindex) {
                        (*reference).rtindex = new;
                    }
                }
                pg_sys::NodeTag::T_JoinExpr if depth == 0 => {
                    let join: *mut pg_sys::JoinExpr = node.cast();
                    if let Some(new) = moved.renumber((*join).rtindex) {
                        (*join).rtindex = new;
                    }
                }
                _ => {}
            }
        }
        false
    })
}

fn variable(variable: &mut pg_sys::Var, depth: u32, moved: &Moved) {
    if variable.varlevelsup < depth {
        return;
    }
    if variable.varlevelsup > depth {
        variable.varlevelsup += 1;
        return;
    }
    match moved.renumber(variable.varno) {
        Some(new) => {
            variable.varno = new as _;
            variable.varnosyn = new as _;
            variable.varattnosyn = variable.varattno;
            // Joins that do not move along do not belong to the new level.
            // SAFETY: a live column of a tree that only we change.
            unsafe { outer_joins::renumber(variable, |join| moved.renumber(join)) };
        }
        None => variable.varlevelsup += 1,
    }
}
