//! The reasons why parts of a query are not vectorised.
//!
//! Reasons are noted while a query is planned. The plan of a lanes table's scan contains the
//! reasons about its table, for EXPLAIN.

use std::cell::{Cell, RefCell};

use pgrx::pg_sys;

use crate::pg::tree::{Expr, List, PlannerInfo, View, make};

/// The subject of a reason.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// How a table is read.
    Reading,
    /// What is done with its rows, such as joining or grouping.
    Use,
}

/// A reason why something was not vectorised. It belongs to one planning, one planner state and one
/// table.
struct Noted {
    planning: u64,
    root: usize,
    index: u32,
    about: About,
    reason: String,
}

thread_local! {
    static NOTED: RefCell<Vec<Noted>> = const { RefCell::new(Vec::new()) };
    /// The current plannings, the innermost last.
    static UNDER_WAY: RefCell<Vec<Planning>> = const { RefCell::new(Vec::new()) };
    static PLANNINGS: Cell<u64> = const { Cell::new(0) };
}

/// A current planning. Plannings nest, because a function that is folded may plan queries.
///
/// A planning that fails does not end: its error jumps over the hook. Whoever catches the error
/// aborts the subtransaction in which it was raised, and plannings that began there are
/// [abandoned](abandon) then.
#[derive(Clone, Copy)]
struct Planning {
    /// The planning's number, which is never reused.
    number: u64,
    /// The nest level of transactions at its start.
    nest_level: i32,
    /// The result of [`may_scroll`].
    may_scroll: bool,
    /// The result of [`scrolls`].
    scrolls: bool,
}

/// The number of the current planning; 0 if there is none.
fn planning() -> u64 {
    UNDER_WAY.with_borrow(|under_way| under_way.last().map_or(0, |planning| planning.number))
}

/// Drops plannings that began at this nest level of transactions or deeper, and their reasons. Aborts call it at any
/// time, so it does not panic.
pub fn abandon(nest_level: i32) {
    let outlives = |planning: &Planning| planning.nest_level < nest_level;
    let outer = UNDER_WAY.with(|under_way| {
        let mut under_way = under_way.try_borrow_mut().ok()?;
        while under_way.last().is_some_and(|planning| !outlives(planning)) {
            under_way.pop();
        }
        Some(under_way.last().map_or(0, |planning| planning.number))
    });
    NOTED.with(|noted| {
        if let (Some(outer), Ok(mut noted)) = (outer, noted.try_borrow_mut()) {
            noted.retain(|n| n.planning <= outer);
        }
    });
}

/// Notes why something about a table is not vectorised.
pub fn note(root: PlannerInfo<'_>, index: u32, about: About, reason: String) {
    NOTED.with_borrow_mut(|noted| {
        let (planning, root) = (planning(), root.as_ptr() as usize);
        let known = noted.iter().any(|n| {
            n.planning == planning && n.root == root && n.index == index && n.reason == reason
        });
        if !known {
            noted.push(Noted {
                planning,
                root,
                index,
                about,
                reason,
            });
        }
    });
}

/// The reasons about a table, optionally only about its reading or its use.
fn reasons(root: PlannerInfo<'_>, index: u32, only: Option<About>) -> Vec<String> {
    NOTED.with_borrow(|noted| {
        let planning = planning();
        let concerns = |n: &&Noted| {
            n.planning == planning
                && n.root == root.as_ptr() as usize
                && n.index == index
                && only.is_none_or(|about| n.about == about)
        };
        noted
            .iter()
            .filter(concerns)
            .map(|n| n.reason.clone())
            .collect()
    })
}

/// The reasons about a table as a list of strings, for a plan's private data.
pub fn reason_list<'p>(
    root: PlannerInfo<'p>,
    index: u32,
    only: Option<About>,
) -> List<'p, Expr<'p>> {
    let reasons = reasons(root, index, only);
    List::new(reasons.iter().map(|reason| make::string(reason)))
}

/// Whether the current planning is of a cursor that can be read backwards if its plan can: it is
/// declared neither SCROLL, which stores the rows, nor NO SCROLL.
pub fn may_scroll() -> bool {
    UNDER_WAY.with_borrow(|under_way| under_way.last().is_some_and(|planning| planning.may_scroll))
}

/// Whether the current planning is of a SCROLL cursor.
pub fn scrolls() -> bool {
    UNDER_WAY.with_borrow(|under_way| under_way.last().is_some_and(|planning| planning.scrolls))
}

/// Begins a planning with options of a cursor, `CURSOR_OPT_…`, at a nest level of transactions.
pub fn begin(options: u32, nest_level: i32) {
    let decided = pg_sys::CURSOR_OPT_SCROLL | pg_sys::CURSOR_OPT_NO_SCROLL;
    PLANNINGS.set(PLANNINGS.get() + 1);
    let planning = Planning {
        number: PLANNINGS.get(),
        nest_level,
        may_scroll: options & pg_sys::CURSOR_OPT_FAST_PLAN != 0 && options & decided == 0,
        scrolls: options & pg_sys::CURSOR_OPT_SCROLL != 0,
    };
    UNDER_WAY.with_borrow_mut(|under_way| under_way.push(planning));
}

/// All reasons of the current planning; `otherwise` if there are none.
pub fn all_reasons(otherwise: &str) -> String {
    NOTED.with_borrow(|noted| {
        let planning = planning();
        let reasons: Vec<&str> = noted
            .iter()
            .filter(|n| n.planning == planning)
            .map(|n| n.reason.as_str())
            .collect();
        if reasons.is_empty() {
            return otherwise.to_string();
        }
        reasons.join("; ")
    })
}

/// Ends the current planning, and drops its reasons.
pub fn end() {
    let ended = UNDER_WAY.with_borrow_mut(Vec::pop);
    let planning = ended.map_or(0, |planning| planning.number);
    NOTED.with_borrow_mut(|noted| noted.retain(|n| n.planning != planning));
}
