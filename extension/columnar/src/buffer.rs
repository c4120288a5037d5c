//! A growable array whose storage begins at a multiple of 64 bytes, so that it can serve as a lane.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::limits::LANE_ALIGN;

/// A type whose values a buffer may hold.
///
/// # Safety
/// The type is an integer without padding: every bit pattern is a value, and zero is one of them.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: plain integers.
unsafe impl Plain for u8 {}
// SAFETY: plain integers.
unsafe impl Plain for u32 {}
// SAFETY: plain integers.
unsafe impl Plain for u64 {}

#[repr(align(64))]
struct AlignMark;

/// Buffers of this size and above use huge pages. The system then maps hundreds of times as much
/// memory at once, and the first touch of a page is the most expensive part of filling a large
/// column.
#[cfg(all(target_os = "linux", not(miri)))]
const HUGE_FROM_BYTES: usize = 2 << 20;

/// Zeros of this many bytes and above are mapped pages. The system zeroes a page at its first
/// touch, so pages that are never touched cost nothing.
#[cfg(all(target_os = "linux", not(miri)))]
const MAPPED_FROM_BYTES: usize = 128 << 10;

/// Maps pages of zeros. Returns `None` if the system has no memory, or if the bytes are too few to
/// be worth a mapping.
#[cfg(all(target_os = "linux", not(miri)))]
fn map_zeros(bytes: usize) -> Option<NonNull<u8>> {
    if !(MAPPED_FROM_BYTES..=isize::MAX as usize).contains(&bytes) {
        return None;
    }
    // SAFETY: a new private mapping, at a place of the system's choice.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    match start {
        libc::MAP_FAILED => None,
        start => NonNull::new(start.cast()),
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn map_zeros(_bytes: usize) -> Option<NonNull<u8>> {
    None
}

/// Advises the system to use huge pages. The advice changes no result.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise_huge(start: *mut u8, bytes: usize) {
    const HUGE_PAGE_BYTES: usize = 2 << 20;
    let skipped = start.align_offset(HUGE_PAGE_BYTES);
    let whole = bytes.saturating_sub(skipped) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if whole > 0 {
        // SAFETY: whole pages within an allocation; the advice changes nothing in them.
        unsafe { libc::madvise(start.add(skipped).cast(), whole, libc::MADV_HUGEPAGE) };
    }
}

/// Reserves memory for `elements` elements, in huge pages where they are many. A vector that grows
/// by itself copies its elements to small pages first and pays a page fault for each of them.
#[inline]
pub(crate) fn reserve_huge<T: Copy>(elements: &mut Vec<T>, wanted: usize) {
    if wanted > elements.capacity() {
        grow_huge(elements, wanted);
    }
}

#[cold]
fn grow_huge<T: Copy>(elements: &mut Vec<T>, wanted: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let wanted = wanted.max(2 * elements.capacity());
        let bytes = wanted.saturating_mul(size_of::<T>());
        if bytes >= HUGE_FROM_BYTES {
            let mut larger = Vec::<T>::with_capacity(wanted);
            advise_huge(larger.as_mut_ptr().cast(), bytes);
            larger.extend_from_slice(elements);
            *elements = larger;
            return;
        }
    }
    elements.reserve(wanted - elements.len());
}

/// Asks the processor to load an element to its cache, without waiting for it. An index past the
/// last element is of no effect.
#[inline(always)]
pub(crate) fn prefetch<T>(elements: &[T], index: usize) {
    prefetch_at(elements.as_ptr().wrapping_add(index).cast());
}

/// Asks the processor to load what is at an address, of any kind, to its cache.
#[inline(always)]
pub(crate) fn prefetch_at(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch reads nothing, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Whether a map maps each index to itself.
pub(crate) fn is_identity(map: &[u32]) -> bool {
    (0..).zip(map).all(|(place, &target)| place == target)
}

/// Like `Vec`, but aligned to [`LANE_ALIGN`].
///
/// Invariants: `elements` points to `capacity` elements (or dangles, aligned, when that is 0), of
/// which the first `len` are initialised; `len <= capacity`.
pub(crate) struct Buffer<T: Plain> {
    elements: NonNull<T>,
    len: usize,
    capacity: usize,
    /// Whether the elements lie in mapped pages instead of the allocator's memory.
    mapped: bool,
}

// SAFETY: the buffer owns its elements, which are plain integers.
unsafe impl<T: Plain> Send for Buffer<T> {}
// SAFETY: as above; shared access only reads.
unsafe impl<T: Plain> Sync for Buffer<T> {}

impl<T: Plain> Buffer<T> {
    pub(crate) const fn new() -> Self {
        Buffer {
            elements: NonNull::<AlignMark>::dangling().cast(),
            len: 0,
            capacity: 0,
            mapped: false,
        }
    }

    /// Makes room for `more` elements past the present ones.
    #[inline]
    pub(crate) fn reserve(&mut self, more: usize) {
        if more > self.capacity - self.len {
            self.grow(more);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let wanted = self.len.saturating_add(more);
        let wanted = wanted
            .max(self.capacity * 2)
            .saturating_mul(size_of::<T>())
            .max(LANE_ALIGN);
        let layout = Layout::from_size_align(wanted, LANE_ALIGN)
            .unwrap_or_else(|_| handle_alloc_error(Layout::new::<T>()));
        let bytes = if self.capacity == 0 || self.mapped {
            // SAFETY: the layout is not of zero size.
            unsafe { alloc(layout) }
        } else {
            // SAFETY: the elements were allocated with the old layout; the new size is valid.
            unsafe { realloc(self.elements.as_ptr().cast(), self.layout(), layout.size()) }
        };
        let Some(elements) = NonNull::new(bytes.cast::<T>()) else {
            handle_alloc_error(layout)
        };
        #[cfg(all(target_os = "linux", not(miri)))]
        if layout.size() >= HUGE_FROM_BYTES {
            advise_huge(bytes, layout.size());
        }
        if self.mapped {
            // SAFETY: the new memory holds more elements than the old memory, and the two do not
            // overlap.
            unsafe {
                elements
                    .as_ptr()
                    .copy_from_nonoverlapping(self.elements.as_ptr(), self.len);
            }
            self.release();
        }
        self.elements = elements;
        self.capacity = layout.size() / size_of::<T>();
        debug_assert_eq!(layout.size() % size_of::<T>(), 0);
    }

    /// Releases the memory. The buffer is empty afterwards.
    fn release(&mut self) {
        if self.capacity == 0 {
            return;
        }
        let start = self.elements.as_ptr().cast::<u8>();
        #[cfg(all(target_os = "linux", not(miri)))]
        if self.mapped {
            // SAFETY: the whole of a mapping that is ours.
            unsafe { libc::munmap(start.cast(), self.capacity * size_of::<T>()) };
        }
        if !self.mapped {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(start, self.layout()) };
        }
        (self.capacity, self.mapped) = (0, false);
    }

    fn layout(&self) -> Layout {
        // SAFETY: this very layout was valid when the elements were allocated.
        unsafe { Layout::from_size_align_unchecked(self.capacity * size_of::<T>(), LANE_ALIGN) }
    }

    #[inline]
    pub(crate) fn push(&mut self, element: T) {
        self.reserve(1);
        // SAFETY: there is room for one more.
        unsafe { self.elements.add(self.len).write(element) };
        self.len += 1;
    }

    #[inline]
    pub(crate) fn extend_from_slice(&mut self, elements: &[T]) {
        self.reserve(elements.len());
        // SAFETY: there is room, and a slice borrowed elsewhere cannot overlap the spare room.
        unsafe {
            self.elements
                .add(self.len)
                .as_ptr()
                .copy_from_nonoverlapping(elements.as_ptr(), elements.len());
        }
        self.len += elements.len();
    }

    /// Appends `count` copies of `element`.
    pub(crate) fn extend_repeated(&mut self, element: T, count: usize) {
        self.reserve(count);
        for index in self.len..self.len + count {
            // SAFETY: room for `count` elements was made.
            unsafe { self.elements.add(index).write(element) };
        }
        self.len += count;
    }

    /// Appends `count` elements of zero.
    #[inline]
    pub(crate) fn extend_zeros(&mut self, count: usize) {
        if self.capacity == 0
            && let Some(pages) = map_zeros(count.saturating_mul(size_of::<T>()))
        {
            self.elements = pages.cast();
            (self.len, self.capacity, self.mapped) = (count, count, true);
            return;
        }
        self.reserve(count);
        // SAFETY: room for `count` elements was made, and zero is a value.
        unsafe { self.elements.add(self.len).write_bytes(0, count) };
        self.len += count;
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// The address of the first element, for a lane. Reading through it does not borrow the buffer.
    #[inline]
    pub(crate) fn pointer(&self) -> *const T {
        self.elements.as_ptr()
    }

    /// Bytes of the elements in use.
    pub(crate) fn byte_len(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl Buffer<u32> {
    /// Appends the elements of `map` at the indexes `codes`.
    ///
    /// # Panics
    /// If a code is not an index of the map.
    pub(crate) fn extend_mapped(&mut self, codes: &[u32], map: &[u32]) {
        if is_identity(map) {
            return self.extend_from_slice(codes);
        }
        let start = self.len;
        self.extend_zeros(codes.len());
        for (own, &code) in self[start..].iter_mut().zip(codes) {
            *own = map[code as usize];
        }
    }
}

impl<T: Plain> Deref for Buffer<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` elements are initialised.
        unsafe { std::slice::from_raw_parts(self.elements.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Buffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the first `len` elements are initialised, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.elements.as_ptr(), self.len) }
    }
}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_aligned_and_keeps_its_elements() {
        let mut buffer = Buffer::<u32>::new();
        assert!(buffer.is_empty());
        for value in 0..1_000 {
            buffer.push(value);
            assert_eq!(buffer.as_ptr() as usize % LANE_ALIGN, 0);
        }
        buffer.extend_from_slice(&[7, 8]);
        buffer.extend_zeros(3);
        buffer.extend_repeated(9, 2);
        assert_eq!(buffer.len(), 1_007);
        assert_eq!(buffer[999], 999);
        assert_eq!(buffer[1_000..], [7, 8, 0, 0, 0, 9, 9]);
        buffer.truncate(2);
        assert_eq!(*buffer, [0, 1]);
        assert_eq!(buffer.byte_len(), 8);
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn a_large_buffer_keeps_its_elements_too() {
        let mut buffer = Buffer::<u64>::new();
        let count = HUGE_FROM_BYTES / 8 + 5;
        for value in 0..count as u64 {
            buffer.push(value);
        }
        buffer.reserve(3 * count);
        assert!((0..count as u64).eq(buffer.iter().copied()));
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn zeros_in_pages_of_their_own_grow_like_others() {
        let count = MAPPED_FROM_BYTES / 8;
        let mut buffer = Buffer::<u64>::new();
        buffer.extend_zeros(count);
        assert!(buffer.mapped);
        assert_eq!(buffer.as_ptr() as usize % LANE_ALIGN, 0);
        buffer[count - 1] = 7;
        buffer.extend_zeros(2);
        assert!(!buffer.mapped);
        assert_eq!(buffer[count - 2..], [0, 7, 0, 0]);
        let mut small = Buffer::<u64>::new();
        small.extend_zeros(count - 1);
        assert!(!small.mapped);
    }

    #[test]
    fn maps_codes_one_by_one_unless_they_stay_what_they_are() {
        let mut buffer = Buffer::<u32>::new();
        buffer.push(9);
        buffer.extend_mapped(&[2, 0, 2], &[0, 1, 2]);
        buffer.extend_mapped(&[2, 0, 1], &[5, 1, 0]);
        assert_eq!(*buffer, [9, 2, 0, 2, 0, 5, 1]);
        assert!(is_identity(&[]) && is_identity(&[0, 1]) && !is_identity(&[1]));
    }

    #[test]
    fn an_empty_buffer_is_aligned_too() {
        assert_eq!(Buffer::<u64>::new().as_ptr() as usize % LANE_ALIGN, 0);
    }
}
