//! Lists of definitions, as statements have them after WITH, SET and RESET: `name = value`.

use std::ffi::{CStr, CString};

use super::functions::nodes;
use super::tree::view::views;
use super::tree::{List, Node, make};

views! {
    /// One definition of a list.
    Definition of DefElem {} {
        defname: Option<&'p CStr>;
        defnamespace: Option<&'p CStr>;
    } {}
}

/// A list of definitions. The null list is empty.
pub type Definitions<'a> = List<'a, Definition<'a>>;

impl<'a> Definitions<'a> {
    /// The definitions that `is_wanted` holds for, and the others, as lists of their own.
    pub fn partition(
        self,
        is_wanted: impl Fn(Definition<'a>) -> bool,
    ) -> (Definitions<'a>, Definitions<'a>) {
        let (mut wanted, mut others) = (List::EMPTY, List::EMPTY);
        for definition in self.iter() {
            match is_wanted(definition) {
                true => wanted.push(definition),
                false => others.push(definition),
            }
        }
        (wanted, others)
    }

    /// Whether one of them has this name.
    pub fn names(self, name: &CStr) -> bool {
        self.iter().any(|definition| definition.is(name))
    }

    /// The definitions without their values, as RESET takes them.
    pub fn without_values(self) -> Definitions<'a> {
        let names = self.iter().map(Definition::defname);
        List::new(names.map(|name| nodes::makeDefElem(name, None, -1)))
    }
}

impl<'a> Definition<'a> {
    /// A definition of a text, made in the current memory context. `None`: the text contains a NUL.
    pub fn of_text(name: &CStr, value: &str) -> Option<Definition<'a>> {
        let value = make::name(&CString::new(value).ok()?);
        Some(nodes::makeDefElem(
            nodes::pstrdup(name),
            Some(value.as_node()),
            -1,
        ))
    }

    /// The definition's name.
    pub fn name(self) -> &'a CStr {
        self.defname().unwrap_or_default()
    }

    /// Whether it has this name, outside of all namespaces.
    pub fn is(self, name: &CStr) -> bool {
        self.defnamespace().is_none() && self.name() == name
    }

    /// The value as text; an ERROR if there is none.
    pub fn text(self) -> String {
        nodes::defGetString(self).unwrap_or_default()
    }

    /// The value as a boolean, true if there is none; an ERROR if it is something else.
    pub fn boolean(self) -> bool {
        nodes::defGetBoolean(self)
    }
}
