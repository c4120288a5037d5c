//! How a node of PostgreSQL's owns a state of ours.

use pgrx::PgMemoryContexts;
use pgrx::pg_sys;

/// A table of callbacks, which PostgreSQL refers to for as long as the process lives.
pub struct Static<T>(pub T);
// SAFETY: such tables hold pointers to static strings and functions only.
unsafe impl<T> Sync for Static<T> {}

/// A custom scan node with what it owns behind it.
#[repr(C)]
struct Owner<T> {
    base: pg_sys::CustomScanState,
    state: *mut T,
}

/// Makes a node with an empty state, which is dropped with the current memory context.
///
/// # Safety
/// `methods` is static.
pub unsafe fn make<T: Default>(methods: *const pg_sys::CustomExecMethods) -> *mut pg_sys::Node {
    // SAFETY: palloc'd memory of that size; zero is a valid state of the node itself.
    unsafe {
        let owner = pg_sys::palloc0(size_of::<Owner<T>>()).cast::<Owner<T>>();
        (*owner).base.ss.ps.type_ = pg_sys::NodeTag::T_CustomScanState;
        (*owner).base.methods = methods;
        (*owner).state =
            PgMemoryContexts::CurrentMemoryContext.leak_and_drop_on_delete(T::default());
        owner.cast()
    }
}

/// The state of a node.
///
/// # Safety
/// `node` was made by [`make`] for the same type, and no other borrow of its state is in use.
pub unsafe fn of<'a, T>(node: *mut pg_sys::CustomScanState) -> &'a mut T {
    // SAFETY: the caller's promise.
    unsafe { &mut *(*node.cast::<Owner<T>>()).state }
}
