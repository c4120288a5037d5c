//! Operators: which family orders what.

use pgrx::pg_sys;

use crate::pg::functions::catalog;

/// The B-tree family of `real` and `double precision`.
pub const FLOAT_BTREE_FAM_OID: pg_sys::Oid = pg_sys::Oid::from_u32(1970);
/// The B-tree family of dates and timestamps.
const DATETIME_BTREE_FAM_OID: pg_sys::Oid = pg_sys::Oid::from_u32(434);
/// The B-tree family of times of day.
const TIME_BTREE_FAM_OID: pg_sys::Oid = pg_sys::Oid::from_u32(1996);

/// The B-tree family of `numeric`.
const NUMERIC_BTREE_FAM_OID: pg_sys::Oid = pg_sys::Oid::from_u32(1988);

/// Whether an operator family orders numbers or times, as the engine does.
pub fn is_number_family(family: pg_sys::Oid) -> bool {
    matches!(
        family,
        pg_sys::INTEGER_BTREE_FAM_OID
            | FLOAT_BTREE_FAM_OID
            | DATETIME_BTREE_FAM_OID
            | TIME_BTREE_FAM_OID
    )
}

/// Columns that are ordered as items.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ItemFamily {
    /// `text` and `varchar`, by a collation.
    Text,
    /// `char(n)`, by a collation.
    Padded,
    /// `bytea`
    Bytes,
    /// `numeric`
    Numeric,
}

/// What an operator family orders, if that is items whose order the engine knows.
pub fn item_family(family: pg_sys::Oid) -> Option<ItemFamily> {
    Some(match family {
        pg_sys::TEXT_BTREE_FAM_OID => ItemFamily::Text,
        pg_sys::BPCHAR_BTREE_FAM_OID => ItemFamily::Padded,
        pg_sys::BYTEA_BTREE_FAM_OID => ItemFamily::Bytes,
        NUMERIC_BTREE_FAM_OID => ItemFamily::Numeric,
        _ => return None,
    })
}

/// Whether an ordering operator is descending, and its B-tree family.
pub fn ordering_operator(operator: pg_sys::Oid) -> Option<(bool, pg_sys::Oid)> {
    catalog::get_ordering_op_properties(operator)
}

/// What a comparison operator means in one of the families of numbers and times: the comparison, the family, and the
/// types of its sides.
pub fn btree_operator(
    operator: pg_sys::Oid,
) -> Option<(
    lanes_simd::Comparison,
    pg_sys::Oid,
    (pg_sys::Oid, pg_sys::Oid),
)> {
    use lanes_simd::Comparison;
    catalog::comparison_meanings(operator)
        .into_iter()
        .filter(|meaning| is_number_family(meaning.family))
        .find_map(|meaning| {
            let comparison = match meaning.number {
                1 => Comparison::Less,
                2 => Comparison::LessOrEqual,
                3 => Comparison::Equal,
                4 => Comparison::GreaterOrEqual,
                5 => Comparison::Greater,
                // ROWCOMPARE_NE or COMPARE_NE: the negator of an equality.
                6 => Comparison::NotEqual,
                _ => return None,
            };
            Some((comparison, meaning.family, meaning.types))
        })
}
