//! Lists of definitions, as statements have them after WITH, SET and RESET: `name = value`.

use std::ffi::{CStr, CString};
use std::marker::PhantomData;

use pgrx::pg_sys;

use super::names;
use super::ports;
use super::tree::view::Field;

/// A list of definitions that lives for `'a`. The null list is empty.
#[derive(Clone, Copy)]
pub struct Definitions<'a> {
    list: *mut pg_sys::List,
    lives: PhantomData<&'a pg_sys::List>,
}

/// One definition of a list.
#[derive(Clone, Copy)]
pub struct Definition<'a> {
    element: *mut pg_sys::DefElem,
    lives: PhantomData<&'a pg_sys::DefElem>,
}

/// The definitions of a field that is null, or a list of `DefElem`s.
impl<'a> Field<'a> for Definitions<'a> {
    type Raw = *mut pg_sys::List;

    unsafe fn of(list: *mut pg_sys::List) -> Definitions<'a> {
        Definitions {
            list,
            lives: PhantomData,
        }
    }

    fn raw(self) -> *mut pg_sys::List {
        self.list
    }
}

impl<'a> Definitions<'a> {
    /// No definitions.
    pub fn empty() -> Definitions<'a> {
        Definitions {
            list: std::ptr::null_mut(),
            lives: PhantomData,
        }
    }

    /// The C list, for PostgreSQL's functions.
    pub fn as_ptr(self) -> *mut pg_sys::List {
        self.list
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    fn len(self) -> i32 {
        // SAFETY: null or live.
        unsafe { ports::list_length(self.list) }
    }

    /// The definitions, in their order.
    pub fn iter(self) -> impl Iterator<Item = Definition<'a>> {
        (0..self.len()).map(move |index| Definition {
            // SAFETY: a live list of DefElems with so many elements.
            element: unsafe { ports::list_nth(self.list, index) },
            lives: PhantomData,
        })
    }

    /// The definitions that `is_wanted` holds for, and the others, as lists of their own.
    pub fn partition(
        self,
        is_wanted: impl Fn(Definition<'a>) -> bool,
    ) -> (Definitions<'a>, Definitions<'a>) {
        let (mut wanted, mut others) = (Definitions::empty(), Definitions::empty());
        for definition in self.iter() {
            match is_wanted(definition) {
                true => wanted.push(definition),
                false => others.push(definition),
            }
        }
        (wanted, others)
    }

    /// Appends a definition, to a list that this value alone refers to.
    pub fn push(&mut self, definition: Definition<'a>) {
        // SAFETY: null or live; an element of such a list.
        self.list = unsafe { pg_sys::lappend(self.list, definition.element.cast()) };
    }

    /// Whether one of them has this name.
    pub fn names(self, name: &CStr) -> bool {
        self.iter().any(|definition| definition.is(name))
    }

    /// The definitions without their values, as RESET takes them.
    pub fn without_values(self) -> Definitions<'a> {
        let mut names = Definitions::empty();
        for definition in self.iter() {
            names.push(Definition {
                // SAFETY: the name lives as long as the list.
                element: unsafe {
                    let name = (*definition.element).defname;
                    pg_sys::makeDefElem(name, std::ptr::null_mut(), -1)
                },
                lives: PhantomData,
            });
        }
        names
    }

    /// A copy in the current memory context.
    pub fn copy(self) -> Definitions<'static> {
        Definitions {
            // SAFETY: null or live.
            list: unsafe { pg_sys::copyObjectImpl(self.list.cast()) }.cast(),
            lives: PhantomData,
        }
    }
}

impl Definition<'static> {
    /// A definition of a text, made in the current memory context. `None`: the text contains a NUL.
    pub fn of_text(name: &CStr, value: &str) -> Option<Definition<'static>> {
        let value = CString::new(value).ok()?;
        // SAFETY: the nodes keep copies of both strings.
        let element = unsafe {
            let value = pg_sys::makeString(pg_sys::pstrdup(value.as_ptr()));
            pg_sys::makeDefElem(pg_sys::pstrdup(name.as_ptr()), value.cast(), -1)
        };
        Some(Definition {
            element,
            lives: PhantomData,
        })
    }
}

impl<'a> Definition<'a> {
    /// The definition's name.
    pub fn name(self) -> &'a CStr {
        // SAFETY: a live element has a name.
        unsafe { CStr::from_ptr((*self.element).defname) }
    }

    /// Whether it has this name, outside of all namespaces.
    pub fn is(self, name: &CStr) -> bool {
        // SAFETY: a live element.
        unsafe { (*self.element).defnamespace.is_null() && self.name() == name }
    }

    /// The value as text; an ERROR if there is none.
    pub fn text(self) -> String {
        // SAFETY: a live element; the value is a C string.
        unsafe { names::text(pg_sys::defGetString(self.element)) }.unwrap_or_default()
    }

    /// The value as a boolean, true if there is none; an ERROR if it is something else.
    pub fn boolean(self) -> bool {
        // SAFETY: a live element.
        unsafe { pg_sys::defGetBoolean(self.element) }
    }
}
