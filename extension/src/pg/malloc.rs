//! The C library's heap, which Postgres's memory contexts, this library and the buffers of the protocol all take from.
//!
//! A batch is some hundred kilobytes that are received, copied, converted and encoded, each time into memory of its own that
//! is freed at once. As it comes, the allocator gives such memory back to the kernel after each call and faults it in
//! again, zeroed, a page at a time, in the next: a fifth of the time of an append. So a process that appends keeps
//! it.
//!
//! A hash join takes and frees memory in this way for the rows of its small sides, and a query in PromQL for samples. A
//! process that runs such queries keeps less than one that appends, because there are many of them.

use std::sync::Once;

/// Bytes of freed memory at the heap's end, at most, that the process keeps; and the size from which memory is still taken from
/// the kernel and given back at once, the largest that the allocator knows.
const KEPT_BYTES_MAX: i32 = 32 << 20;

/// Bytes of freed memory that a process keeps that runs such queries and never appended.
const KEPT_BY_QUERIES_MAX: i32 = 8 << 20;

/// Makes this process keep up to [`KEPT_BYTES_MAX`] of the memory that it frees. Elsewhere than with the GNU C library,
/// nothing happens.
pub fn keep_freed_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| keep(KEPT_BYTES_MAX));
    KEPT.call_once(|| {});
}

/// As [`keep_freed_memory`], up to [`KEPT_BY_QUERIES_MAX`] if no call before made it keep more.
pub fn keep_memory_of_queries() {
    KEPT.call_once(|| keep(KEPT_BY_QUERIES_MAX));
}

/// Whether this process keeps memory.
static KEPT: Once = Once::new();

fn keep(bytes: i32) {
    #[cfg(target_env = "gnu")]
    // SAFETY: the allocator locks these parameters, and uses them from its next call on.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, bytes);
        libc::mallopt(libc::M_TRIM_THRESHOLD, bytes);
    }
}
