//! What a view is: a pointer to one of PostgreSQL's structures that is known to live for `'p`.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::snapshot::Snapshot;

/// A view of a structure of PostgreSQL.
pub trait View<'p>: Copy {
    /// The structure.
    type Raw;

    /// The view of a structure.
    ///
    /// # Safety
    /// `pointer` is not null and is such a structure. It and all that it points to live for `'p`.
    unsafe fn at(pointer: *mut Self::Raw) -> Self;

    /// The structure, for a call of PostgreSQL.
    fn as_ptr(self) -> *mut Self::Raw;
}

/// A pointer of C, to what may be changed or not.
pub trait Pointer {
    /// The pointer as one to another type.
    fn to<T>(self) -> *mut T;
}

impl<U> Pointer for *mut U {
    #[inline]
    fn to<T>(self) -> *mut T {
        self.cast()
    }
}

impl<U> Pointer for *const U {
    #[inline]
    fn to<T>(self) -> *mut T {
        self.cast_mut().cast()
    }
}

/// A field of a structure, as a view's accessor returns it.
pub trait Field<'p> {
    /// The type of the field in C.
    type Raw;

    /// The field's value.
    ///
    /// # Safety
    /// `raw` is the field of a structure that lives for `'p`, and points to what this type describes.
    unsafe fn of(raw: Self::Raw) -> Self;

    /// The field's value in C.
    fn raw(self) -> Self::Raw;
}

/// A pointer that is null where there is nothing.
impl<'p, V: View<'p>> Field<'p> for Option<V> {
    type Raw = *mut V::Raw;

    unsafe fn of(raw: *mut V::Raw) -> Option<V> {
        // SAFETY: a field that is not null points to a live structure of this type, see the trait.
        (!raw.is_null()).then(|| unsafe { V::at(raw) })
    }

    fn raw(self) -> *mut V::Raw {
        self.map_or(std::ptr::null_mut(), View::as_ptr)
    }
}

/// A string that is null where there is none.
impl<'p> Field<'p> for Option<&'p CStr> {
    type Raw = *mut std::ffi::c_char;

    unsafe fn of(raw: *mut std::ffi::c_char) -> Option<&'p CStr> {
        // SAFETY: strings in nodes end with a NUL and live as long as the node, see the trait.
        (!raw.is_null()).then(|| unsafe { CStr::from_ptr(raw) })
    }

    fn raw(self) -> *mut std::ffi::c_char {
        self.map_or(std::ptr::null_mut(), |text| text.as_ptr().cast_mut())
    }
}

/// A snapshot; null where there is none.
impl<'p> Field<'p> for Option<Snapshot<'p>> {
    type Raw = *mut pg_sys::SnapshotData;

    unsafe fn of(raw: *mut pg_sys::SnapshotData) -> Option<Snapshot<'p>> {
        Snapshot::new(raw)
    }

    fn raw(self) -> *mut pg_sys::SnapshotData {
        self.map_or(std::ptr::null_mut(), Snapshot::as_ptr)
    }
}

/// A null-terminated list, set or other pointer whose null is a value of its own.
macro_rules! nullable_fields {
    ($($view:ident: $raw:ty),*) => {$(
        impl<'p> $crate::pg::tree::view::Field<'p> for $view<'p> {
            type Raw = *mut $raw;

            unsafe fn of(raw: *mut $raw) -> Self {
                $view { raw, lifetime: std::marker::PhantomData }
            }

            fn raw(self) -> *mut $raw {
                self.raw
            }
        }

        impl<T> $crate::pg::functions::Argument<*mut T> for $view<'_> {
            fn into_c(self) -> *mut T {
                self.raw.cast()
            }
        }

        impl<T> $crate::pg::functions::Argument<*const T> for $view<'_> {
            fn into_c(self) -> *const T {
                self.raw.cast()
            }
        }

        impl<T> $crate::pg::functions::Answer<*mut T> for $view<'_> {
            unsafe fn of_c(value: *mut T) -> Self {
                $view { raw: value.cast(), lifetime: std::marker::PhantomData }
            }
        }

        impl $view<'_> {
            /// Null.
            #[allow(dead_code)]
            pub const NONE: Self =
                $view { raw: std::ptr::null_mut(), lifetime: std::marker::PhantomData };

            /// Whether the pointer is null.
            #[allow(dead_code)]
            #[inline]
            pub fn is_null(self) -> bool {
                self.raw.is_null()
            }
        }
    )*};
}
pub(in crate::pg) use nullable_fields;

/// The place of a field: by its own name, or by a path through structures that lie in one another.
macro_rules! place {
    ($pointer:expr, $name:ident) => {
        (*$pointer).$name
    };
    ($pointer:expr, $name:ident, $($path:ident).+) => {
        (*$pointer).$($path).+
    };
}
pub(in crate::pg) use place;

/// Declares views: `View of Structure { fields copied; } { pointers as views; } { fields to set; } { pointers to set;
/// }`. The last part may be missing. A field has its name in C, or stands for another one: `name = field.of_field`.
macro_rules! views {
    ($(
        $(#[$meta:meta])*
        $view:ident of $raw:ident
        {$(
            $(#[$copied_meta:meta])*
            $copied:ident $(= $($copied_path:ident).+)?: $copied_type:ty;
        )*}
        {$(
            $(#[$pointer_meta:meta])*
            $pointer:ident $(= $($pointer_path:ident).+)?: $pointer_type:ty;
        )*}
        { $($(#[$set_meta:meta])* $set:ident = $($field:ident).+: $set_type:ty;)* }
        $({ $($(#[$put_meta:meta])* $put:ident = $($put_field:ident).+: $put_type:ty;)* })?
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $view<'p> {
            pointer: std::ptr::NonNull<pgrx::pg_sys::$raw>,
            lifetime: std::marker::PhantomData<&'p ()>,
        }

        impl<'p> $crate::pg::tree::view::View<'p> for $view<'p> {
            type Raw = pgrx::pg_sys::$raw;

            #[inline]
            unsafe fn at(pointer: *mut pgrx::pg_sys::$raw) -> Self {
                debug_assert!(!pointer.is_null());
                $view {
                    // SAFETY: not null, see the trait.
                    pointer: unsafe { std::ptr::NonNull::new_unchecked(pointer) },
                    lifetime: std::marker::PhantomData,
                }
            }

            #[inline]
            fn as_ptr(self) -> *mut pgrx::pg_sys::$raw {
                self.pointer.as_ptr()
            }
        }

        /// A pointer that is never null.
        impl<'p> $crate::pg::tree::view::Field<'p> for $view<'p> {
            type Raw = *mut pgrx::pg_sys::$raw;

            #[inline]
            unsafe fn of(raw: *mut pgrx::pg_sys::$raw) -> Self {
                assert!(!raw.is_null());
                // SAFETY: not null; see the trait for the rest.
                unsafe { $crate::pg::tree::view::View::at(raw) }
            }

            #[inline]
            fn raw(self) -> *mut pgrx::pg_sys::$raw {
                self.pointer.as_ptr()
            }
        }

        #[allow(dead_code, non_snake_case)]
        impl<'p> $view<'p> {
            $(
                $(#[$copied_meta])*
                #[doc = concat!("`", stringify!($raw), ".", stringify!($copied), "`")]
                #[inline]
                pub fn $copied(self) -> $copied_type {
                    // SAFETY: a view's structure is live.
                    unsafe {
                        $crate::pg::tree::view::place!(
                            self.pointer.as_ptr(), $copied $(, $($copied_path).+)?
                        )
                    }
                }
            )*
            $(
                $(#[$pointer_meta])*
                #[doc = concat!("`", stringify!($raw), ".", stringify!($pointer), "`")]
                #[inline]
                pub fn $pointer(self) -> $pointer_type {
                    // SAFETY: what a live structure points to lives as long as it does, and the field has this type.
                    unsafe {
                        let field = $crate::pg::tree::view::place!(
                            self.pointer.as_ptr(), $pointer $(, $($pointer_path).+)?
                        );
                        $crate::pg::tree::view::Field::of($crate::pg::tree::view::Pointer::to(field))
                    }
                }
            )*
            $(
                $(#[$set_meta])*
                #[doc = concat!("Sets `", stringify!($raw), ".", stringify!($($field).+), "`.")]
                #[inline]
                pub fn $set(self, value: $set_type) {
                    // SAFETY: a view's structure is live, and no view lends a reference to a field.
                    unsafe { (*self.pointer.as_ptr()).$($field).+ = value }
                }
            )*
            $($(
                $(#[$put_meta])*
                #[doc = concat!("Sets `", stringify!($raw), ".", stringify!($($put_field).+), "`.")]
                #[inline]
                pub fn $put(self, value: $put_type) {
                    let value = $crate::pg::tree::view::Field::raw(value);
                    // SAFETY: a view's structure is live; the value lives as long, and the field has this type.
                    unsafe { (*self.pointer.as_ptr()).$($put_field).+ = value.cast() }
                }
            )*)?
        }
    )*};
}
pub(in crate::pg) use views;

/// The tag of a node.
///
/// # Safety
/// `node` is a live node.
#[inline]
pub(super) unsafe fn tag_of<T>(node: *const T) -> pg_sys::NodeTag {
    // SAFETY: every node begins with its tag.
    unsafe { (*node.cast::<pg_sys::Node>()).type_ }
}

/// The view of a structure that code of a node or a planner's callback holds as a pointer: a part of a plan, or of the
/// planner's state. The pointer is not null. Plans outlive the nodes that execute them, and callbacks use the planner's
/// structures only while they run, so the view is live wherever such code can use it. That the pointer is of the view's
/// structure is the caller's promise, which the compiler does not check.
#[inline]
pub fn plan_node<'p, V: View<'p>>(pointer: *mut V::Raw) -> V {
    assert!(!pointer.is_null());
    // SAFETY: nodes and callbacks obtain such pointers from `pg` only, with the types that they have in the plan.
    unsafe { V::at(pointer) }
}

/// The value of a field that code of a node or a planner's callback holds as a pointer, which may be null. See
/// [`plan_node`].
#[inline]
pub fn plan_field<'p, F: Field<'p>>(raw: F::Raw) -> F {
    // SAFETY: as for `plan_node`.
    unsafe { F::of(raw) }
}
