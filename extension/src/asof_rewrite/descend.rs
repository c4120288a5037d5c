//! What a tree needs when it moves one query level down.
//!
//! A part of a query that becomes (part of) a sub-select of it is first put together in the query's own terms, and then
//! [`descend`] adapts it: what moves along keeps its level and gets new numbers; everything else is one level further up.

use pgrx::pg_sys;

use crate::pg::tree::{self, Visitor};

/// The range-table entries that move, by their old numbers; each one's new number is its place here, counted from 1.
#[derive(Clone, Debug, Default)]
pub struct Moved(pub Vec<i32>);

impl Moved {
    /// The new number of an entry that moves.
    pub fn renumber(&self, old: i32) -> Option<i32> {
        let place = self.0.iter().position(|&member| member == old)?;
        Some(place as i32 + 1)
    }

    /// Whether an entry moves.
    pub fn contains(&self, old: i32) -> bool {
        self.0.contains(&old)
    }
}

/// Adapts everything in `query`, which is in the terms of its parent to be.
///
/// # Safety
/// A live tree that shares no node with anything else.
pub unsafe fn descend(query: *mut pg_sys::Query, moved: &Moved) {
    // SAFETY: the caller's promise.
    unsafe { tree::walk_query(query, &mut *adapter(moved)) };
}

/// The same for an expression.
///
/// # Safety
/// As [`descend`].
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
            #[cfg(not(feature = "pg15"))]
            // SAFETY: a live set or null.
            unsafe {
                variable.varnullingrels = renumber_joins(variable.varnullingrels, moved);
            }
        }
        None => variable.varlevelsup += 1,
    }
}

/// The outer joins that move along, under their new numbers; the others are not of the new level.
///
/// # Safety
/// A live set or null.
#[cfg(not(feature = "pg15"))]
unsafe fn renumber_joins(joins: *mut pg_sys::Bitmapset, moved: &Moved) -> *mut pg_sys::Bitmapset {
    let mut renumbered = std::ptr::null_mut();
    for (place, &old) in moved.0.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe {
            if pg_sys::bms_is_member(old, joins) {
                renumbered = pg_sys::bms_add_member(renumbered, place as i32 + 1);
            }
        }
    }
    renumbered
}
