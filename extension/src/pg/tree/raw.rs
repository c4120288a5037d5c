//! Query trees: walking them, and making their nodes.

use std::ffi::c_void;

use pgrx::pg_sys;

unsafe extern "C-unwind" {
    // Called without the bindings' error boundary, which would be paid at each node; `walk` has one for all.
    #[cfg_attr(feature = "pg15", link_name = "expression_tree_walker")]
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_walker_impl")]
    fn expression_walker(node: *mut pg_sys::Node, walker: Callback, context: *mut c_void) -> bool;
    #[cfg_attr(feature = "pg15", link_name = "expression_tree_mutator")]
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_mutator_impl")]
    fn expression_mutator(
        node: *mut pg_sys::Node,
        mutator: MutatorCallback,
        context: *mut c_void,
    ) -> *mut pg_sys::Node;
    #[cfg_attr(feature = "pg15", link_name = "query_tree_walker")]
    #[cfg_attr(not(feature = "pg15"), link_name = "query_tree_walker_impl")]
    fn query_walker(
        query: *mut pg_sys::Query,
        walker: Callback,
        context: *mut c_void,
        flags: i32,
    ) -> bool;
}

type MutatorCallback =
    unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> *mut pg_sys::Node;

type Callback = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

/// What a walk does at each node that it meets, before what lies below it; `true` ends the walk. The depth counts the
/// queries between the start and the node: a `Var` there with `varlevelsup == depth` belongs to the start's own level.
///
/// A visitor must not raise an ERROR, panic or hold anything that needs dropping: C frames lie between it and `walk`.
pub type Visitor<'a> = dyn FnMut(*mut pg_sys::Node, u32) -> bool + 'a;

struct Walk<'v, 'a> {
    visitor: &'v mut Visitor<'a>,
    depth: u32,
}

unsafe extern "C-unwind" fn step(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    let walk: *mut Walk<'_, '_> = context.cast();
    // SAFETY: `walk` lives in the frame of `walk_…` below; the node is live.
    unsafe {
        let depth = (*walk).depth;
        if ((*walk).visitor)(node, depth) {
            return true;
        }
        match (*node).type_ {
            pg_sys::NodeTag::T_Query => {
                (*walk).depth = depth + 1;
                let ended = query_walker(node.cast(), step, context, FLAGS);
                (*walk).depth = depth;
                ended
            }
            // The query's walker goes on to what is in the entry.
            pg_sys::NodeTag::T_RangeTblEntry => false,
            _ => expression_walker(node, step, context),
        }
    }
}

const FLAGS: i32 = pg_sys::QTW_EXAMINE_RTES_BEFORE as i32;

/// Walks everything in a query, at depth 0; the query itself is not visited. Whether the visitor ended the walk.
///
/// # Safety
/// A live tree.
pub unsafe fn walk_query(query: *mut pg_sys::Query, visitor: &mut Visitor<'_>) -> bool {
    let mut walk = Walk { visitor, depth: 0 };
    let context: *mut c_void = (&raw mut walk).cast();
    // SAFETY: the caller's promise; the boundary turns an ERROR (too deep a tree) into a panic.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| query_walker(query, step, context, FLAGS)) }
}

/// Walks an expression, at depth 0, itself included. Whether the visitor ended the walk.
///
/// # Safety
/// A live tree or null.
pub unsafe fn walk_expression(node: *mut pg_sys::Node, visitor: &mut Visitor<'_>) -> bool {
    let mut walk = Walk { visitor, depth: 0 };
    let context: *mut c_void = (&raw mut walk).cast();
    // SAFETY: as above.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| step(node, context)) }
}

/// The replacement of a node in a copy; `None`: a copy of the node, with its parts replaced.
///
/// As a [`Visitor`], it must not raise an ERROR, panic or hold anything that needs dropping.
pub type Replacer<'a> = dyn FnMut(*mut pg_sys::Node) -> Option<*mut pg_sys::Node> + 'a;

unsafe extern "C-unwind" fn replace_step(
    node: *mut pg_sys::Node,
    context: *mut c_void,
) -> *mut pg_sys::Node {
    if node.is_null() {
        return node;
    }
    let replacer: *mut &mut Replacer<'_> = context.cast();
    // SAFETY: the replacer lives in the frame of `replaced`; the node is live.
    unsafe {
        match (*replacer)(node) {
            Some(other) => other,
            None => expression_mutator(node, replace_step, context),
        }
    }
}

/// A copy of an expression in which some parts are replaced.
///
/// # Safety
/// A live expression.
pub unsafe fn replaced(
    node: *mut pg_sys::Node,
    mut replacer: &mut Replacer<'_>,
) -> *mut pg_sys::Node {
    let context: *mut c_void = (&raw mut replacer).cast();
    // SAFETY: as for `walk_expression`.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| replace_step(node, context)) }
}

/// A new node, all zero but for its tag.
///
/// # Safety
/// `T` is the node type of `tag`.
pub unsafe fn make<T>(tag: pg_sys::NodeTag) -> *mut T {
    // SAFETY: the caller's promise: every node begins with its tag, and zero is a value of every field.
    unsafe {
        let node = pg_sys::palloc0(std::mem::size_of::<T>());
        (*node.cast::<pg_sys::Node>()).type_ = tag;
        node.cast()
    }
}

/// A deep copy.
///
/// # Safety
/// A live tree or null.
pub unsafe fn copy<T>(node: *mut T) -> *mut T {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::copyObjectImpl(node.cast::<c_void>().cast_const()).cast() }
}

/// A list of nodes.
///
/// # Safety
/// Live nodes.
pub unsafe fn list<T>(elements: &[*mut T]) -> *mut pg_sys::List {
    let mut list = std::ptr::null_mut();
    for element in elements {
        // SAFETY: a list of pointers, or none yet.
        list = unsafe { pg_sys::lappend(list, element.cast()) };
    }
    list
}

/// Whether a node has this tag; null has none.
///
/// # Safety
/// A live node or null.
pub unsafe fn is_a<T>(node: *const T, tag: pg_sys::NodeTag) -> bool {
    // SAFETY: every node begins with its tag.
    unsafe { !node.is_null() && (*node.cast::<pg_sys::Node>()).type_ == tag }
}

/// Replaces an element of a list of pointers.
///
/// # Safety
/// `list` is a live list of pointers with more than `index` elements, changed by nobody else.
pub unsafe fn list_set<T>(list: *mut pg_sys::List, index: i32, element: *mut T) {
    // SAFETY: the caller's promise.
    unsafe { (*(*list).elements.add(index as usize)).ptr_value = element.cast() }
}
