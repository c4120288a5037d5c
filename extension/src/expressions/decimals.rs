//! Translates expressions of type `numeric` into [decimals](lanes_columnar::vector::decimal): columns, constants,
//! `+ - *`, casts of integers, `CASE` and `COALESCE`.
//!
//! Not every numeric is a decimal. So each use has a general form beside it, which PostgreSQL computes, for the vectors
//! with a value that does not fit. An expression that is no decimal has the general form alone.

use lanes_columnar::aggregate::decimal::{DecimalExtremes, DecimalSums};
use lanes_columnar::aggregate::extreme::End;
use lanes_columnar::vector::choice::Condition;
use lanes_columnar::vector::decimal::column::SharedColumn;
use lanes_columnar::vector::decimal::comparison::DecimalComparison;
use lanes_columnar::vector::decimal::operation::DecimalOperation;
use lanes_columnar::vector::decimal::{Decimal, DecimalValue, PLACES_MAX};
use lanes_columnar::vector::keyed_function::ResultKey;
use lanes_columnar::vector::predicate::Predicate;
use lanes_simd::Comparison;
use pgrx::pg_sys::{self, NodeTag, Oid};

use super::choices::{branches, check_scalars};
use super::translate::{Translation, Translator};
use crate::pg::call;
use crate::pg::exec::decimal_aggregate::DecimalStates;
use crate::pg::names::{describe, function_name};
use crate::pg::numeric::Numeric;
use crate::pg::tree::{CaseExpr, CoalesceExpr, Const, Expr, Expression, Kind, List, call_of, walk};

impl Translator {
    /// An expression of type `numeric` whose values are likely to be decimals.
    ///
    /// # Errors
    /// Why it is not computed with integers.
    pub(super) fn decimal(&mut self, expr: Expr<'_>) -> Translation<DecimalValue> {
        let expr = expr.stripped();
        if expr.type_of() != pg_sys::NUMERICOID {
            return Err(describe(expr));
        }
        if !expr.has_vars() {
            return self.decimal_constant(expr).map(DecimalValue::constant);
        }
        match expr.kind() {
            Kind::Var(column) => {
                let attribute = self.attribute(column)?;
                if !self.shares_columns {
                    return Ok(DecimalValue::column(attribute));
                }
                let new = || SharedColumn::new(attribute);
                let column = self.shared_columns.entry(attribute).or_insert_with(new);
                Ok(DecimalValue::Shared(column.share()))
            }
            Kind::OpExpr(operation) => self.decimal_call(operation.opfuncid(), operation.args()),
            Kind::FuncExpr(call) => self.decimal_call(call.funcid(), call.args()),
            Kind::CaseExpr(case) => self.decimal_case(case),
            Kind::CoalesceExpr(coalesce) => self.decimal_coalesce(coalesce),
            _ => Err(describe(expr)),
        }
    }

    /// The argument of an aggregate, as [`decimal`](Self::decimal). Aggregates are added to one after the other, so
    /// they share the columns that they read.
    ///
    /// # Errors
    /// As for [`decimal`](Self::decimal).
    pub(super) fn decimal_argument(&mut self, expr: Expr<'_>) -> Translation<DecimalValue> {
        self.shares_columns = true;
        let value = self.decimal(expr);
        self.shares_columns = false;
        value
    }

    /// An expression without columns. While a query is planned, it counts as NULL unless it is a constant.
    ///
    /// # Errors
    /// Also if its evaluation may fail: PostgreSQL would not evaluate it if no row came to it.
    fn decimal_constant(&self, expr: Expr<'_>) -> Translation<Option<Decimal>> {
        if may_fail(expr) {
            return Err(describe(expr));
        }
        let Some(value) = self.constant(expr)? else {
            return Ok(None);
        };
        let decimal = value.numeric().and_then(Numeric::decimal);
        decimal.map(Some).ok_or_else(|| describe(expr))
    }

    /// The call of a function of numerics.
    fn decimal_call(
        &mut self,
        function: Oid,
        arguments: List<'_, Expr<'_>>,
    ) -> Translation<DecimalValue> {
        let function = function.to_u32();
        let argument = |index| {
            let argument: Option<Expr<'_>> = arguments.get(index);
            argument.ok_or_else(|| format!("function {}", function_name(function)))
        };
        match function {
            _ if is_of_integer(function) => Ok(DecimalValue::integer(self.value(argument(0)?)?)),
            pg_sys::F_NUMERIC_UPLUS => self.decimal(argument(0)?),
            pg_sys::F_NUMERIC_UMINUS => {
                let zero = DecimalValue::constant(Some(Decimal::default()));
                let value = self.decimal(argument(0)?)?;
                let operation = DecimalOperation::Subtract;
                Ok(DecimalValue::operation(operation, zero, value))
            }
            _ => {
                let Some(operation) = operation(function) else {
                    return Err(format!("function {}", function_name(function)));
                };
                let left = self.decimal(argument(0)?)?;
                let right = self.decimal(argument(1)?)?;
                Ok(DecimalValue::operation(operation, left, right))
            }
        }
    }

    /// `CASE WHEN … THEN … ELSE … END` of type `numeric`.
    fn decimal_case(&mut self, case: CaseExpr<'_>) -> Translation<DecimalValue> {
        if !self.has_choices {
            return Err("CASE".into());
        }
        let mut choices = Vec::new();
        for (condition, result) in branches(case)? {
            let condition = Condition::Holds(self.predicate(condition)?);
            choices.push((condition, self.decimal(result)?));
        }
        if let Some(result) = case.defresult() {
            choices.push((Condition::Always, self.decimal(result)?));
        }
        Ok(DecimalValue::choice(choices))
    }

    /// `COALESCE` of type `numeric`.
    fn decimal_coalesce(&mut self, coalesce: CoalesceExpr<'_>) -> Translation<DecimalValue> {
        if !self.has_choices {
            return Err("COALESCE".into());
        }
        check_scalars(coalesce.as_expr())?;
        let mut branches = Vec::new();
        for argument in coalesce.args() {
            branches.push((Condition::IsPresent, self.decimal(argument)?));
        }
        Ok(DecimalValue::choice(branches))
    }

    /// A number that tells the result of an expression: its value if that is a decimal, the double of which it is a
    /// rounded numeric, or the column of numerics that it is computed from. `None` if there is none.
    pub(super) fn result_key(&mut self, expr: Expr<'_>) -> Option<ResultKey> {
        // Keys are not told where a vector begins.
        let shares_columns = std::mem::take(&mut self.shares_columns);
        let before = self.progress();
        let key = self.rounded_double(expr).or_else(|_| {
            let decimal = self.decimal(expr);
            let decimal = decimal.or_else(|reason| {
                let column = only_column(expr).ok_or(reason)?;
                self.decimal(column)
            });
            decimal.map(ResultKey::Decimal)
        });
        self.shares_columns = shares_columns;
        if key.is_err() {
            self.go_back(before);
        }
        key.ok()
    }

    /// `round(double::numeric, places)`, by the double and the places.
    fn rounded_double(&mut self, expr: Expr<'_>) -> Translation<ResultKey> {
        let refusal = || describe(expr);
        let of_round = pg_sys::F_ROUND_NUMERIC_INT4;
        let places = argument(expr, of_round, 1).and_then(|places| places.stripped().as_const());
        let places = places.and_then(Const::value).ok_or_else(refusal)?;
        let places = u8::try_from(call::int4(places.datum())).map_err(|_| refusal())?;
        if places > PLACES_MAX {
            return Err(refusal());
        }
        let converted = argument(expr, of_round, 0);
        let double = converted.and_then(|it| argument(it, pg_sys::F_NUMERIC_FLOAT8, 0));
        let double = double.ok_or_else(refusal)?;
        Ok(ResultKey::Rounded(self.value(double)?, places))
    }

    /// The same condition, computed with integers where the values fit; `general` itself if it compares no decimals.
    pub(super) fn decimal_comparison(&mut self, expr: Expr<'_>, general: Predicate) -> Predicate {
        let Some(operation) = expr.stripped().as_op() else {
            return general;
        };
        let Some(comparison) = comparison(operation.opfuncid().to_u32()) else {
            return general;
        };
        let mut sides = operation.args().iter();
        let (Some(left), Some(right)) = (sides.next(), sides.next()) else {
            return general;
        };
        let before = self.progress();
        // A condition is not told where a vector begins.
        let shares_columns = std::mem::take(&mut self.shares_columns);
        let sides = self.decimal(left).and_then(|left| {
            let right = self.decimal(right)?;
            Ok((left, right))
        });
        self.shares_columns = shares_columns;
        match sides {
            Ok((left, right)) => {
                let comparison = DecimalComparison::new(comparison, left, right, general);
                Predicate::Decimal(comparison)
            }
            Err(_) => {
                self.go_back(before);
                general
            }
        }
    }
}

/// An argument of an expression, if that is a call of a function.
fn argument(expr: Expr<'_>, function: u32, index: usize) -> Option<Expr<'_>> {
    let call = expr.stripped().as_func()?;
    (call.funcid().to_u32() == function).then(|| call.args().get(index))?
}

/// The column of type `numeric` that an expression reads, if it reads no other.
fn only_column(expr: Expr<'_>) -> Option<Expr<'_>> {
    let mut columns = Vec::new();
    walk::expression(expr, &mut |node, _| {
        columns.extend(node.as_var().map(|_| node));
        false
    });
    let (first, others) = columns.split_first()?;
    let is_first = |column: &Expr<'_>| column.equals(*first);
    (first.type_of() == pg_sys::NUMERICOID && others.iter().all(is_first)).then_some(*first)
}

/// Whether the evaluation of an expression without columns may be an error. Sums and products of numerics never are,
/// within the bounds of what a decimal may be.
fn may_fail(expr: Expr<'_>) -> bool {
    walk::expression(expr, &mut |node, _| match call_of(node) {
        Some((function, _)) => {
            let function = function.to_u32();
            let is_sign = matches!(function, pg_sys::F_NUMERIC_UPLUS | pg_sys::F_NUMERIC_UMINUS);
            !is_sign && !is_of_integer(function) && operation(function).is_none()
        }
        None => matches!(
            node.kind(),
            Kind::DistinctExpr(_)
                | Kind::NullIfExpr(_)
                | Kind::ScalarArrayOpExpr(_)
                | Kind::Other(
                    NodeTag::T_CoerceViaIO | NodeTag::T_ArrayCoerceExpr | NodeTag::T_CoerceToDomain
                )
        ),
    })
}

/// Whether a function converts an integer to a numeric.
fn is_of_integer(function: u32) -> bool {
    matches!(
        function,
        pg_sys::F_NUMERIC_INT2 | pg_sys::F_NUMERIC_INT4 | pg_sys::F_NUMERIC_INT8
    )
}

/// The operation of a function of two numerics.
fn operation(function: u32) -> Option<DecimalOperation> {
    match function {
        pg_sys::F_NUMERIC_ADD => Some(DecimalOperation::Add),
        pg_sys::F_NUMERIC_SUB => Some(DecimalOperation::Subtract),
        pg_sys::F_NUMERIC_MUL => Some(DecimalOperation::Multiply),
        _ => None,
    }
}

/// The comparison that a function of two numerics makes.
fn comparison(function: u32) -> Option<Comparison> {
    match function {
        pg_sys::F_NUMERIC_EQ => Some(Comparison::Equal),
        pg_sys::F_NUMERIC_NE => Some(Comparison::NotEqual),
        pg_sys::F_NUMERIC_LT => Some(Comparison::Less),
        pg_sys::F_NUMERIC_LE => Some(Comparison::LessOrEqual),
        pg_sys::F_NUMERIC_GT => Some(Comparison::Greater),
        pg_sys::F_NUMERIC_GE => Some(Comparison::GreaterOrEqual),
        _ => None,
    }
}

fn extreme(end: End) -> DecimalStates {
    DecimalStates::Extreme(end, DecimalExtremes::new(end))
}

/// The states of an aggregate of decimals, by its OID; `None` if there are none.
pub(super) fn states(aggregate: u32) -> Option<DecimalStates> {
    match aggregate {
        pg_sys::F_SUM_NUMERIC => Some(DecimalStates::Sum(DecimalSums::default())),
        pg_sys::F_AVG_NUMERIC => Some(DecimalStates::Average(DecimalSums::default())),
        pg_sys::F_MIN_NUMERIC => Some(extreme(End::Minimum)),
        pg_sys::F_MAX_NUMERIC => Some(extreme(End::Maximum)),
        _ => None,
    }
}
