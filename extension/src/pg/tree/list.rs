//! PostgreSQL's lists. A null list is empty.

use std::marker::PhantomData;

use pgrx::pg_sys::{self, Oid};

use super::view::{Field, View};
use crate::pg::functions::{Answer, Argument};

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

    fn raw(self) -> *mut pg_sys::List {
        self.raw
    }
}

impl<C, T> Argument<*mut C> for List<'_, T> {
    fn into_c(self) -> *mut C {
        self.raw.cast()
    }
}

impl<C, T> Argument<*const C> for List<'_, T> {
    fn into_c(self) -> *const C {
        self.raw.cast()
    }
}

impl<C, T> Answer<*mut C> for List<'_, T> {
    unsafe fn of_c(value: *mut C) -> Self {
        List {
            raw: value.cast(),
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

    /// A new list in the current memory context, with null for what is missing, which [`List::get`] gives back.
    pub fn of_options(elements: impl IntoIterator<Item = Option<T>>) -> List<'p, T> {
        let append = |list, element: Option<T>| {
            let element = element.map_or(std::ptr::null_mut(), View::as_ptr);
            // SAFETY: a list of pointers, or none yet; the element is live or null.
            unsafe { pg_sys::lappend(list, element.cast()) }
        };
        List {
            raw: elements.into_iter().fold(std::ptr::null_mut(), append),
            elements: PhantomData,
        }
    }

    /// Appends an element.
    pub fn push(&mut self, element: T) {
        // SAFETY: a list of pointers, or none yet; the element is live.
        self.raw = unsafe { pg_sys::lappend(self.raw, element.as_ptr().cast()) };
    }

    /// Appends elements.
    pub fn extend(&mut self, elements: impl IntoIterator<Item = T>) {
        for element in elements {
            self.push(element);
        }
    }

    /// Appends an element, unless an equal one is there.
    pub fn push_new(&mut self, element: T) {
        // SAFETY: a list of nodes, or none yet; the element is a live node.
        self.raw = unsafe { pg_sys::list_append_unique(self.raw, element.as_ptr().cast()) };
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

    /// The elements in order, up to a null element.
    #[inline]
    pub fn iter(self) -> Elements<'p, T> {
        Elements {
            list: self,
            next: 0,
        }
    }

    /// The elements in order, without those that are null.
    pub fn present(self) -> impl Iterator<Item = T> {
        (0..self.len()).filter_map(move |index| self.get(index))
    }

    /// Replaces an element, counted from 0. The list must not be shared.
    pub fn set(self, index: usize, element: T) {
        assert!(index < self.len(), "a list has no element {index}");
        // SAFETY: the list has more elements than `index`.
        unsafe { (*(*self.raw).elements.add(index)).ptr_value = element.as_ptr().cast() }
    }

    /// The elements as lists of integers, which is what they are. An empty list is null, which is no node.
    pub(super) fn integer_lists(self) -> Vec<Integers<'p>> {
        // SAFETY: the list has so many elements.
        let element = |index| unsafe { (*(*self.raw).elements.add(index)).ptr_value };
        let lists = (0..self.len()).map(element);
        // SAFETY: as the caller says; a tag would be that of a list of integers.
        lists
            .map(|list| unsafe { Field::of(list.cast()) })
            .collect()
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
        (0, Some(left))
    }
}

/// A list of integers.
#[derive(Clone, Copy, Debug)]
pub struct Integers<'p> {
    raw: *mut pg_sys::List,
    lifetime: PhantomData<&'p ()>,
}

/// A list of OIDs.
#[derive(Clone, Copy, Debug)]
pub struct Oids<'p> {
    raw: *mut pg_sys::List,
    lifetime: PhantomData<&'p ()>,
}

super::view::nullable_fields!(Integers: pg_sys::List, Oids: pg_sys::List);

impl<'p> Integers<'p> {
    /// A new list in the current memory context.
    pub fn new(elements: impl IntoIterator<Item = i32>) -> Integers<'p> {
        // SAFETY: a list of integers, or none yet.
        let append = |list, element| unsafe { pg_sys::lappend_int(list, element) };
        Integers {
            raw: made(elements, append),
            lifetime: PhantomData,
        }
    }

    /// Whether the list has no elements.
    pub fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }

    /// The elements in order.
    pub fn iter(self) -> impl Iterator<Item = i32> + use<'p> {
        // SAFETY: null, or a live list of integers.
        cells(self.raw).map(|cell| unsafe { cell.int_value })
    }
}

impl<'p> Oids<'p> {
    /// A new list in the current memory context.
    pub fn new(elements: impl IntoIterator<Item = Oid>) -> Oids<'p> {
        // SAFETY: a list of OIDs, or none yet.
        let append = |list, element| unsafe { pg_sys::lappend_oid(list, element) };
        Oids {
            raw: made(elements, append),
            lifetime: PhantomData,
        }
    }

    /// The elements in order.
    pub fn iter(self) -> impl Iterator<Item = Oid> + use<'p> {
        // SAFETY: null, or a live list of OIDs.
        cells(self.raw).map(|cell| unsafe { cell.oid_value })
    }
}

/// A new list in the current memory context, by one of PostgreSQL's functions that append.
fn made<T>(
    elements: impl IntoIterator<Item = T>,
    append: impl Fn(*mut pg_sys::List, T) -> *mut pg_sys::List,
) -> *mut pg_sys::List {
    elements.into_iter().fold(std::ptr::null_mut(), append)
}

/// The cells of a list, which is null or live.
fn cells(list: *mut pg_sys::List) -> impl Iterator<Item = pg_sys::ListCell> {
    // SAFETY: the views above hold lists that are null or live.
    let length = unsafe { list.as_ref() }.map_or(0, |list| list.length as usize);
    // SAFETY: the list has so many cells.
    (0..length).map(move |index| unsafe { *(*list).elements.add(index) })
}
