//! The columns of a sub-select that aggregates, as expressions over the entries of that aggregation.
//!
//! While a query is planned, the sub-select's list contains aggregates and keys as they were written. In a plan they are
//! columns of the node's own list. Both become columns of the sub-select's relation, numbered by entry.

use pgrx::pg_sys;

use crate::expressions::translate::{Translation, number_type};
use crate::pg::exec::node::CustomPlan;
use crate::pg::names::type_name;
use crate::pg::{nodes, tree};

/// The columns of a sub-select.
pub struct Outputs {
    /// The columns as expressions over entries.
    columns: Vec<*mut pg_sys::Node>,
    /// The type of each entry.
    pub entry_types: Vec<pg_sys::Oid>,
    /// How many of the first entries are keys.
    pub keys: usize,
}

impl Outputs {
    /// The columns of a sub-select that is being planned, from its list and the entries of its aggregation.
    ///
    /// # Safety
    /// The expressions are live.
    pub unsafe fn of_path(
        index: u32,
        list: *mut pg_sys::List,
        entries: &[*mut pg_sys::Node],
        keys: usize,
    ) -> Outputs {
        // SAFETY: the caller's expressions are live.
        unsafe {
            let columns = nodes::list::<pg_sys::Node>(list).map(|expression| {
                let found = entries_within(index, expression, entries);
                tree::replaced(expression, &mut |node| {
                    let mut found = found.iter();
                    let known = found.find(|(entry, _)| std::ptr::eq(*entry, node));
                    known.map(|(_, column)| *column)
                })
            });
            Outputs {
                columns: columns.collect(),
                entry_types: entries.iter().map(|e| pg_sys::exprType(*e)).collect(),
                keys,
            }
        }
    }

    /// The columns of a sub-select whose plan is ready: that of an aggregation with this many keys.
    pub fn of_plan(index: u32, plan: CustomPlan<'_>, keys: usize) -> Outputs {
        // SAFETY: the plan's expressions are live.
        unsafe {
            let targets = nodes::list::<pg_sys::TargetEntry>(plan.target_list());
            let columns = targets.map(|target| over_entries(index, (*target).expr.cast()));
            Outputs {
                columns: columns.collect(),
                entry_types: plan
                    .entries()
                    .map(|entry| pg_sys::exprType(entry))
                    .collect(),
                keys,
            }
        }
    }

    /// An expression over columns of the sub-select as one over entries.
    ///
    /// # Errors
    /// The expression has a column that is not in the sub-select's list.
    pub fn over_entries(&self, expression: *mut pg_sys::Node) -> Translation<*mut pg_sys::Node> {
        let mut is_strange = false;
        // SAFETY: the expression is of a live query or plan; casts follow tags.
        unsafe {
            let replaced = tree::replaced(expression, &mut |node| {
                let output = self.output_of(node)?;
                is_strange |= output.is_none();
                output.map(|output| self.columns[output])
            });
            match is_strange {
                true => Err("a whole row of a sub-select".into()),
                false => Ok(replaced),
            }
        }
    }

    /// The entry of an expression that is a column of the sub-select and a key below.
    pub fn key_of(&self, expression: *mut pg_sys::Node) -> Option<usize> {
        // SAFETY: the expression is of a live query or plan; casts follow tags.
        unsafe {
            let column = self.columns[self.output_of(expression)??];
            if (*column).type_ != pg_sys::NodeTag::T_Var {
                return None;
            }
            let entry = (*column.cast::<pg_sys::Var>()).varattno as usize - 1;
            (entry < self.keys).then_some(entry)
        }
    }

    /// The place of a column of the sub-select; `Some(None)` for a column that is not in its list.
    #[allow(clippy::option_option)]
    unsafe fn output_of(&self, node: *mut pg_sys::Node) -> Option<Option<usize>> {
        // SAFETY: the caller's expression is live; the cast follows the tag.
        unsafe {
            if (*node).type_ != pg_sys::NodeTag::T_Var {
                return None;
            }
            let number = (*node.cast::<pg_sys::Var>()).varattno;
            let output = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
            Some(output.filter(|output| *output < self.columns.len()))
        }
    }

    /// Refuses entries that lanes cannot contain.
    ///
    /// # Errors
    /// An entry has a type that no lane has.
    pub fn check(&self, wanted: &[usize]) -> Translation<()> {
        for entry in wanted {
            let type_of = self.entry_types[*entry];
            let is_key_text = *entry < self.keys && is_text(type_of);
            if !is_key_text && type_of != pg_sys::BOOLOID && number_type(type_of).is_none() {
                let name = type_name(type_of);
                return Err(format!("a column of type {name} of the groups below"));
            }
        }
        Ok(())
    }

    /// The columns, in their order.
    pub fn columns(&self) -> &[*mut pg_sys::Node] {
        &self.columns
    }
}

/// Whether values of a type are texts that are equal if their bytes are.
pub fn is_text(type_of: pg_sys::Oid) -> bool {
    // SAFETY: looks the type up in the catalogue.
    let base = unsafe { pg_sys::getBaseType(type_of) };
    matches!(base, pg_sys::TEXTOID | pg_sys::VARCHAROID)
}

/// An expression of a live plan, whose columns are those of the node's own list, as one over entries.
pub fn over_entries(index: u32, expression: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: the expression is live; the copy is changed before anybody else knows it; the cast follows the tag.
    unsafe {
        let copy = tree::copy(expression);
        tree::walk_expression(copy, &mut |node, _| {
            if (*node).type_ == pg_sys::NodeTag::T_Var {
                (*node.cast::<pg_sys::Var>()).varno = index as i32;
            }
            false
        });
        copy
    }
}

/// The parts of an expression that are entries, each with its column.
///
/// A comparison may raise an ERROR, which a visitor must not. So candidates are collected first, and compared then.
unsafe fn entries_within(
    index: u32,
    expression: *mut pg_sys::Node,
    entries: &[*mut pg_sys::Node],
) -> Vec<(*mut pg_sys::Node, *mut pg_sys::Node)> {
    // SAFETY: the caller's expressions are live.
    unsafe {
        let tags: Vec<_> = entries.iter().map(|entry| (**entry).type_).collect();
        let mut candidates = Vec::new();
        tree::walk_expression(expression, &mut |node, _| {
            if tags.contains(&(*node).type_) {
                candidates.push(node);
            }
            false
        });
        let found = candidates.into_iter().filter_map(|node| {
            let mut entries = entries.iter();
            let entry = entries.position(|entry| pg_sys::equal(node.cast(), (*entry).cast()))?;
            Some((node, column(index, entry, node)))
        });
        found.collect()
    }
}

/// The column of an entry, of the type of an expression.
unsafe fn column(index: u32, entry: usize, like: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: the caller's expression is live.
    unsafe {
        let (type_of, modifier) = (pg_sys::exprType(like), pg_sys::exprTypmod(like));
        let collation = pg_sys::exprCollation(like);
        let number = entry as i16 + 1;
        pg_sys::makeVar(index as i32, number, type_of, modifier, collation, 0).cast()
    }
}
