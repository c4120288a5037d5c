//! The order of texts in a collation.

use std::cmp::Ordering;

use pgrx::pg_sys;

use super::functions::catalog;

/// The collation `POSIX` of PostgreSQL's catalogue. The bindings of 18 do not name it.
const POSIX_COLLATION: pg_sys::Oid = pg_sys::Oid::from_u32(951);

/// Whether the bytes of texts are known to decide their order in a collation.
pub fn is_of_bytes(collation: pg_sys::Oid) -> bool {
    if collation == pg_sys::C_COLLATION_OID || collation == POSIX_COLLATION {
        return true;
    }
    // Collations of which PostgreSQL does not tell it are taken for ones of their own.
    collation != pg_sys::InvalidOid && catalog::lc_collate_is_c(collation)
}

/// The name of a collation that is not that of a type, quoted as in SQL.
pub fn name_beside_type(collation: pg_sys::Oid, type_of: pg_sys::Oid) -> Option<String> {
    if collation == pg_sys::InvalidOid || collation == catalog::get_typcollation(type_of) {
        return None;
    }
    catalog::quote_identifier(catalog::get_collation_name(collation)?)
}

/// Compares two texts as [`compare`] does, by a collation's number.
pub fn compare_by_number(a: &[u8], b: &[u8], collation: u32) -> Ordering {
    compare(a, b, pg_sys::Oid::from_u32(collation))
}

/// Compares two texts, given by the bytes after their headers, as the operators of `text` do.
pub fn compare(a: &[u8], b: &[u8], collation: pg_sys::Oid) -> Ordering {
    // In the collation C the bytes decide.
    if collation == pg_sys::C_COLLATION_OID {
        return a.cmp(b);
    }
    catalog::varstr_cmp(a, b, collation).cmp(&0)
}
