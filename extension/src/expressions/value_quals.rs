//! Translates conditions that the engine does not have but that look at one column: PostgreSQL evaluates them, once for
//! each distinct value.
//!
//! Such a condition must be a function of the column as long as its node does not start again: it calls no volatile
//! function, and the rows of a subquery in it are hashed once. Only the smallest part of a condition that the engine
//! does not have is left to PostgreSQL; the engine evaluates AND, OR and NOT around it.

use lanes_columnar::vector::external_predicate::ExternalPredicate;
use lanes_columnar::vector::predicate::Predicate;
use pgrx::pg_sys::NodeTag;

use super::date_parts;
use super::translate::{Asked, Scalars, Translation, Translator};
use crate::pg::exec::condition_test::ConditionTest;
use crate::pg::tree::{Expr, Kind, Var, walk};

impl Translator {
    /// A translator for a table that the node does not scan itself, so that PostgreSQL cannot evaluate conditions on
    /// its columns.
    pub fn of_other_table(scalars_from: Scalars) -> Translator {
        let mut translator = Translator::new(scalars_from);
        translator.asks_by_value = false;
        translator
    }

    /// A condition that is true, false or NULL in each row.
    ///
    /// # Errors
    /// Why neither the engine nor PostgreSQL can evaluate it for vectors.
    pub fn predicate(&mut self, expr: Expr<'_>) -> Translation<Predicate> {
        if let Some(condition) = self.given_condition(expr) {
            return Ok(condition);
        }
        let before = self.progress();
        // A condition on one column is evaluated once for each value, which is cheaper than a part of it for each row.
        let has_row_functions = std::mem::take(&mut self.has_row_functions);
        let found = self.vector_predicate(expr).or_else(|reason| {
            let Some(column) = self.only_column(expr) else {
                return Err(reason);
            };
            self.go_back(before.clone());
            // Many times are of one minute, hour or day, and hardly any is there twice.
            if date_parts::clock_of(expr).is_some()
                && let Some(condition) = self.row_truth(expr)
            {
                return Ok(condition);
            }
            self.by_value(expr, column)
        });
        self.has_row_functions = has_row_functions;
        let found = found.or_else(|reason| {
            if !has_row_functions {
                return Err(reason);
            }
            self.go_back(before);
            self.row_truth(expr).ok_or(reason)
        });
        found.map(|general| self.decimal_comparison(expr, general))
    }

    /// As [`predicate`](Self::predicate), without a trace of what was translated if it fails.
    ///
    /// # Errors
    /// As for [`predicate`](Self::predicate).
    pub fn predicate_if_any(&mut self, expr: Expr<'_>) -> Translation<Predicate> {
        let before = self.progress();
        self.predicate(expr).inspect_err(|_| self.go_back(before))
    }

    /// The attributes used, and the numbers of scalars and of expressions by row, so far.
    pub(super) fn progress(&self) -> (Asked, usize, usize) {
        (self.asked(), self.scalars.len(), self.by_row)
    }

    /// Undoes all translations since [`progress`](Self::progress) was called.
    pub(super) fn go_back(&mut self, (asked, scalars, by_row): (Asked, usize, usize)) {
        *self.asked.borrow_mut() = asked;
        self.scalars.truncate(scalars);
        self.by_row = by_row;
    }

    /// A condition that PostgreSQL evaluates for the values of a column.
    fn by_value(&mut self, expr: Expr<'_>, column: Var<'_>) -> Translation<Predicate> {
        let attribute = self.attribute(column)?;
        self.by_value += 1;
        let Scalars::Evaluated(node) = self.scalars_from() else {
            return Ok(Predicate::ColumnIsNull(attribute));
        };
        let test = ConditionTest::new(expr, attribute, node)?;
        let is_by_value = test.is_by_value();
        let asked = ExternalPredicate::new(attribute, is_by_value, Box::new(test));
        Ok(Predicate::External(asked))
    }

    /// The only column of the table that a condition depends on, if it depends on nothing else.
    fn only_column<'p>(&self, expr: Expr<'p>) -> Option<Var<'p>> {
        if !self.asks_by_value {
            return None;
        }
        let columns = self.own_columns(expr)?;
        let column = *columns.first()?;
        let mut columns = columns.iter();
        columns
            .all(|other| other.varattno() == column.varattno())
            .then_some(column)
    }

    /// The columns of the table that an expression depends on. `None` if it depends on anything else, or may change as
    /// long as its node does not start again. The rows of a subquery in it are hashed once.
    pub(super) fn own_columns<'p>(&self, expr: Expr<'p>) -> Option<Vec<Var<'p>>> {
        let mut columns = Vec::new();
        let is_refused = walk::expression(expr, &mut |node, _| match node.kind() {
            Kind::Var(var) => {
                columns.push(var);
                var.varattno() <= 0 || var.varlevelsup() > 0 || self.is_given(var)
            }
            Kind::SubPlan(subplan) => !subplan.useHashTable() || !subplan.parParam().is_empty(),
            Kind::SubLink(_)
            | Kind::PlaceHolderVar(_)
            | Kind::Aggref(_)
            | Kind::GroupingFunc(_)
            | Kind::WindowFunc(_)
            | Kind::Other(NodeTag::T_AlternativeSubPlan | NodeTag::T_CurrentOfExpr) => true,
            _ => false,
        });
        (!is_refused && !expr.is_volatile()).then_some(columns)
    }
}
