//! Copies of the selected rows of a lane to their places in another one. Other rows of the output
//! stay as they are.

use crate::bridge;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// The bits of a number. Its functions are documented at [`selected`] and [`fill`].
#[allow(missing_docs, clippy::missing_safety_doc)]
pub trait Bits: sealed::Sealed + Copy {
    unsafe fn copy(values: *const Self, rows: usize, selection: *const u64, out: *mut Self);
    unsafe fn fill(value: Self, rows: usize, selection: *const u64, out: *mut Self);
}

macro_rules! bits {
    ($type:ty, $copy:ident, $fill:ident) => {
        impl Bits for $type {
            unsafe fn copy(
                values: *const $type,
                rows: usize,
                selection: *const u64,
                out: *mut $type,
            ) {
                // SAFETY: the contract of the function `selected`.
                unsafe { bridge::$copy(values, rows, selection, out) }
            }

            unsafe fn fill(value: $type, rows: usize, selection: *const u64, out: *mut $type) {
                // SAFETY: the contract of the function `fill`.
                unsafe { bridge::$fill(value, rows, selection, out) }
            }
        }
    };
}
bits!(u16, copy_selected_u16, fill_selected_u16);
bits!(u32, copy_selected_u32, fill_selected_u32);
bits!(u64, copy_selected_u64, fill_selected_u64);

/// Copies the values of selected rows.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn selected<T: Bits>(values: *const T, rows: usize, selection: *const u64, out: *mut T) {
    // SAFETY: this function's contract.
    unsafe { T::copy(values, rows, selection, out) }
}

/// Writes one value to all selected rows.
///
/// # Safety
/// As for the [crate](crate#safety).
pub unsafe fn fill<T: Bits>(value: T, rows: usize, selection: *const u64, out: *mut T) {
    // SAFETY: this function's contract.
    unsafe { T::fill(value, rows, selection, out) }
}
