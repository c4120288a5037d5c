//! Why something was not vectorised.
//!
//! Reasons are noted while a query is planned. A scan of ours takes those that concern its table into its plan, for
//! EXPLAIN.

use std::cell::{Cell, RefCell};

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::pg::tree::{List, PlannerInfo, View, make};

/// What a reason is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// How a table is read.
    Reading,
    /// What is done with its rows: they are joined, grouped.
    Use,
}

/// A reason, with the planning, the planner's state and the table that it concerns.
struct Noted {
    planning: u64,
    root: usize,
    index: u32,
    about: About,
    reason: String,
}

thread_local! {
    static NOTED: RefCell<Vec<Noted>> = const { RefCell::new(Vec::new()) };
    /// The plannings under way, the innermost last.
    static UNDER_WAY: RefCell<Vec<Planning>> = const { RefCell::new(Vec::new()) };
    static PLANNINGS: Cell<u64> = const { Cell::new(0) };
}

/// A planning under way. They nest: a function that is folded may plan queries of its own.
///
/// One that fails never ends: its error jumps over it. Whoever catches the error has aborted the subtransaction in which
/// it was raised, and with it go the plannings that began there.
#[derive(Clone, Copy)]
struct Planning {
    /// Never given again.
    number: u64,
    /// Of transactions, as it began.
    nest_level: i32,
    /// See [`may_scroll`].
    may_scroll: bool,
}

/// The number of the planning under way; 0 if there is none.
fn planning() -> u64 {
    UNDER_WAY.with_borrow(|under_way| under_way.last().map_or(0, |planning| planning.number))
}

/// Forgets plannings that began at this nest level of transactions or deeper, with their reasons.
fn abandon(nest_level: i32) {
    let outlives = |planning: &Planning| planning.nest_level < nest_level;
    UNDER_WAY.with_borrow_mut(|under_way| {
        while under_way.last().is_some_and(|planning| !outlives(planning)) {
            under_way.pop();
        }
    });
    let outer = planning();
    NOTED.with_borrow_mut(|noted| noted.retain(|n| n.planning <= outer));
}

#[pg_guard]
unsafe extern "C-unwind" fn transaction_ended(
    event: pg_sys::XactEvent::Type,
    _argument: *mut std::ffi::c_void,
) {
    if event == pg_sys::XactEvent::XACT_EVENT_ABORT {
        abandon(0);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn subtransaction_ended(
    event: pg_sys::SubXactEvent::Type,
    _this: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _argument: *mut std::ffi::c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        // SAFETY: it is still the one that is aborted.
        abandon(unsafe { pg_sys::GetCurrentTransactionNestLevel() });
    }
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

/// The reasons that concern a table; `only` those about one thing, if it is given.
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

/// The reasons that concern a table as a list of strings, for a plan's private data.
pub fn reason_list(root: PlannerInfo<'_>, index: u32, only: Option<About>) -> *mut pg_sys::List {
    let reasons = reasons(root, index, only);
    List::new(reasons.iter().map(|reason| make::string(reason))).as_ptr()
}

/// Whether what is planned is a cursor that can be read backwards if its plan can, as one that is declared neither
/// SCROLL (which stores what it has read) nor NO SCROLL.
pub fn may_scroll() -> bool {
    UNDER_WAY.with_borrow(|under_way| under_way.last().is_some_and(|planning| planning.may_scroll))
}

#[pg_guard]
pub unsafe extern "C-unwind" fn begin(options: i32) {
    let options = options as u32;
    let decided = pg_sys::CURSOR_OPT_SCROLL | pg_sys::CURSOR_OPT_NO_SCROLL;
    let may_scroll = options & pg_sys::CURSOR_OPT_FAST_PLAN != 0 && options & decided == 0;
    PLANNINGS.set(PLANNINGS.get() + 1);
    let planning = Planning {
        number: PLANNINGS.get(),
        // SAFETY: runs inside a transaction.
        nest_level: unsafe { pg_sys::GetCurrentTransactionNestLevel() },
        may_scroll,
    };
    UNDER_WAY.with_borrow_mut(|under_way| under_way.push(planning));
}

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

/// Forgets what was noted in plannings that failed, when their transactions end. Called once a process.
pub fn register() {
    // SAFETY: single-threaded, once a process.
    unsafe {
        pg_sys::RegisterXactCallback(Some(transaction_ended), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(subtransaction_ended), std::ptr::null_mut());
    }
}

/// Ends the planning under way, and forgets its reasons.
pub fn end() {
    let ended = UNDER_WAY.with_borrow_mut(Vec::pop);
    let planning = ended.map_or(0, |planning| planning.number);
    NOTED.with_borrow_mut(|noted| noted.retain(|n| n.planning != planning));
}
