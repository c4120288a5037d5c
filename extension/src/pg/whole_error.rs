//! PostgreSQL's errors, whole, on their way through Rust.
//!
//! An ERROR that a `pg_sys` function raises becomes a panic, which carries code, message, detail and hint. The guard of
//! a callback raises it again from those, and by then the rest is lost: the lines of CONTEXT of what was running inside
//! the callback, the names of constraint, table and column, the position and the query of a function.
//!
//! So [`whole`] and [`attempt`] put an error callback of their own on PostgreSQL's stack.
//! PostgreSQL calls the callbacks from the innermost to the outermost, and the error is copied when
//! ours is called: it has the lines of everything inside by then, and none of what is outside,
//! which is added when the copy is thrown.
//!
//! A Gather that starts its workers within such a call remembers the stack of callbacks, and walks it whenever a worker
//! sends a message, also after the call has ended. Therefore our callbacks live as long as the process ([`Node`]), one
//! for each call within another, and the callback of a call that has ended is the end of the stack.
//!
//! An error that another error interrupted, or that came without callbacks, has no copy. It is raised as before.

use std::any::Any;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pgrx::pg_sys::panic::{CaughtError, ErrorReportWithLevel, pgrx_extern_c_guard};
use pgrx::{PgLogLevel, pg_sys};

use super::executor;

unsafe extern "C-unwind" {
    // Called without the bindings' error boundary, which would lose what is to be kept, and whose panics may not pass
    // PostgreSQL's own frames.
    #[link_name = "ThrowErrorData"]
    fn throw_error_data(error: *mut pg_sys::ErrorData);
    #[link_name = "CopyErrorData"]
    fn copy_error_data() -> *mut pg_sys::ErrorData;
    #[link_name = "MemoryContextStrdup"]
    fn copy_text(memory: pg_sys::MemoryContext, text: *const c_char) -> *mut c_char;
    #[link_name = "AllocSetContextCreateInternal"]
    fn create_memory(
        parent: pg_sys::MemoryContext,
        name: *const c_char,
        bytes_min: usize,
        bytes_first: usize,
        bytes_max: usize,
    ) -> pg_sys::MemoryContext;
    #[link_name = "MemoryContextDelete"]
    fn delete_memory(memory: pg_sys::MemoryContext);
}

/// The first and the largest block of memory for an error.
const BYTES_FIRST: usize = 1024;
const BYTES_MAX: usize = 8 * 1024;

thread_local! {
    /// The copy of the last ERROR that came by, until it is taken or the next comes.
    static LAST: Cell<Option<Copied>> = const { Cell::new(None) };
}

thread_local! {
    /// Our callbacks, from the outermost call to the innermost.
    static NODES: RefCell<Vec<&'static Node>> = const { RefCell::new(Vec::new()) };
}

/// A callback of ours, which is never freed.
struct Node {
    callback: UnsafeCell<pg_sys::ErrorContextCallback>,
    /// How many calls are around its call.
    depth: usize,
}

impl Node {
    /// The callback for a call within the calls of this many callbacks on the stack.
    fn at(depth: usize) -> &'static Node {
        NODES.with_borrow_mut(|nodes| {
            while nodes.len() <= depth {
                let callback = UnsafeCell::new(pg_sys::ErrorContextCallback {
                    previous: std::ptr::null_mut(),
                    callback: Some(passes),
                    arg: std::ptr::null_mut(),
                });
                let depth = nodes.len();
                nodes.push(Box::leak(Box::new(Node { callback, depth })));
            }
            nodes[depth]
        })
    }

    /// The innermost of our callbacks on PostgreSQL's stack.
    ///
    /// # Safety
    /// The callbacks on the stack live.
    unsafe fn innermost() -> Option<&'static Node> {
        // SAFETY: the caller's promise. The argument of a callback of ours is its node, which is never freed.
        unsafe {
            let mut at = pg_sys::error_context_stack;
            while let Some(callback) = at.as_ref() {
                if callback.callback.is_some_and(is_ours) {
                    return callback.arg.cast::<Node>().as_ref();
                }
                at = callback.previous;
            }
            None
        }
    }
}

/// A copy of an error, in memory of its own.
#[derive(Clone, Copy)]
struct Copied {
    error: *mut pg_sys::ErrorData,
    memory: pg_sys::MemoryContext,
}

/// An error that may be raised later.
pub struct WholeError(Copied);

/// Runs the body of a guarded callback. An ERROR of PostgreSQL leaves it whole, and jumps over the callback, which has
/// nothing to drop outside of the body. Any other panic goes on.
pub fn whole<R>(body: impl FnOnce() -> R) -> R {
    match caught(body) {
        Ok(result) => result,
        Err(payload) => match copy_of(&payload) {
            Some(copied) => {
                drop(payload);
                // SAFETY: the copy lives until the next error comes by; no frame up to the callback's has anything to
                // drop.
                unsafe { throw(copied) }
            }
            None => resume_unwind(payload),
        },
    }
}

/// As [`whole`], and any other panic becomes an ERROR too: the guard of what is no callback by itself.
pub fn guard<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: the frames above own nothing, as the doc comment of `whole` asks.
    unsafe { pgrx_extern_c_guard(|| whole(body)) }
}

/// Runs `work` and returns the error that ended it. Whoever wants to go on without a (sub)transaction's abort must not:
/// the error is there to be raised again.
pub fn attempt<R>(work: impl FnOnce() -> R) -> Result<R, WholeError> {
    let guarded = || {
        // SAFETY: the guard turns panics into ERRORs, and has dropped by then what `work` owned.
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| guard(work)) }
    };
    caught(guarded).map_err(|payload| match copy_of(&payload) {
        Some(copied) => {
            LAST.set(None);
            WholeError(copied)
        }
        None => resume_unwind(payload),
    })
}

impl WholeError {
    /// Raises the error as it came.
    pub fn raise(&self) -> ! {
        // SAFETY: the copy lives as long as `self`; the boundary owns nothing.
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| throw(self.0)) }
    }

    /// Raises the error as one of what is running now: without the lines of CONTEXT that it came with.
    pub fn raise_here(&self) -> ! {
        // SAFETY: the copy is this value's own.
        unsafe { (*self.0.error).context = std::ptr::null_mut() };
        self.raise()
    }
}

impl Drop for WholeError {
    fn drop(&mut self) {
        // SAFETY: the memory is this value's own.
        unsafe { delete_memory(self.0.memory) }
    }
}

/// Runs `body` with our error callback, and catches a panic.
fn caught<R>(body: impl FnOnce() -> R) -> Result<R, Box<dyn Any + Send>> {
    // SAFETY: the callbacks on the stack live. Ours is taken off again below, and no other call uses this node
    // meanwhile, because it is on the stack. An ERROR that jumps over this frame takes it off too: whoever catches the
    // ERROR restores the stack.
    unsafe {
        let node = Node::at(Node::innermost().map_or(0, |node| node.depth + 1));
        let callback = node.callback.get();
        let before = pg_sys::error_context_stack;
        (*callback).previous = before;
        (*callback).arg = std::ptr::from_ref(node).cast_mut().cast();
        pg_sys::error_context_stack = callback;
        let result = catch_unwind(AssertUnwindSafe(body));
        pg_sys::error_context_stack = before;
        (*callback).previous = std::ptr::null_mut();
        result
    }
}

/// PostgreSQL reports something from within [`caught`]. The innermost of our callbacks copies it, because its frame is
/// the one that will raise it again.
unsafe extern "C-unwind" fn passes(node: *mut c_void) {
    // SAFETY: the callbacks on the stack live, and an error is being reported.
    unsafe {
        let innermost = Node::innermost();
        let is_innermost = innermost.is_some_and(|innermost| std::ptr::addr_eq(innermost, node));
        // Within a critical section every ERROR is a PANIC, and memory is not to be taken.
        if is_innermost && pg_sys::CritSectionCount == 0 {
            copy();
        }
    }
}

fn is_ours(callback: unsafe extern "C-unwind" fn(*mut c_void)) -> bool {
    std::ptr::fn_addr_eq(callback, passes as unsafe extern "C-unwind" fn(*mut c_void))
}

/// Copies the error that is being reported, if it is one that ends a statement.
///
/// # Safety
/// A callback of the error's report calls.
unsafe fn copy() {
    // SAFETY: the caller's promise; all that is copied is made in the new memory.
    unsafe {
        let name = c"lanes error on its way".as_ptr();
        let memory = create_memory(pg_sys::TopMemoryContext, name, 0, BYTES_FIRST, BYTES_MAX);
        let error = executor::in_context(memory, || copy_error_data());
        locate(&mut *error, memory);
        if (*error).elevel != PgLogLevel::ERROR as i32 {
            delete_memory(memory);
        } else if let Some(last) = LAST.replace(Some(Copied { error, memory })) {
            delete_memory(last.memory);
        }
    }
}

/// Raises a copied error.
///
/// # Safety
/// The copy is live. The ERROR jumps.
unsafe fn throw(copied: Copied) -> ! {
    // SAFETY: the caller's promise. PostgreSQL copies everything but the error's place in the source, which therefore
    // goes where its stack of errors is, and for as long.
    unsafe {
        let mut error = *copied.error;
        locate(&mut error, pg_sys::ErrorContext);
        throw_error_data(&raw mut error);
    }
    unreachable!("an ERROR does not return")
}

/// Copies an error's place in the source, which PostgreSQL takes for constants, and which is none where the error was
/// raised in Rust.
///
/// # Safety
/// The texts are live, or null.
unsafe fn locate(error: &mut pg_sys::ErrorData, memory: pg_sys::MemoryContext) {
    for text in [&mut error.filename, &mut error.funcname] {
        if !text.is_null() {
            // SAFETY: the caller's promise.
            *text = unsafe { copy_text(memory, *text) };
        }
    }
}

/// The copy of the error that a panic carries, if there is one.
fn copy_of(payload: &Box<dyn Any + Send>) -> Option<Copied> {
    let CaughtError::PostgresError(carried) = payload.downcast_ref()? else {
        return None;
    };
    // SAFETY: the copy is live until the next is made.
    LAST.get()
        .filter(|copied| unsafe { is_the_same(&*copied.error, carried) })
}

/// # Safety
/// The texts of the error are live.
unsafe fn is_the_same(error: &pg_sys::ErrorData, carried: &ErrorReportWithLevel) -> bool {
    let text = |text: *const c_char| match text.is_null() {
        true => None,
        // SAFETY: the caller's promise.
        false => Some(unsafe { CStr::from_ptr(text) }.to_string_lossy()),
    };
    carried.sql_error_code() == error.sqlerrcode.into()
        && i64::from(carried.line_number()) == i64::from(error.lineno)
        && text(error.message).is_none_or(|message| message == carried.message())
        && text(error.funcname).as_deref() == carried.function_name()
}
