//! Memory of PostgreSQL's functions that the engine calls value by value.
//!
//! A function leaves behind what it allocates: its caller is to free it, as PostgreSQL's executor does after each row.
//! The engine passes millions of values between two rows that it returns, so it does so itself, after each call: what
//! the next one allocates is then still in the processor's nearest cache.

use pgrx::pg_sys;

use super::scalar;
use super::translate::Scalars;

unsafe extern "C-unwind" {
    #[link_name = "MemoryContextReset"]
    fn reset(context: pg_sys::MemoryContext);
    #[link_name = "ProcessInterrupts"]
    fn process_interrupts();
}

/// Where functions allocate during a call.
pub struct CallMemory {
    /// Null where nothing is evaluated, only translated.
    context: pg_sys::MemoryContext,
}

impl CallMemory {
    /// Memory that lives until the node starts again, as its scalars do.
    ///
    /// # Safety
    /// The node of `scalars` has started.
    pub unsafe fn new(scalars: Scalars) -> CallMemory {
        let context = match scalars {
            Scalars::Unknown => std::ptr::null_mut(),
            // SAFETY: the caller's promise.
            Scalars::Evaluated(plan) => unsafe {
                pg_sys::AllocSetContextCreateInternal(
                    scalar::memory(plan),
                    c"lanes function calls".as_ptr(),
                    pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
                )
            },
        };
        CallMemory { context }
    }

    /// Calls a function once for each number up to `count`. What a call allocates may be gone at the next. All calls
    /// are within one boundary for errors, which costs as much as a short function.
    ///
    /// # Safety
    /// The node is in execution, and has not started again. `call` calls PostgreSQL's function itself, not through a
    /// boundary of its own: an ERROR jumps out of it, so it owns nothing that is to be dropped, and it does not panic.
    pub unsafe fn each(&mut self, count: usize, mut call: impl FnMut(usize)) {
        let context = self.context;
        // SAFETY: the caller's promise. The context lives until the node starts again; an ERROR resets the current
        // one. Nothing in here is to be dropped.
        unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                let before = pg_sys::MemoryContextSwitchTo(context);
                for index in 0..count {
                    if pg_sys::InterruptPending != 0 {
                        process_interrupts();
                    }
                    if !(*context).isReset {
                        reset(context);
                    }
                    call(index);
                }
                pg_sys::MemoryContextSwitchTo(before);
            });
        }
    }

    /// Calls a function. What it allocates may be gone at the next call.
    ///
    /// # Safety
    /// The node is in execution, and has not started again.
    pub unsafe fn call(&mut self, function: impl FnOnce() -> pg_sys::Datum) -> pg_sys::Datum {
        // SAFETY: the context lives until the node starts again; the switch back happens also when an ERROR passes, as
        // PostgreSQL resets it.
        unsafe {
            if !(*self.context).isReset {
                reset(self.context);
            }
            let before = pg_sys::MemoryContextSwitchTo(self.context);
            let result = function();
            pg_sys::MemoryContextSwitchTo(before);
            result
        }
    }
}
