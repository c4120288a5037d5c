//! Tuple descriptors and their attributes.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::functions::catalog;
use super::ports;
use super::tree::view::{View, views};

/// An attribute of a row type.
pub type Attribute = pg_sys::FormData_pg_attribute;

views! {
    /// The descriptor of rows.
    Descriptor of TupleDescData {
        natts: i32;
    } {
        constr: Option<Constraints<'p>>;
    } {}

    /// The constraints of a table.
    Constraints of TupleConstr {
        num_check: u16;
    } {} {}
}

impl<'p> Descriptor<'p> {
    /// How many attributes there are, dropped ones included.
    #[inline]
    pub fn len(self) -> usize {
        self.natts() as usize
    }

    /// Where it lies, which tells it from others as long as it lives.
    pub fn address(self) -> usize {
        self.as_ptr().addr()
    }

    /// One attribute, counted from 0.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    pub fn attribute(self, index: usize) -> &'p Attribute {
        ports::TupleDescAttr(self, index)
    }

    /// All attributes.
    pub fn attributes(self) -> impl ExactSizeIterator<Item = &'p Attribute> {
        (0..self.len()).map(move |index| self.attribute(index))
    }

    /// The value of attribute `index` in rows from before `ALTER TABLE … ADD COLUMN … DEFAULT`.
    pub fn missing_value(self, index: usize) -> Option<pg_sys::Datum> {
        ports::missing_value(self, index)
    }

    /// Whether there are CHECK constraints.
    pub fn has_checks(self) -> bool {
        self.constr()
            .is_some_and(|constraints| constraints.num_check() > 0)
    }
}

/// The name of an attribute.
pub fn attribute_name(attribute: &Attribute) -> &CStr {
    ports::name_text(&attribute.attname)
}

/// Whether no value of an attribute is NULL.
#[cfg(not(feature = "pg18"))]
pub fn is_not_null(attribute: &Attribute) -> bool {
    attribute.attnotnull
}

/// Whether no value of an attribute is NULL. From version 18 on rows from before the constraint may not have been
/// checked.
#[cfg(feature = "pg18")]
pub fn is_not_null(_attribute: &Attribute) -> bool {
    false
}

/// The type under a domain; any other type is its own.
pub fn base_type(type_of: pg_sys::Oid) -> pg_sys::Oid {
    catalog::getBaseType(type_of)
}
