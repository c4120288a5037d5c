//! The order of texts in a collation.

use std::cmp::Ordering;

use pgrx::pg_sys;

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
