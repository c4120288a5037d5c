//! `CASE` whose results are constants of any type, as a key of groups:
//! `CASE WHEN price > 100 THEN 'high' ELSE 'low' END`.
//!
//! Each result has a code, and the engine chooses among the codes by vectors. So no value is formed for a row.

use lanes_columnar::vector::choice::{Choice, Condition};
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::value::Value;
use pgrx::pg_sys::Datum;

use super::choices;
use super::row_function::KeyCodes;
use super::translate::{Translation, Translator};
use crate::pg::catalog;
use crate::pg::tree::{Expr, Kind};

/// A choice among codes, and the results in the order in which they got their codes. Equal results have one code.
pub(super) struct ConstantCase {
    pub value: Value,
    pub results: Vec<Option<Datum>>,
}

impl Translator {
    /// The choice that an expression is. `codes` gives its results their codes; it is `None` while a query is planned,
    /// when all codes are 0.
    ///
    /// # Errors
    /// Why the expression is no choice among constants that the engine can evaluate.
    pub(super) fn constant_case<'p>(
        &mut self,
        expr: Expr<'p>,
        codes: Option<&KeyCodes>,
    ) -> Translation<ConstantCase> {
        let Kind::CaseExpr(case) = expr.stripped().kind() else {
            return Err("no CASE".into());
        };
        if !self.has_choices || !catalog::is_deterministic(expr.collation()) {
            return Err("CASE".into());
        }
        let (mut branches, mut results, mut known) = (Vec::new(), Vec::new(), Vec::new());
        let mut result_of = |translator: &mut Translator, result: Expr<'p>| {
            let constant = result.as_const().ok_or("a result that is no constant")?;
            let value = constant.value().map(|value| value.datum());
            results.push(value);
            let code = codes.map(|codes| codes.borrow_mut().code(value));
            // A group shows the value of its first row, which is not known here.
            let is_other = |(expr, its): &(Expr<'p>, _)| *its == code && !result.equals(*expr);
            if code.is_some() && known.iter().any(is_other) {
                return Err("equal results that differ, such as 1.0 and 1.00".into());
            }
            known.push((result, code));
            let code = code.unwrap_or(0);
            let code = translator.scalar(Some(Scalar(code.into())));
            Translation::Ok(Value::Scalar(NumberType::I64, code))
        };
        for (condition, result) in choices::branches(case)? {
            let result = result_of(self, result)?;
            let condition = Condition::Holds(self.predicate(condition)?);
            branches.push((condition, result));
        }
        let otherwise = case.defresult().ok_or("CASE without ELSE")?;
        branches.push((Condition::Always, result_of(self, otherwise)?));
        Ok(ConstantCase {
            value: Value::Choice(Box::new(Choice::new(NumberType::I64, branches))),
            results,
        })
    }
}

/// The most values that an expression has, if it is a `CASE` whose results are constants.
pub fn values_of(expr: Expr<'_>) -> Option<usize> {
    let Kind::CaseExpr(case) = expr.stripped().kind() else {
        return None;
    };
    let results = case.args().iter().map(|branch| match branch.kind() {
        Kind::CaseWhen(branch) => branch.result(),
        _ => None,
    });
    let mut results = results.chain([case.defresult()]);
    let is_constant = |result: Option<Expr<'_>>| result.is_some_and(|it| it.as_const().is_some());
    results.all(is_constant).then(|| case.args().len() + 1)
}
