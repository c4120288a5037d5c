//! The C library's heap. PostgreSQL's memory contexts, this library and the buffers of the protocol
//! all allocate from it.
//!
//! A batch is some hundred kilobytes that are received, copied, converted and encoded, each time
//! into memory that is freed at once. By default the allocator returns such memory to the kernel
//! after each call. In the next call the kernel maps it again, zeroed, page by page, which takes a
//! fifth of the time of an append. So a process that appends keeps it.
//!
//! A hash join allocates and frees memory in this way for the rows of its small sides, and a query
//! in PromQL for samples. A process that runs such queries keeps less than one that appends,
//! because there are many such processes.

use std::sync::Once;

use super::signals::keep_freed_bytes;

/// The most bytes of freed memory that the process keeps at the end of the heap. Larger pieces than
/// this are taken from the kernel and returned at once; it is the largest such limit that the
/// allocator accepts.
const KEPT_BYTES_MAX: i32 = 32 << 20;

/// The most bytes of freed memory that a process keeps if it runs such queries and never appended.
const KEPT_BY_QUERIES_MAX: i32 = 8 << 20;

/// Makes this process keep up to [`KEPT_BYTES_MAX`] of the memory that it frees. Does nothing
/// without the GNU C library.
pub fn keep_freed_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| keep_freed_bytes(KEPT_BYTES_MAX));
    KEPT.call_once(|| {});
}

/// Makes this process keep up to [`KEPT_BY_QUERIES_MAX`], unless an earlier call made it keep more.
pub fn keep_memory_of_queries() {
    KEPT.call_once(|| keep_freed_bytes(KEPT_BY_QUERIES_MAX));
}

/// Whether this process keeps memory.
static KEPT: Once = Once::new();
