//! PostgreSQL's lists. A null list is empty.

use std::marker::PhantomData;

use pgrx::pg_sys;

use super::view::{Field, View};

/// A list of nodes.
#[derive(Debug)]
pub struct List<'p, T> {
    raw: *mut pg_sys::List,
    elements: PhantomData<(&'p (), T)>,
}

impl<T> Clone for List<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<'_, T> {}

impl<'p, T> Field<'p> for List<'p, T> {
    type Raw = *mut pg_sys::List;

    unsafe fn of(raw: *mut pg_sys::List) -> Self {
        List {
            raw,
            elements: PhantomData,
        }
    }
}

impl<'p, T: View<'p>> List<'p, T> {
    /// A list without elements.
    pub const EMPTY: List<'p, T> = List {
        raw: std::ptr::null_mut(),
        elements: PhantomData,
    };

    /// A new list in the current memory context.
    pub fn new(elements: impl IntoIterator<Item = T>) -> List<'p, T> {
        let mut list = List::EMPTY;
        for element in elements {
            list.push(element);
        }
        list
    }

    /// Appends an element.
    pub fn push(&mut self, element: T) {
        // SAFETY: a list of pointers, or none yet; the element is live.
        self.raw = unsafe { pg_sys::lappend(self.raw, element.as_ptr().cast()) };
    }

    /// The number of elements.
    #[inline]
    pub fn len(self) -> usize {
        // SAFETY: null, or a list that lives for 'p.
        unsafe { self.raw.as_ref() }.map_or(0, |list| list.length as usize)
    }

    /// Whether the list has no elements.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// An element, counted from 0.
    #[inline]
    pub fn get(self, index: usize) -> Option<T> {
        if index >= self.len() {
            return None;
        }
        // SAFETY: the list has more elements than `index`; each points to a live structure of type `T`.
        unsafe { Field::of((*(*self.raw).elements.add(index)).ptr_value.cast()) }
    }

    /// The first element.
    #[inline]
    pub fn first(self) -> Option<T> {
        self.get(0)
    }

    /// The elements in order.
    #[inline]
    pub fn iter(self) -> Elements<'p, T> {
        Elements {
            list: self,
            next: 0,
        }
    }

    /// Replaces an element, counted from 0. The list must not be shared.
    pub fn set(self, index: usize, element: T) {
        assert!(index < self.len(), "a list has no element {index}");
        // SAFETY: the list has more elements than `index`.
        unsafe { (*(*self.raw).elements.add(index)).ptr_value = element.as_ptr().cast() }
    }

    /// The list, for a call of PostgreSQL.
    #[inline]
    pub fn as_ptr(self) -> *mut pg_sys::List {
        self.raw
    }
}

impl<'p, T: View<'p>> IntoIterator for List<'p, T> {
    type Item = T;
    type IntoIter = Elements<'p, T>;

    fn into_iter(self) -> Elements<'p, T> {
        self.iter()
    }
}

/// The elements of a list in order.
pub struct Elements<'p, T> {
    list: List<'p, T>,
    next: usize,
}

impl<'p, T: View<'p>> Iterator for Elements<'p, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let element = self.list.get(self.next)?;
        self.next += 1;
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.list.len().saturating_sub(self.next);
        (left, Some(left))
    }
}

/// A list of integers.
#[derive(Clone, Copy, Debug)]
pub struct Integers<'p> {
    raw: *mut pg_sys::List,
    lifetime: PhantomData<&'p ()>,
}

super::view::nullable_fields!(Integers: pg_sys::List);

impl Integers<'_> {
    /// Whether the list has no elements.
    pub fn is_empty(self) -> bool {
        // SAFETY: null, or a live list.
        unsafe { self.raw.as_ref() }.is_none_or(|list| list.length == 0)
    }
}
