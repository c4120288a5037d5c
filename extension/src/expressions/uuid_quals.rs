//! Translates conditions on columns of uuid. The predicate holds the values that a column is compared with, because a
//! scalar of the scan has only 8 bytes.

use lanes_columnar::vector::predicate::{Bytes16Predicate, Predicate, flip};
use lanes_simd::Comparison;
use pgrx::pg_sys;

use super::translate::{Constant, Translation, Translator};
use crate::pg::catalog;
use crate::pg::tree::{Expr, Var};
use crate::pg::typed_datum::TypedDatum;

/// The comparison of two uuids that a function, by its OID, computes.
pub fn uuid_comparison(function: u32) -> Option<Comparison> {
    Some(match function {
        pg_sys::F_UUID_EQ => Comparison::Equal,
        pg_sys::F_UUID_NE => Comparison::NotEqual,
        pg_sys::F_UUID_LT => Comparison::Less,
        pg_sys::F_UUID_LE => Comparison::LessOrEqual,
        pg_sys::F_UUID_GT => Comparison::Greater,
        pg_sys::F_UUID_GE => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// The column of uuid, or of a domain over it, that an expression is.
pub fn uuid_column(expr: Expr<'_>) -> Option<Var<'_>> {
    expr.as_var()
        .filter(|column| catalog::base_type(column.vartype()) == pg_sys::UUIDOID)
}

impl Translator {
    /// A comparison of a column of uuid with a scalar.
    ///
    /// # Errors
    /// If neither side is a scalar.
    pub(super) fn compared_uuid(
        &mut self,
        comparison: Comparison,
        left: Expr<'_>,
        right: Expr<'_>,
    ) -> Translation<Predicate> {
        let (column, scalar, comparison) = match (uuid_column(left), uuid_column(right)) {
            (Some(column), None) if !right.has_vars() => (column, right, comparison),
            (None, Some(column)) if !left.has_vars() => (column, left, flip(comparison)),
            _ => return Err("a comparison of two uuids of the row".into()),
        };
        let attribute = self.attribute(column)?;
        Ok(match self.constant(scalar)?.and_then(TypedDatum::uuid) {
            Some(uuid) => {
                Predicate::Bytes16(Bytes16Predicate::compare(attribute, comparison, uuid))
            }
            // The scalar is NULL or not known yet.
            None => Predicate::Scalar(self.scalar(None)),
        })
    }

    /// Whether a column of uuid is an element of a list (`= ANY`), or none of them (`<> ALL`). The list is `None` if
    /// it is NULL or not known yet.
    ///
    /// # Errors
    /// If the operator is another one.
    pub(super) fn uuid_member(
        &mut self,
        comparison: Comparison,
        is_any: bool,
        member: Expr<'_>,
        elements: Option<Vec<Constant>>,
    ) -> Translation<Predicate> {
        let wanted = match is_any {
            true => Comparison::Equal,
            false => Comparison::NotEqual,
        };
        let column = uuid_column(member)
            .filter(|_| comparison == wanted)
            .ok_or("a list of uuids with this operator")?;
        let attribute = self.attribute(column)?;
        let elements = match self.elements_to_compare(elements, is_any) {
            Ok(elements) => elements,
            Err(decided) => return Ok(decided),
        };
        let has_null = elements.iter().any(Option::is_none);
        let uuids = elements.into_iter().flatten().filter_map(TypedDatum::uuid);
        let uuids = uuids.collect();
        let found = Predicate::Bytes16(Bytes16Predicate::one_of(attribute, uuids, has_null));
        Ok(match is_any {
            true => found,
            false => Predicate::Not(Box::new(found)),
        })
    }
}
