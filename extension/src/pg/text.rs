//! Text from one encoding to another.

use std::borrow::Cow;

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::Datum;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{IntoDatum, pg_sys};

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

/// Whether bytes are text as the server keeps it, without a NUL.
pub fn is_server_text(text: &[u8]) -> bool {
    // SAFETY: reads so many bytes; asked not to raise an ERROR.
    unsafe {
        let encoding = pg_sys::GetDatabaseEncoding();
        pg_sys::pg_verify_mbstr(encoding, text.as_ptr().cast(), text.len() as i32, true)
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

/// Whether UTF-8 is the server's text as it is.
pub fn is_server_utf8(text: &str) -> bool {
    // SAFETY: a plain question.
    text.is_ascii() || unsafe { pg_sys::GetDatabaseEncoding() } == UTF8
}

/// UTF-8 as the client would send it: binary input functions convert from there to the server's encoding.
pub fn client_text(text: &[u8]) -> Cow<'_, [u8]> {
    // SAFETY: a plain question.
    transcode(text, UTF8, unsafe { pg_sys::pg_get_client_encoding() })
}

/// A value of type text, in the server's encoding: no Rust string unless that is UTF-8.
pub struct ServerText(Vec<u8>);

impl ServerText {
    /// UTF-8 as the server keeps it.
    pub fn of_utf8(text: &[u8]) -> ServerText {
        ServerText(server_text(text).into_owned())
    }
}

impl IntoDatum for ServerText {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        self.0.into_datum()
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}

// SAFETY: the datum that it becomes is of type text.
unsafe impl SqlTranslatable for ServerText {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(ServerText);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("text"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("text")));
}

// SAFETY: the datum is of the type that SQL declares.
unsafe impl BoxRet for ServerText {
    unsafe fn box_into<'fcx>(self, call: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        match self.into_datum() {
            // SAFETY: the value is returned to the call.
            Some(value) => unsafe { call.return_raw_datum(value) },
            None => call.return_null(),
        }
    }
}
