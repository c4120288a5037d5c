//! The shared area as offsets from its base: the one place that turns an offset into a pointer.
//!
//! Every process maps the area at an address of its own, so nothing in it is a pointer. What lies
//! there is of two sorts:
//! - *heads*: structures made of atomics only, reached by shared reference ([`Memory::head`]);
//! - *lanes*: plain bytes, written through raw pointers by the one process that holds the
//!   relation's lock, and read by others only up to the row count that was published after them.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// Structures made of atomics only.
///
/// # Safety
/// The type is `repr(C)`, consists of atomics (or arrays and structures of them), needs an
/// alignment of 64 at most, and is valid when all its bytes are zero.
pub(super) unsafe trait Shared {}
// SAFETY: atomics.
unsafe impl Shared for AtomicU32 {}
// SAFETY: atomics.
unsafe impl Shared for AtomicU64 {}

/// Where an area is mapped in this process. Invariant: the base is a multiple of 64.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    base: *mut u8,
}

impl Memory {
    /// # Safety
    /// `base` is a multiple of 64; the area behind it stays mapped while the value is used, and is
    /// read and written by this module's rules only.
    pub(super) unsafe fn new(base: *mut u8) -> Self {
        Memory { base }
    }

    pub(super) fn base(self) -> *mut u8 {
        self.base
    }

    /// A structure of atomics at `offset`.
    ///
    /// # Safety
    /// Such a structure was laid down at `offset`, whose bytes are not freed while the reference
    /// lives.
    #[inline]
    pub(super) unsafe fn head<'a, T: Shared>(self, offset: u64) -> &'a T {
        debug_assert_eq!(offset as usize % align_of::<T>(), 0);
        // SAFETY: the caller vouches for the bytes; atomics may be shared by everyone.
        unsafe { &*self.base.add(offset as usize).cast::<T>() }
    }

    /// The address of plain bytes at `offset`.
    ///
    /// # Safety
    /// `offset` lies within the area.
    #[inline]
    pub(super) unsafe fn bytes(self, offset: u64) -> *mut u8 {
        // SAFETY: this function's contract.
        unsafe { self.base.add(offset as usize) }
    }
    /// Says that `bytes` bytes from `offset` on are about to be written: the kernel then maps their
    /// pages all at once, which takes half of the time that a fault for each takes. Where it
    /// cannot, nothing happens.
    ///
    /// # Safety
    /// The bytes lie within the area.
    pub(super) unsafe fn map_for_writing(self, offset: u64, bytes: u64) {
        #[cfg(all(target_os = "linux", not(miri)))]
        {
            const PAGE_BYTES: usize = 4096;
            // SAFETY: this function's contract.
            let start = unsafe { self.bytes(offset) };
            let skipped = (start as usize).next_multiple_of(PAGE_BYTES) - start as usize;
            let bytes = (bytes as usize).saturating_sub(skipped) / PAGE_BYTES * PAGE_BYTES;
            if bytes > 0 {
                // SAFETY: whole pages of the area, whose contents this does not change.
                unsafe {
                    libc::madvise(start.add(skipped).cast(), bytes, libc::MADV_POPULATE_WRITE);
                }
            }
        }
        #[cfg(not(all(target_os = "linux", not(miri))))]
        let _ = (offset, bytes);
    }
}
