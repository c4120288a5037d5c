//! Conditions that are not the engine's, but look at one column: PostgreSQL evaluates them, once a value.
//!
//! Such a condition is a function of the column as long as the node does not start again: none of its functions is
//! volatile, and a subquery in it is one whose rows are hashed once. The smallest part of a condition that the engine
//! does not know is taken, so AND, OR and NOT around it stay the engine's.

use lanes_columnar::vector::external_predicate::ExternalPredicate;
use lanes_columnar::vector::predicate::Predicate;
use pgrx::pg_sys;

use super::translate::{Asked, Scalars, Translation, Translator};
use super::value_predicate::ConditionTest;
use crate::pg::tree;

impl Translator {
    /// For a table that is not the one that the node reads, so that conditions on it cannot be evaluated there.
    pub fn of_other_table(scalars_from: Scalars) -> Translator {
        let mut translator = Translator::new(scalars_from);
        translator.asks_by_value = false;
        translator
    }

    /// A truth a row.
    ///
    /// # Errors
    /// Why it is not the engine's.
    pub fn predicate(&mut self, node: *mut pg_sys::Node) -> Translation<Predicate> {
        if let Some(condition) = self.given_condition(node) {
            return Ok(condition);
        }
        let before = self.progress();
        // SAFETY: the caller's promise.
        unsafe {
            self.vector_predicate(node).or_else(|reason| {
                let Some(column) = self.only_column(node) else {
                    return Err(reason);
                };
                self.go_back(before);
                self.by_value(node, column)
            })
        }
    }

    /// What was asked for, and how many scalars there are.
    fn progress(&self) -> (Asked, usize) {
        (self.asked(), self.scalars.len())
    }

    /// Takes back what was translated since.
    fn go_back(&mut self, (asked, scalars): (Asked, usize)) {
        *self.asked.borrow_mut() = asked;
        self.scalars.truncate(scalars);
    }

    /// A condition on a column as what PostgreSQL is asked for each of its values.
    unsafe fn by_value(
        &mut self,
        node: *mut pg_sys::Node,
        column: *mut pg_sys::Node,
    ) -> Translation<Predicate> {
        // SAFETY: the caller has a condition on this column.
        unsafe {
            let attribute = self.attribute(column)?;
            self.by_value += 1;
            let Scalars::Evaluated(plan) = self.scalars_from() else {
                return Ok(Predicate::ColumnIsNull(attribute));
            };
            let test = ConditionTest::new(node, attribute, plan)?;
            let is_by_value = test.is_by_value();
            let asked = ExternalPredicate::new(attribute, is_by_value, Box::new(test));
            Ok(Predicate::External(asked))
        }
    }

    /// The column of the table that a condition is a function of, if it is one of nothing else.
    unsafe fn only_column(&self, node: *mut pg_sys::Node) -> Option<*mut pg_sys::Node> {
        use pg_sys::NodeTag::*;
        if !self.asks_by_value {
            return None;
        }
        let mut column: *mut pg_sys::Var = std::ptr::null_mut();
        // SAFETY: the caller has a live condition; each node is read as what its tag says.
        unsafe {
            let is_refused = tree::walk_expression(node, &mut |node, _| match (*node).type_ {
                T_Var => {
                    let var = node.cast::<pg_sys::Var>();
                    let is_other = !column.is_null() && (*column).varattno != (*var).varattno;
                    column = var;
                    is_other
                        || (*var).varattno <= 0
                        || (*var).varlevelsup > 0
                        || self.is_given(node)
                }
                T_SubPlan => {
                    let subplan = &*node.cast::<pg_sys::SubPlan>();
                    !subplan.useHashTable || !subplan.parParam.is_null()
                }
                T_AlternativeSubPlan | T_SubLink | T_PlaceHolderVar | T_Aggref | T_GroupingFunc
                | T_WindowFunc | T_CurrentOfExpr => true,
                _ => false,
            });
            if is_refused || column.is_null() || pg_sys::contain_volatile_functions(node) {
                return None;
            }
        }
        Some(column.cast())
    }
}
