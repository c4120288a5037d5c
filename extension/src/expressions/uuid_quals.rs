//! Conditions on columns of uuid. The values that they are compared with are part of the predicate: no scalar of the
//! scan has 16 bytes.

use lanes_columnar::vector::number::Scalar;
use lanes_columnar::vector::predicate::{Bytes16Predicate, Predicate, flip};
use lanes_simd::Comparison;
use pgrx::pg_sys;

use super::translate::{Constant, Translation, Translator};
use crate::pg::datum;

/// The comparison of two uuids that a function is.
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

/// Whether an expression is a column of uuid, or of a domain over it.
///
/// # Safety
/// `node` is a live expression.
pub unsafe fn is_uuid_column(node: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        (*node).type_ == pg_sys::NodeTag::T_Var
            && pg_sys::getBaseType((*node.cast::<pg_sys::Var>()).vartype) == pg_sys::UUIDOID
    }
}

impl Translator {
    /// A column of uuid compared with a scalar.
    ///
    /// # Safety
    /// Live expressions over one table, both of uuid.
    pub unsafe fn compared_uuid(
        &mut self,
        comparison: Comparison,
        left: *mut pg_sys::Node,
        right: *mut pg_sys::Node,
    ) -> Translation<Predicate> {
        // SAFETY: the caller's promise.
        unsafe {
            let (column, scalar, comparison) = match (is_uuid_column(left), is_uuid_column(right)) {
                (true, false) if !pg_sys::contain_var_clause(right) => (left, right, comparison),
                (false, true) if !pg_sys::contain_var_clause(left) => {
                    (right, left, flip(comparison))
                }
                _ => return Err("a comparison of two uuids of the row".into()),
            };
            let attribute = self.attribute(column)?;
            Ok(match self.constant(scalar)? {
                Some(value) => Predicate::Bytes16(Bytes16Predicate::compare(
                    attribute,
                    comparison,
                    datum::bytes16(value),
                )),
                // NULL, or not known yet.
                None => Predicate::Scalar(self.scalar(None)),
            })
        }
    }

    /// Whether a column of uuid is one of some elements (`= ANY`), or none of them (`<> ALL`).
    ///
    /// # Safety
    /// A live expression over one table; the elements are uuids.
    pub unsafe fn uuid_member(
        &mut self,
        comparison: Comparison,
        any: bool,
        column: *mut pg_sys::Node,
        elements: Option<Vec<Constant>>,
    ) -> Translation<Predicate> {
        let fits = match any {
            true => comparison == Comparison::Equal,
            false => comparison == Comparison::NotEqual,
        };
        // SAFETY: the caller's promise.
        unsafe {
            if !fits || !is_uuid_column(column) {
                return Err("a list of uuids with this operator".into());
            }
            let attribute = self.attribute(column)?;
            let Some(elements) = elements else {
                return Ok(Predicate::Scalar(self.scalar(None)));
            };
            if elements.is_empty() {
                // Nothing is compared, so that not even NULL makes a difference.
                let decided = self.scalar(Some(Scalar(u64::from(!any))));
                return Ok(Predicate::Scalar(decided));
            }
            let has_null = elements.iter().any(Option::is_none);
            let values = elements.iter().flatten().map(|d| datum::bytes16(*d));
            let found = Predicate::Bytes16(Bytes16Predicate::one_of(
                attribute,
                values.collect(),
                has_null,
            ));
            Ok(match any {
                true => found,
                false => Predicate::Not(Box::new(found)),
            })
        }
    }
}
