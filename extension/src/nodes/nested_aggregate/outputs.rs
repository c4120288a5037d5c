//! The columns of a sub-select that aggregates, as expressions over the entries of that aggregation.
//!
//! While a query is planned, the sub-select's list contains aggregates and keys as they were
//! written. In a plan they are columns of the node's own list. Both become columns of the
//! sub-select's relation, numbered by entry.

use pgrx::pg_sys;

use crate::expressions::translate::{Translation, number_type};
use crate::pg::catalog;
use crate::pg::exec::node::CustomPlan;
use crate::pg::names::type_name;
use crate::pg::tree::{Expr, Expression, List, TargetEntry, make, plan_field, plan_node, walk};

/// The columns of a sub-select.
pub struct Outputs<'p> {
    /// The columns as expressions over entries.
    columns: Vec<Expr<'p>>,
    /// The type of each entry.
    pub entry_types: Vec<pg_sys::Oid>,
    /// How many of the first entries are keys.
    pub keys: usize,
}

impl<'p> Outputs<'p> {
    /// The columns of a sub-select that is being planned, from its list and the entries of its aggregation.
    pub fn of_path(
        index: u32,
        list: List<'p, Expr<'p>>,
        entries: &[Expr<'p>],
        keys: usize,
    ) -> Outputs<'p> {
        let columns = list.iter().map(|expression| {
            walk::replaced(expression, &mut |node| {
                // In the plan a constant stays what it is, even where it is also an entry: DISTINCT keeps it as a key.
                if node.as_const().is_some() {
                    return None;
                }
                let entry = entries.iter().position(|entry| entry.equals(node))?;
                Some(column(index, entry, node))
            })
        });
        Outputs {
            columns: columns.collect(),
            entry_types: entries.iter().map(|entry| entry.type_of()).collect(),
            keys,
        }
    }

    /// The columns of a sub-select whose plan is ready: that of an aggregation with this many keys.
    pub fn of_plan(index: u32, plan: CustomPlan<'_>, keys: usize) -> Outputs<'p> {
        let targets: List<'p, TargetEntry<'p>> = plan_field(plan.target_list());
        let columns = targets.iter();
        let entries = plan.entries().map(plan_node::<Expr<'_>>);
        Outputs {
            columns: columns
                .map(|target| over_entries(index, target.expr()))
                .collect(),
            entry_types: entries.map(Expr::type_of).collect(),
            keys,
        }
    }

    /// An expression over columns of the sub-select as one over entries.
    ///
    /// # Errors
    /// The expression has a column that is not in the sub-select's list.
    pub fn over_entries(&self, expression: Expr<'p>) -> Translation<Expr<'p>> {
        let mut is_strange = false;
        let replaced = walk::replaced(expression, &mut |node| {
            let output = self.output_of(node)?;
            is_strange |= output.is_none();
            output.map(|output| self.columns[output])
        });
        match is_strange {
            true => Err("a whole row of a sub-select".into()),
            false => Ok(replaced),
        }
    }

    /// The entry of an expression that is a column of the sub-select and a key below.
    pub fn key_of(&self, expression: Expr<'p>) -> Option<usize> {
        let column = self.columns[self.output_of(expression)??].as_var()?;
        let entry = column.varattno() as usize - 1;
        (entry < self.keys).then_some(entry)
    }

    /// The place of a column of the sub-select; `Some(None)` for a column that is not in its list.
    #[allow(clippy::option_option)]
    fn output_of(&self, node: Expr<'_>) -> Option<Option<usize>> {
        let number = node.as_var()?.varattno();
        let output = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
        Some(output.filter(|output| *output < self.columns.len()))
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
    pub fn columns(&self) -> &[Expr<'p>] {
        &self.columns
    }
}

/// Whether values of a type are texts that are equal if their bytes are.
pub fn is_text(type_of: pg_sys::Oid) -> bool {
    let base = catalog::base_type(type_of);
    matches!(base, pg_sys::TEXTOID | pg_sys::VARCHAROID)
}

/// An expression of a live plan, whose columns are those of the node's own list, as one over entries.
pub fn over_entries(index: u32, expression: Expr<'_>) -> Expr<'_> {
    let copy = make::copy(expression);
    walk::expression(copy, &mut |node, _| {
        if let Some(column) = node.as_var() {
            column.set_table(index as i32);
        }
        false
    });
    copy
}

/// The column of an entry, of the type of an expression.
fn column<'p>(index: u32, entry: usize, like: Expr<'_>) -> Expr<'p> {
    let (type_of, collation) = (like.type_of(), like.collation());
    let column = make::var(index as i32, entry as i16 + 1, type_of, collation);
    column.set_type_modifier(like.type_modifier());
    column.as_expr()
}
