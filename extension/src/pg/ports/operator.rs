//! Operators and functions: which family orders what, and who may execute them.

use pgrx::pg_sys;

use super::{list_length, list_nth};

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
    let (mut family, mut input) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: a catalogue look-up.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        {
            let mut strategy = 0;
            pg_sys::get_ordering_op_properties(operator, &mut family, &mut input, &mut strategy)
                .then_some((
                    u32::from(strategy as u16) == pg_sys::BTGreaterStrategyNumber,
                    family,
                ))
        }
        #[cfg(feature = "pg18")]
        {
            let mut comparison = 0;
            pg_sys::get_ordering_op_properties(operator, &mut family, &mut input, &mut comparison)
                .then_some((comparison == pg_sys::CompareType::COMPARE_GT, family))
        }
    }
}

/// Whether a path key is descending.
///
/// # Safety
/// `key` is live.
pub unsafe fn is_descending(key: *const pg_sys::PathKey) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return (*key).pk_strategy == pg_sys::BTGreaterStrategyNumber as i32;
        #[cfg(feature = "pg18")]
        return (*key).pk_cmptype == pg_sys::CompareType::COMPARE_GT;
    }
}

#[cfg(not(feature = "pg18"))]
type Interpretation = pg_sys::OpBtreeInterpretation;
#[cfg(feature = "pg18")]
type Interpretation = pg_sys::OpIndexInterpretation;

/// Notes whether the ordering operator of a clause is descending, which older versions look up.
///
/// # Safety
/// `clause` is live, and changed by nobody else.
#[cfg_attr(not(feature = "pg18"), allow(unused_variables))]
pub unsafe fn set_reverse_sort(clause: *mut pg_sys::SortGroupClause, is_descending: bool) {
    #[cfg(feature = "pg18")]
    // SAFETY: the caller's promise.
    unsafe {
        (*clause).reverse_sort = is_descending;
    }
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
    // SAFETY: catalogue look-ups; the list lives in the current memory context.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        let found = pg_sys::get_op_btree_interpretation(operator);
        #[cfg(feature = "pg18")]
        let found = pg_sys::get_op_index_interpretation(operator);
        for index in 0..list_length(found) {
            let meaning = list_nth::<Interpretation>(found, index);
            let family = (*meaning).opfamily_id;
            if !is_number_family(family) {
                continue;
            }
            // Comparisons have the same numbers in all versions: those of a B-tree's strategies, and one more.
            #[cfg(not(feature = "pg18"))]
            let number = (*meaning).strategy;
            #[cfg(feature = "pg18")]
            let number = (*meaning).cmptype;
            let comparison = match number {
                1 => Comparison::Less,
                2 => Comparison::LessOrEqual,
                3 => Comparison::Equal,
                4 => Comparison::GreaterOrEqual,
                5 => Comparison::Greater,
                // ROWCOMPARE_NE or COMPARE_NE: the negator of an equality.
                6 => Comparison::NotEqual,
                _ => continue,
            };
            let types = ((*meaning).oplefttype, (*meaning).oprighttype);
            return Some((comparison, family, types));
        }
        None
    }
}

/// Whether a user may execute a function.
///
/// # Safety
/// A backend that may look into catalogues.
pub unsafe fn function_aclcheck(
    function: pg_sys::Oid,
    user: pg_sys::Oid,
) -> pg_sys::AclResult::Type {
    let execute = pg_sys::ACL_EXECUTE as pg_sys::AclMode;
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        {
            pg_sys::pg_proc_aclcheck(function, user, execute)
        }
        #[cfg(not(feature = "pg15"))]
        {
            pg_sys::object_aclcheck(pg_sys::ProcedureRelationId, function, user, execute)
        }
    }
}
