//! Text from one encoding to another.

use std::borrow::Cow;

use pgrx::pg_sys;

/// Text of one encoding in another, which raises the ERROR for what it cannot express.
fn transcode(text: &[u8], from: i32, to: i32) -> Cow<'_, [u8]> {
    if from == to || to == pg_sys::pg_enc::PG_SQL_ASCII as i32 || text.is_ascii() {
        return Cow::Borrowed(text);
    }
    // SAFETY: the source is read for its length and not changed; a converted result is a NUL-terminated string of its own.
    unsafe {
        let source = text.as_ptr().cast_mut();
        let converted = pg_sys::pg_do_encoding_conversion(source, text.len() as i32, from, to);
        if converted == source {
            return Cow::Borrowed(text);
        }
        let bytes = std::ffi::CStr::from_ptr(converted.cast())
            .to_bytes()
            .to_vec();
        pg_sys::pfree(converted.cast());
        Cow::Owned(bytes)
    }
}

const UTF8: i32 = pg_sys::pg_enc::PG_UTF8 as i32;

/// The server's text as UTF-8.
pub fn utf8_text(text: &[u8]) -> Cow<'_, [u8]> {
    // SAFETY: a plain question.
    transcode(text, unsafe { pg_sys::GetDatabaseEncoding() }, UTF8)
}

/// UTF-8 as the server keeps it.
pub fn server_text(text: &[u8]) -> Cow<'_, [u8]> {
    // SAFETY: a plain question.
    transcode(text, UTF8, unsafe { pg_sys::GetDatabaseEncoding() })
}

/// UTF-8 as the client would send it: binary input functions convert from there to the server's encoding.
pub fn client_text(text: &[u8]) -> Cow<'_, [u8]> {
    // SAFETY: a plain question.
    transcode(text, UTF8, unsafe { pg_sys::pg_get_client_encoding() })
}
