//! Sums of frames: of so many consecutive rows each, a frame beginning at each row. The rows of a
//! frame are added one after the other, from its first to its last.

use crate::bridge;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A float whose frames are summed. Its function is documented at [`sums`].
#[allow(missing_docs, clippy::missing_safety_doc)]
pub trait Framed: sealed::Sealed + Copy {
    unsafe fn sums(
        values: *const Self,
        frames: usize,
        width: usize,
        from_zero: bool,
        sums: *mut Self,
    );
}

macro_rules! framed {
    ($type:ty, $kernel:ident) => {
        impl Framed for $type {
            unsafe fn sums(
                values: *const $type,
                frames: usize,
                width: usize,
                from_zero: bool,
                sums: *mut $type,
            ) {
                // SAFETY: the contract of the function `sums`.
                unsafe { bridge::$kernel(values, frames, width, from_zero, sums) }
            }
        }
    };
}
framed!(f32, frame_sums_f32);
framed!(f64, frame_sums_f64);

/// For each `i` below `frames` the sum of the `width` values from `values[i]` on, added to +0 if
/// `from_zero`. Nothing is done for a width of 0.
///
/// # Safety
/// As for the [crate](crate#safety); there are `frames + width - 1` values.
pub unsafe fn sums<T: Framed>(
    values: *const T,
    frames: usize,
    width: usize,
    from_zero: bool,
    sums: *mut T,
) {
    if width > 0 {
        // SAFETY: this function's contract.
        unsafe { T::sums(values, frames, width, from_zero, sums) }
    }
}
