//! The state of writing a query: randomness, the names that are used, and what may be written.

use crate::query::Scene;
use lanes_support::seed::Random;
use rand::RngExt;
use rand::seq::IndexedRandom;
use std::collections::BTreeSet;

/// The forms that queries use beside functions, aggregations and operators.
#[cfg(test)]
pub const FORMS: [&str; 18] = [
    "@ end()",
    "@ start()",
    "@ time",
    "bool",
    "by",
    "group_left",
    "group_right",
    "ignoring",
    "nested subquery",
    "number",
    "offset",
    "offset back",
    "on",
    "subquery",
    "unary",
    "without",
    "look-back",
    "several metrics",
];

/// Writes a query.
pub struct Writer<'r> {
    /// The source of randomness.
    pub random: &'r mut Random,
    /// What the query is about.
    pub scene: Scene,
    /// The names of what was written.
    pub uses: BTreeSet<&'static str>,
    /// How many expressions are around the current one.
    pub nesting: u32,
    /// How many subqueries are around the current expression.
    pub subqueries: u32,
}

impl Writer<'_> {
    /// Returns a writer of one query.
    pub fn new(random: &mut Random, scene: Scene) -> Writer<'_> {
        Writer {
            random,
            scene,
            uses: BTreeSet::new(),
            nesting: 0,
            subqueries: 0,
        }
    }

    /// Returns true in so many of a hundred cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.random.random_ratio(percent, 100)
    }

    /// Returns one of several items, which must not be empty.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        *items.choose(self.random).expect("there are items")
    }

    /// Returns one of several names, and notes that the query uses it.
    pub fn pick_name(&mut self, names: &[&'static str]) -> &'static str {
        let name = self.pick(names);
        self.note(name);
        name
    }

    /// Notes that the query uses a name.
    pub fn note(&mut self, name: &'static str) {
        self.uses.insert(name);
    }

    /// Writes what is inside of another expression.
    pub fn inside<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> T {
        self.nesting += 1;
        let written = write(self);
        self.nesting -= 1;
        written
    }

    /// Returns spaces, or a line break with a comment.
    pub fn space(&mut self) -> &'static str {
        match self.random.random_range(0..40) {
            0 => "\n",
            1 => " \t ",
            2 => " # a comment\n",
            _ => " ",
        }
    }
}
