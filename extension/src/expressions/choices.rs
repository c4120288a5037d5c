//! `CASE`, `COALESCE`, `NULLIF`, `GREATEST` and `LEAST` of numbers.
//!
//! PostgreSQL evaluates a part without columns only when a row reaches it. The engine evaluates such a part once a
//! scan, so a choice that contains one that may fail, or that runs a subquery, is left to PostgreSQL.

use lanes_columnar::vector::choice::{Choice, Condition};
use lanes_columnar::vector::number::NumberType;
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::value::Value;
use lanes_simd::Comparison;
use pgrx::pg_sys::{self, NodeTag, ParamKind};

use super::translate::{Translation, Translator};
use crate::pg::tree::{CaseExpr, CoalesceExpr, Expr, Expression, Kind, MinMaxExpr, OpExpr, walk};

/// `GREATEST` and `LEAST` evaluate each argument once for each one after it, and more often with every further one.
const EXTREME_ARGUMENTS_MAX: usize = 3;

impl Translator {
    /// `CASE WHEN … THEN … ELSE … END` of a number type.
    ///
    /// # Errors
    /// The reason why the engine cannot evaluate a branch.
    pub(super) fn case(&mut self, case: CaseExpr<'_>, number: NumberType) -> Translation<Value> {
        let mut choices = Vec::new();
        for (condition, result) in branches(case)? {
            let condition = self.predicate(condition)?;
            choices.push((Condition::Holds(condition), self.branch(result, number)?));
        }
        if let Some(result) = case.defresult() {
            choices.push((Condition::Always, self.branch(result, number)?));
        }
        Ok(Value::Choice(Box::new(Choice::new(number, choices))))
    }

    /// `COALESCE` of a number type.
    ///
    /// # Errors
    /// The reason why the engine cannot evaluate an argument.
    pub(super) fn coalesce(
        &mut self,
        coalesce: CoalesceExpr<'_>,
        number: NumberType,
    ) -> Translation<Value> {
        check_scalars(coalesce.as_expr())?;
        let mut branches = Vec::new();
        for argument in coalesce.args() {
            branches.push((Condition::IsPresent, self.branch(argument, number)?));
        }
        Ok(Value::Choice(Box::new(Choice::new(number, branches))))
    }

    /// `NULLIF` of a number type: `CASE WHEN a = b THEN NULL ELSE a END`.
    ///
    /// # Errors
    /// The reason why the engine cannot compare the arguments.
    pub(super) fn null_if(
        &mut self,
        comparison: OpExpr<'_>,
        number: NumberType,
    ) -> Translation<Value> {
        let value = comparison.args().get(0).ok_or("NULLIF of no argument")?;
        let is_equal = self.comparison(comparison)?;
        let null = Value::Scalar(number, self.scalar(None));
        let choices = vec![
            (Condition::Holds(is_equal), null),
            (Condition::Always, self.branch(value, number)?),
        ];
        Ok(Value::Choice(Box::new(Choice::new(number, choices))))
    }

    /// `GREATEST` or `LEAST` of a number type, which ignore NULLs. Of equal numbers the first one is the result.
    ///
    /// # Errors
    /// The reason why the engine cannot evaluate an argument.
    pub(super) fn extreme_of(
        &mut self,
        of: MinMaxExpr<'_>,
        number: NumberType,
    ) -> Translation<Value> {
        let arguments: Vec<Expr<'_>> = of.args().iter().collect();
        if arguments.len() > EXTREME_ARGUMENTS_MAX {
            return Err("GREATEST or LEAST of many arguments".into());
        }
        let comparison = match of.operator() {
            pg_sys::MinMaxOp::IS_GREATEST => Comparison::Greater,
            _ => Comparison::Less,
        };
        self.extreme_of_all(&arguments, comparison, number)
    }

    /// The extreme of some arguments, of which the last is compared with the extreme of those before it.
    fn extreme_of_all(
        &mut self,
        arguments: &[Expr<'_>],
        comparison: Comparison,
        number: NumberType,
    ) -> Translation<Value> {
        let (last, before) = arguments.split_last().ok_or("no argument")?;
        if before.is_empty() {
            return self.branch(*last, number);
        }
        let is_beyond = Predicate::Compare(
            comparison,
            self.branch(*last, number)?,
            self.extreme_of_all(before, comparison, number)?,
        );
        let choices = vec![
            (Condition::Holds(is_beyond), self.branch(*last, number)?),
            (
                Condition::IsPresent,
                self.extreme_of_all(before, comparison, number)?,
            ),
            (Condition::Always, self.branch(*last, number)?),
        ];
        Ok(Value::Choice(Box::new(Choice::new(number, choices))))
    }

    /// The value of a branch.
    fn branch(&mut self, expr: Expr<'_>, number: NumberType) -> Translation<Value> {
        let value = self.value(expr)?;
        match value.number() == number {
            true => Ok(value),
            false => Err("branches of several types".into()),
        }
    }
}

/// The conditions of a `CASE` and their results. In `CASE x WHEN …`, the conditions compare `x`.
///
/// # Errors
/// If a part has no columns and may fail. If a condition of `CASE x` may have a place for another value than `x`, as
/// another `CASE` and an array's conversion have.
pub(super) fn branches<'p>(case: CaseExpr<'p>) -> Translation<Vec<(Expr<'p>, Expr<'p>)>> {
    let mut branches = Vec::new();
    for branch in case.args() {
        let Kind::CaseWhen(branch) = branch.kind() else {
            return Err("CASE".into());
        };
        let (Some(condition), Some(result)) = (branch.expr(), branch.result()) else {
            return Err("CASE".into());
        };
        let condition = match case.arg() {
            None => condition,
            Some(compared) => about(compared, condition)?,
        };
        branches.push((condition, result));
    }
    let parts = branches
        .iter()
        .flat_map(|(condition, result)| [*condition, *result]);
    for part in parts.chain(case.defresult()) {
        check_scalars(part)?;
    }
    Ok(branches)
}

/// A condition of `CASE x` with `x` in its place.
fn about<'p>(compared: Expr<'p>, condition: Expr<'p>) -> Translation<Expr<'p>> {
    let (mut places, mut is_nested) = (0, false);
    walk::expression(condition, &mut |node, _| {
        match node.kind() {
            Kind::Other(NodeTag::T_CaseTestExpr) => places += 1,
            Kind::CaseExpr(_) | Kind::Other(NodeTag::T_ArrayCoerceExpr) => is_nested = true,
            _ => {}
        }
        false
    });
    if is_nested || places != 1 {
        return Err("a condition of CASE with more than one place for a value".into());
    }
    Ok(walk::replaced(condition, &mut |node| match node.kind() {
        Kind::Other(NodeTag::T_CaseTestExpr) => Some(compared),
        _ => None,
    }))
}

/// Refuses a choice with a part that has no columns and may fail.
pub(super) fn check_scalars(choice: Expr<'_>) -> Translation<()> {
    let has_call = walk::expression(choice, &mut |node, _| {
        let is_call = matches!(
            node.kind(),
            Kind::FuncExpr(_)
                | Kind::OpExpr(_)
                | Kind::DistinctExpr(_)
                | Kind::NullIfExpr(_)
                | Kind::ScalarArrayOpExpr(_)
                | Kind::SubPlan(_)
                | Kind::Other(NodeTag::T_CoerceViaIO | NodeTag::T_ArrayCoerceExpr)
        );
        // A subquery without columns is a parameter by now, and runs when the parameter is read first.
        let is_subquery = match node.kind() {
            Kind::Param(parameter) => parameter.paramkind() == ParamKind::PARAM_EXEC,
            _ => false,
        };
        is_subquery || is_call && !node.has_vars()
    });
    match has_call {
        true => Err("a call without columns in a choice".into()),
        false => Ok(()),
    }
}
