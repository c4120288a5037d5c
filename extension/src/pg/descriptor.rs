//! Tuple descriptors and their attributes.

use std::ffi::CStr;
use std::marker::PhantomData;

use pgrx::pg_sys;

use super::ports;

/// An attribute of a row type.
pub type Attribute = pg_sys::FormData_pg_attribute;

/// The descriptor of rows, which lives for `'a`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Descriptor<'a> {
    raw: pg_sys::TupleDesc,
    lives: PhantomData<&'a pg_sys::TupleDescData>,
}

impl<'a> Descriptor<'a> {
    /// # Safety
    /// `raw` is a tuple descriptor that lives for `'a`.
    #[inline]
    pub unsafe fn new(raw: pg_sys::TupleDesc) -> Descriptor<'a> {
        Descriptor {
            raw,
            lives: PhantomData,
        }
    }

    /// How many attributes there are, dropped ones included.
    #[inline]
    pub fn len(self) -> usize {
        // SAFETY: the descriptor is live.
        unsafe { (*self.raw).natts as usize }
    }

    /// Where it lies, which tells it from others as long as it lives.
    pub fn address(self) -> usize {
        self.raw.addr()
    }

    /// One attribute, counted from 0.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    pub fn attribute(self, index: usize) -> &'a Attribute {
        assert!(index < self.len(), "attribute {index} of {}", self.len());
        // SAFETY: the descriptor is live and has so many attributes.
        unsafe { ports::TupleDescAttr(self.raw, index) }
    }

    /// All attributes.
    pub fn attributes(self) -> impl ExactSizeIterator<Item = &'a Attribute> {
        (0..self.len()).map(move |index| self.attribute(index))
    }

    /// The value of attribute `index` in rows from before `ALTER TABLE … ADD COLUMN … DEFAULT`.
    pub fn missing_value(self, index: usize) -> Option<pg_sys::Datum> {
        assert!(index < self.len(), "attribute {index} of {}", self.len());
        // SAFETY: the descriptor is a relation's or a copy of one, and has so many attributes.
        unsafe { ports::missing_value(self.raw, index) }
    }

    /// Whether there are CHECK constraints.
    pub fn has_checks(self) -> bool {
        // SAFETY: the descriptor is live, and its constraints with it.
        unsafe { (*self.raw).constr.as_ref() }.is_some_and(|constraints| constraints.num_check > 0)
    }
}

/// The name of an attribute.
pub fn attribute_name(attribute: &Attribute) -> &CStr {
    // SAFETY: a NameData is NUL-terminated.
    unsafe { CStr::from_ptr(attribute.attname.data.as_ptr()) }
}

/// The type under a domain; any other type is its own.
pub fn base_type(type_of: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: a catalogue look-up; an unknown type is an ERROR.
    unsafe { pg_sys::getBaseType(type_of) }
}
