//! Memory of PostgreSQL's functions that the engine calls value by value.
//!
//! A function leaves behind what it allocates: its caller is to free it from time to time, as PostgreSQL's executor
//! does after each row. The engine passes millions of values between two rows that it returns, so it does so itself.

use pgrx::pg_sys;

use super::scalar;
use super::translate::Scalars;

/// Bytes of values after whose calls memory is freed: functions mostly allocate a few copies of their arguments.
const BYTES_MAX: usize = 64 << 10;
/// What a call counts for beyond its value's bytes.
const CALL_BYTES: usize = 64;

/// Where functions allocate during a call.
pub struct CallMemory {
    /// Null where nothing is evaluated, only translated.
    context: pg_sys::MemoryContext,
    bytes: usize,
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
        CallMemory { context, bytes: 0 }
    }

    /// Calls a function with a value of so many bytes. What it allocates may be gone at the next call.
    ///
    /// # Safety
    /// The node is in execution, and has not started again.
    pub unsafe fn call(
        &mut self,
        bytes: usize,
        function: impl FnOnce() -> pg_sys::Datum,
    ) -> pg_sys::Datum {
        // SAFETY: the context lives until the node starts again; the switch back happens also when an ERROR passes, as
        // PostgreSQL resets it.
        unsafe {
            if self.bytes > BYTES_MAX {
                pg_sys::MemoryContextReset(self.context);
                self.bytes = 0;
            }
            self.bytes += bytes + CALL_BYTES;
            let before = pg_sys::MemoryContextSwitchTo(self.context);
            let result = function();
            pg_sys::MemoryContextSwitchTo(before);
            result
        }
    }
}
