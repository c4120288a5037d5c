//! Lists, strings and expressions of plans, as raw pointers.

use pgrx::pg_sys;

use super::{names, ports, tree};

/// The elements of a list of pointers. A null list has none.
///
/// # Safety
/// `list` is null or live as long as the iterator is used, and holds pointers to `T`.
pub unsafe fn list<T>(list: *const pg_sys::List) -> impl Iterator<Item = *mut T> {
    // SAFETY: the caller's promise.
    let length = unsafe { ports::list_length(list) };
    // SAFETY: as above.
    (0..length).map(move |index| unsafe { ports::list_nth(list, index) })
}

/// The elements of a list of pointers that a plan under execution contains, or of a copy of such a list.
pub fn plan_list<T>(list: *const pg_sys::List) -> impl Iterator<Item = *mut T> {
    // SAFETY: a plan and its lists live until its execution has ended.
    unsafe { self::list(list) }
}

/// A node that holds a string.
pub fn string(text: &str) -> *mut pg_sys::Node {
    let text = std::ffi::CString::new(text.replace('\0', " ")).unwrap_or_default();
    // SAFETY: both copy into the current memory context.
    unsafe { pg_sys::makeString(pg_sys::pstrdup(text.as_ptr())).cast() }
}

/// The text of a node that [`string`] made.
///
/// # Safety
/// `node` is such a node.
pub unsafe fn text_of(node: *mut pg_sys::Node) -> String {
    // SAFETY: the caller's promise.
    unsafe { names::text((*node.cast::<pg_sys::String>()).sval).unwrap_or_default() }
}

/// Whether an expression holds a subquery that was not made a parameter.
///
/// # Safety
/// `node` is null or a live expression.
pub unsafe fn contains_subplan(node: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller's promise; the visitor gets live nodes.
    unsafe {
        tree::walk_expression(node, &mut |node, _| {
            matches!(
                (*node).type_,
                pg_sys::NodeTag::T_SubPlan
                    | pg_sys::NodeTag::T_AlternativeSubPlan
                    | pg_sys::NodeTag::T_SubLink
            )
        })
    }
}

/// `ExecProject`: the projection of the context's tuples; the scan tuple itself if there is none to be done.
///
/// # Safety
/// `info` is null or an initialised projection; `scanned` is its scan tuple.
pub unsafe fn exec_project(
    info: *mut pg_sys::ProjectionInfo,
    scanned: *mut pg_sys::TupleTableSlot,
) -> *mut pg_sys::TupleTableSlot {
    if info.is_null() {
        return scanned;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let state = &raw mut (*info).pi_state;
        let context = (*info).pi_exprContext;
        let slot = (*state).resultslot;
        ports::ExecClearTuple(slot);
        let before = pg_sys::MemoryContextSwitchTo((*context).ecxt_per_tuple_memory);
        let mut is_null = false;
        let evaluate = (*state).evalfunc.expect("an initialised expression");
        evaluate(state, context, &raw mut is_null);
        pg_sys::MemoryContextSwitchTo(before);
        (*slot).tts_flags &= !(pg_sys::TTS_FLAG_EMPTY as u16);
        (*slot).tts_nvalid = (*(*slot).tts_tupleDescriptor).natts as i16;
        slot
    }
}
