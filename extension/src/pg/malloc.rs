//! The C library's heap, which Postgres's memory contexts, this library and the buffers of the protocol all take from.
//!
//! A batch is some hundred kilobytes that are received, copied, converted and encoded, each time into memory of its own that
//! is freed at once. As it comes, the allocator gives such memory back to the kernel after each call and faults it in
//! again, zeroed, a page at a time, in the next: a fifth of the time of an append. So a process that appends keeps
//! it.
//!
//! A hash join does the same with the rows of its small sides. A process that joins keeps less, as there are many of
//! these.

use std::sync::Once;

/// Bytes of freed memory at the heap's end, at most, that the process keeps; and the size from which memory is still taken from
/// the kernel and given back at once, the largest that the allocator knows.
const KEPT_BYTES_MAX: i32 = 32 << 20;

/// How much freed memory a process keeps that joins and never appended.
const KEPT_BY_JOINS_MAX: i32 = 8 << 20;

/// Makes this process keep up to [`KEPT_BYTES_MAX`] of the memory that it frees. Elsewhere than with the GNU C library,
/// nothing happens.
pub fn keep_freed_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| keep(KEPT_BYTES_MAX));
    KEPT.call_once(|| {});
}

/// As [`keep_freed_memory`], up to [`KEPT_BY_JOINS_MAX`] if no call before made it keep more.
pub fn keep_memory_of_joins() {
    KEPT.call_once(|| keep(KEPT_BY_JOINS_MAX));
}

/// Whether this process keeps memory.
static KEPT: Once = Once::new();

fn keep(bytes: i32) {
    #[cfg(target_env = "gnu")]
    // SAFETY: these parameters take effect from the next call of the allocator on; a server process has one thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, bytes);
        libc::mallopt(libc::M_TRIM_THRESHOLD, bytes);
    }
}
