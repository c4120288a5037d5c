//! Translates conditions: what is true, false or NULL in each row.

use lanes_columnar::vector::members::Members;
use lanes_columnar::vector::number::{NumberType, Scalar};
use lanes_columnar::vector::predicate::Predicate;
use lanes_columnar::vector::value::Value;
use lanes_simd::Comparison;
use pgrx::pg_sys::{self, Oid};

use super::text_quals::{TextFunction, text_function};
use super::translate::{Constant, Translation, Translator, number_type, to_scalar, widened, wider};
use super::uuid_quals::uuid_comparison;
use crate::pg::names::{describe, operator_name, type_name};
use crate::pg::tree::{
    BoolExpr, BooleanTest, Expr, Kind, NullTest, OpExpr, ScalarArrayOpExpr, call_of,
};
use crate::pg::typed_datum::TypedDatum;
use crate::pg::{catalog, ports};

/// The list on the right side of `= ANY` or `<> ALL`.
struct ListOf {
    /// The type of its elements.
    element: Oid,
    /// Its elements; `None` if the list is NULL or not known yet.
    elements: Option<Vec<Constant>>,
}

impl Translator {
    /// The elements of a list to compare a value with, for `= ANY` or `<> ALL`. `None` elements are NULL or not known
    /// yet.
    ///
    /// # Errors
    /// The condition, which needs no comparison.
    pub(super) fn elements_to_compare(
        &mut self,
        elements: Option<Vec<Constant>>,
        is_any: bool,
    ) -> Result<Vec<Constant>, Predicate> {
        match elements {
            None => Err(Predicate::Scalar(self.scalar(None))),
            // Nothing is compared, so the result is not NULL even if the value is.
            Some(elements) if elements.is_empty() => {
                let decided = self.scalar(Some(Scalar(u64::from(!is_any))));
                Err(Predicate::Scalar(decided))
            }
            Some(elements) => Ok(elements),
        }
    }

    /// A condition that the engine evaluates; [`predicate`](Translator::predicate) translates its parts.
    ///
    /// # Errors
    /// Why the engine cannot evaluate it.
    pub(super) fn vector_predicate(&mut self, expr: Expr<'_>) -> Translation<Predicate> {
        let expr = expr.stripped();
        if !expr.has_vars() {
            let value = self.constant(expr)?;
            let scalar = value.map(|value| Scalar((value.datum().value() & 0xff != 0).into()));
            return Ok(Predicate::Scalar(self.scalar(scalar)));
        }
        match expr.kind() {
            Kind::Var(column) => Ok(Predicate::Bool(self.attribute(column)?)),
            Kind::BoolExpr(expression) => self.connective(expression),
            Kind::NullTest(test) => self.null_test(test),
            Kind::BooleanTest(test) => self.boolean_test(test),
            Kind::OpExpr(operation) => self.comparison(operation),
            Kind::DistinctExpr(operation) => self.distinction(operation),
            Kind::ScalarArrayOpExpr(operation) => self.member(operation),
            _ => Err(describe(expr)),
        }
    }

    /// `AND`, `OR`, `NOT`.
    fn connective(&mut self, expression: BoolExpr<'_>) -> Translation<Predicate> {
        let mut parts = Vec::new();
        for part in expression.args() {
            parts.push(self.predicate(part)?);
        }
        Ok(match expression.boolop() {
            pg_sys::BoolExprType::AND_EXPR => Predicate::And(parts),
            pg_sys::BoolExprType::OR_EXPR => Predicate::Or(parts),
            _ => Predicate::Not(Box::new(parts.remove(0))),
        })
    }

    /// `IS [NOT] TRUE`, `FALSE` or `UNKNOWN`.
    fn boolean_test(&mut self, test: BooleanTest<'_>) -> Translation<Predicate> {
        let argument = test.arg().ok_or("a test of nothing")?;
        let inner = Box::new(self.predicate(argument)?);
        let not = |predicate| Predicate::Not(Box::new(predicate));
        Ok(match test.booltesttype() {
            pg_sys::BoolTestType::IS_TRUE => Predicate::IsTrue(inner),
            pg_sys::BoolTestType::IS_NOT_TRUE => not(Predicate::IsTrue(inner)),
            pg_sys::BoolTestType::IS_FALSE => Predicate::IsFalse(inner),
            pg_sys::BoolTestType::IS_NOT_FALSE => not(Predicate::IsFalse(inner)),
            pg_sys::BoolTestType::IS_UNKNOWN => Predicate::IsUnknown(inner),
            _ => not(Predicate::IsUnknown(inner)),
        })
    }

    /// `IS [NOT] NULL`.
    fn null_test(&mut self, test: NullTest<'_>) -> Translation<Predicate> {
        if test.argisrow() {
            return Err("a test of a row for NULL".into());
        }
        let argument = test.arg().ok_or("a test of nothing")?.stripped();
        let is_null = match argument.as_var() {
            Some(column) if !self.is_given(column) => {
                Predicate::ColumnIsNull(self.attribute(column)?)
            }
            _ if argument.type_of() == pg_sys::BOOLOID => {
                Predicate::IsUnknown(Box::new(self.predicate(argument)?))
            }
            _ => Predicate::IsNull(self.value(argument)?),
        };
        Ok(match test.nulltesttype() {
            pg_sys::NullTestType::IS_NULL => is_null,
            _ => Predicate::Not(Box::new(is_null)),
        })
    }

    /// A comparison of two expressions.
    pub(super) fn comparison(&mut self, operation: OpExpr<'_>) -> Translation<Predicate> {
        let operands = operation.args();
        let (Some(left), Some(right)) = (operands.get(0), operands.get(1)) else {
            return Err("a prefix operator".into());
        };
        let (left, right) = (left.stripped(), right.stripped());
        let function = operation.opfuncid().to_u32();
        if let Some(found) = self.text_comparison(function, operation.inputcollid(), left, right)? {
            return Ok(found);
        }
        if let Some(comparison) = uuid_comparison(function) {
            return self.compared_uuid(comparison, left, right);
        }
        match function {
            pg_sys::F_BYTEAEQ => return self.bits(Comparison::Equal, left, right),
            pg_sys::F_BYTEANE => return self.bits(Comparison::NotEqual, left, right),
            _ => {}
        }
        let Some((comparison, family, types)) = ports::btree_operator(operation.opno()) else {
            return Err(format!("operator {}", operator_name(operation.opno())));
        };
        let are_numbers = matches!(
            family,
            pg_sys::INTEGER_BTREE_FAM_OID | ports::FLOAT_BTREE_FAM_OID
        );
        // Times of different types are not comparable as numbers.
        if !are_numbers && types.0 != types.1 {
            return Err("a comparison of times of different types".into());
        }
        let (a, b) = (self.value(left)?, self.value(right)?);
        let number = wider(a.number(), b.number());
        Ok(Predicate::Compare(
            comparison,
            widened(number, a),
            widened(number, b),
        ))
    }

    /// `IS DISTINCT FROM`, of numbers: NULL is distinct from each number, and not from NULL.
    fn distinction(&mut self, operation: OpExpr<'_>) -> Translation<Predicate> {
        let equal = self.comparison(operation)?;
        if !matches!(equal, Predicate::Compare(Comparison::Equal, ..)) {
            return Err("IS DISTINCT FROM with this operator".into());
        }
        let mut is_null = |operand: Option<Expr<'_>>| -> Translation<Predicate> {
            let operand = operand.ok_or("a comparison of nothing")?;
            Ok(Predicate::IsNull(self.value(operand)?))
        };
        let operands = operation.args();
        let nulls = vec![is_null(operands.get(0))?, is_null(operands.get(1))?];
        let are_equal = Predicate::IsTrue(Box::new(equal));
        let are_same = Predicate::Or(vec![are_equal, Predicate::And(nulls)]);
        Ok(Predicate::Not(Box::new(are_same)))
    }

    /// `float8send(column)` compared with bytes for equality. `lanes.is_stale_marker` distinguishes NaNs in this way.
    fn bits(
        &mut self,
        comparison: Comparison,
        left: Expr<'_>,
        right: Expr<'_>,
    ) -> Translation<Predicate> {
        let refused = || "a comparison of bytes".to_string();
        let sent = call_of(left)
            .filter(|(function, _)| function.to_u32() == pg_sys::F_FLOAT8SEND)
            .and_then(|(_, arguments)| arguments.first())
            .filter(|_| !right.has_vars())
            .ok_or_else(refused)?;
        let Value::Column(NumberType::F64, attribute) = self.value(sent)? else {
            return Err(refused());
        };
        let bytes = self.constant(right)?.and_then(TypedDatum::bytes);
        let bits = match bytes.map(|bytes| <[u8; 8]>::try_from(&bytes[..])) {
            // A float is sent with its highest byte first.
            Some(Ok(bytes)) => Some(Scalar(u64::from_be_bytes(bytes))),
            Some(Err(_)) => return Err(refused()),
            None => None,
        };
        let bits = Value::Scalar(NumberType::I64, self.scalar(bits));
        let column = Value::Column(NumberType::I64, attribute);
        Ok(Predicate::Compare(comparison, column, bits))
    }

    /// Whether an expression is an element of a list (`= ANY`), or none of them (`<> ALL`).
    fn member(&mut self, operation: ScalarArrayOpExpr<'_>) -> Translation<Predicate> {
        let operands = operation.args();
        let (Some(member), Some(array)) = (operands.get(0), operands.get(1)) else {
            return Err("a list without operands".into());
        };
        let (member, array) = (member.stripped(), array.stripped());
        let list = self.list(array)?;
        let function = operation.opfuncid().to_u32();
        if text_function(function) != TextFunction::None {
            return self.text_member(operation, member, list.elements);
        }
        if let Some(comparison) = uuid_comparison(function) {
            return self.uuid_member(comparison, operation.useOr(), member, list.elements);
        }
        self.number_member(operation, member, list)
    }

    /// The list that an array without columns is.
    fn list(&mut self, array: Expr<'_>) -> Translation<ListOf> {
        if array.has_vars() {
            return Err("an array of the row".into());
        }
        let element = catalog::element_type(catalog::base_type(array.type_of()));
        if element == pg_sys::InvalidOid {
            return Err(format!("a list of type {}", type_name(array.type_of())));
        }
        let elements = self.constant(array)?.and_then(TypedDatum::elements);
        Ok(ListOf { element, elements })
    }

    /// Whether a number is an element of a list, or none of them.
    fn number_member(
        &mut self,
        operation: ScalarArrayOpExpr<'_>,
        member: Expr<'_>,
        list: ListOf,
    ) -> Translation<Predicate> {
        let Some((comparison, _, types)) = ports::btree_operator(operation.opno()) else {
            return Err(format!("operator {}", operator_name(operation.opno())));
        };
        let is_negated = match (comparison, operation.useOr()) {
            (Comparison::Equal, true) => false,
            (Comparison::NotEqual, false) => true,
            _ => return Err("a list with this operator".into()),
        };
        let Some(number) = number_type(list.element) else {
            return Err(format!("a list of type {}", type_name(list.element)));
        };
        let value = match types.0 == types.1 {
            true => self.value(member)?,
            false => return Err("a list of another type".into()),
        };
        if value.number() != number {
            return Err("a list of another type".into());
        }
        let Some(elements) = list.elements else {
            let unknown = self.scalar(None);
            return Ok(Predicate::Scalar(unknown));
        };
        let scalars = elements
            .into_iter()
            .map(|value| self.scalar(value.map(|value| to_scalar(number, value.datum()))))
            .collect();
        let members = Members::new(scalars);
        Ok(match is_negated {
            true => Predicate::NotMember(value, members),
            false => Predicate::Member(value, members),
        })
    }
}
