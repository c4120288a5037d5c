//! The order of texts in a collation.

use std::cmp::Ordering;
use std::ffi::CStr;

use pgrx::pg_sys;

#[cfg(not(feature = "pg18"))]
unsafe extern "C-unwind" {
    /// PostgreSQL's own, which the bindings leave out.
    fn lc_collate_is_c(collation: pg_sys::Oid) -> bool;
}

/// The collation `POSIX` of PostgreSQL's catalogue. The bindings of 18 do not name it.
const POSIX_COLLATION: pg_sys::Oid = pg_sys::Oid::from_u32(951);

/// Whether the bytes of texts are known to decide their order in a collation.
pub fn is_of_bytes(collation: pg_sys::Oid) -> bool {
    if collation == pg_sys::C_COLLATION_OID || collation == POSIX_COLLATION {
        return true;
    }
    #[cfg(not(feature = "pg18"))]
    // SAFETY: a look-up by OID, which is not that of no collation; it is an ERROR if there is none.
    let is_c =
        || unsafe { pgrx::pg_sys::ffi::pg_guard_ffi_boundary(|| lc_collate_is_c(collation)) };
    // There is no such function any more. Other collations are then taken for ones of their own.
    #[cfg(feature = "pg18")]
    let is_c = || false;
    collation != pg_sys::InvalidOid && is_c()
}

/// The name of a collation that is not that of a type, quoted as in SQL.
pub fn name_beside_type(collation: pg_sys::Oid, type_of: pg_sys::Oid) -> Option<String> {
    // SAFETY: look-ups by OID; the names are in the current memory context.
    unsafe {
        if collation == pg_sys::InvalidOid || collation == pg_sys::get_typcollation(type_of) {
            return None;
        }
        let name = pg_sys::get_collation_name(collation);
        let quoted = (!name.is_null()).then(|| CStr::from_ptr(pg_sys::quote_identifier(name)));
        quoted.map(|name| name.to_string_lossy().into_owned())
    }
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
    // SAFETY: PostgreSQL only reads the bytes, which have these lengths.
    let order = unsafe {
        pg_sys::varstr_cmp(
            a.as_ptr().cast_mut().cast(),
            a.len() as i32,
            b.as_ptr().cast_mut().cast(),
            b.len() as i32,
            collation,
        )
    };
    order.cmp(&0)
}
