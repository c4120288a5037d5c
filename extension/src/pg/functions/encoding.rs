//! Encodings of text.

use pgrx::pg_sys;

use super::functions;

functions! {
    /// The encoding of the database.
    fn GetDatabaseEncoding() -> i32;
    /// The most bytes of a character in the database's encoding.
    fn pg_database_encoding_max_length() -> i32;
    /// The encoding of the client.
    fn pg_get_client_encoding() -> i32;
}

/// A text in another encoding; `None` if its bytes are the same there. It is an ERROR if the other encoding cannot
/// express it.
pub fn pg_do_encoding_conversion(text: &[u8], from: i32, to: i32) -> Option<Vec<u8>> {
    // SAFETY: the source has this length and is not changed; a converted result is an allocated string that ends with a
    // NUL.
    unsafe {
        let source = text.as_ptr().cast_mut();
        let converted = pg_sys::pg_do_encoding_conversion(source, text.len() as i32, from, to);
        if converted == source {
            return None;
        }
        let bytes = std::ffi::CStr::from_ptr(converted.cast())
            .to_bytes()
            .to_vec();
        pg_sys::pfree(converted.cast());
        Some(bytes)
    }
}

/// Whether bytes are valid text in an encoding, without a NUL.
pub fn pg_verify_mbstr(encoding: i32, text: &[u8]) -> bool {
    // SAFETY: reads this number of bytes and raises no error.
    unsafe { pg_sys::pg_verify_mbstr(encoding, text.as_ptr().cast(), text.len() as i32, true) }
}
