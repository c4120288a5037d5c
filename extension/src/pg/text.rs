//! Conversion of text between encodings, and values of types that hold text.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;

use lanes_columnar::vector::text_length::TextUnit;
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::Datum;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{IntoDatum, pg_sys};

use super::executor;

/// Converts text from one encoding to another. It is an error if the other cannot express it.
fn transcode(text: &[u8], from: i32, to: i32) -> Cow<'_, [u8]> {
    if from == to || to == pg_sys::pg_enc::PG_SQL_ASCII as i32 || text.is_ascii() {
        return Cow::Borrowed(text);
    }
    // SAFETY: the source has this length and is not changed; a converted result is an allocated string that ends with a
    // NUL.
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

/// Whether bytes are valid text in the server's encoding, without a NUL.
pub fn is_server_text(text: &[u8]) -> bool {
    // SAFETY: reads this number of bytes and raises no error.
    unsafe {
        let encoding = pg_sys::GetDatabaseEncoding();
        pg_sys::pg_verify_mbstr(encoding, text.as_ptr().cast(), text.len() as i32, true)
    }
}

/// Whether the server's encoding is UTF-8.
pub fn is_server_in_utf8() -> bool {
    // SAFETY: reads a setting of the database.
    unsafe { pg_sys::GetDatabaseEncoding() == UTF8 }
}

const UTF8: i32 = pg_sys::pg_enc::PG_UTF8 as i32;

/// The unit in which `length` measures texts of the server's encoding; `None` if characters have several bytes that are
/// not those of UTF-8.
pub fn length_unit() -> Option<TextUnit> {
    // SAFETY: reads the encoding of this session's database.
    let longest = unsafe { pg_sys::pg_database_encoding_max_length() };
    match (longest, is_server_in_utf8()) {
        (1, _) => Some(TextUnit::Bytes),
        (_, true) => Some(TextUnit::Utf8),
        (_, false) => None,
    }
}

/// Converts text of the server's encoding to UTF-8.
pub fn utf8_text(text: &[u8]) -> Cow<'_, [u8]> {
    // SAFETY: a read of a setting.
    transcode(text, unsafe { pg_sys::GetDatabaseEncoding() }, UTF8)
}

/// Converts UTF-8 to the server's encoding.
pub fn server_text(text: &[u8]) -> Cow<'_, [u8]> {
    // SAFETY: a read of a setting.
    transcode(text, UTF8, unsafe { pg_sys::GetDatabaseEncoding() })
}

/// Whether a text in UTF-8 is the same in the server's encoding.
pub fn is_server_utf8(text: &str) -> bool {
    // SAFETY: a read of a setting.
    text.is_ascii() || unsafe { pg_sys::GetDatabaseEncoding() } == UTF8
}

/// Converts UTF-8 to the client's encoding, from which binary input functions convert to the server's.
pub fn client_text(text: &[u8]) -> Cow<'_, [u8]> {
    // SAFETY: a read of a setting.
    transcode(text, UTF8, unsafe { pg_sys::pg_get_client_encoding() })
}

/// A value of type text in the server's encoding. It is a Rust string only if that is UTF-8.
pub struct ServerText(Vec<u8>);

impl ServerText {
    /// The value of a text in UTF-8.
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

// SAFETY: the datum is of type text.
unsafe impl SqlTranslatable for ServerText {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(ServerText);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("text"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("text")));
}

// SAFETY: the datum is of type text, as SQL declares.
unsafe impl BoxRet for ServerText {
    unsafe fn box_into<'fcx>(self, call: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        match self.into_datum() {
            // SAFETY: the datum is of the call's result type.
            Some(value) => unsafe { call.return_raw_datum(value) },
            None => call.return_null(),
        }
    }
}

/// A copy of bytes that are a value of a type by reference, in the current memory context.
pub fn allocated(bytes: &[u8]) -> pg_sys::Datum {
    // SAFETY: the memory is as large as the bytes.
    unsafe {
        let value = pg_sys::palloc(bytes.len()).cast::<u8>();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value, bytes.len());
        pg_sys::Datum::from(value)
    }
}

/// The jsonb that a text spells, which is in the server's encoding. It is an error if the text is not JSON.
pub fn jsonb_of_text(text: &[u8]) -> pg_sys::Datum {
    let text = std::ffi::CString::new(text).unwrap_or_default();
    let argument = pg_sys::Datum::from(text.as_ptr());
    // SAFETY: the input function of jsonb takes a C string and copies what it keeps.
    let value = unsafe { pgrx::direct_function_call_as_datum(pg_sys::jsonb_in, &[Some(argument)]) };
    value.expect("the input function of jsonb returns a value")
}

/// A text that becomes a value of type jsonb when its row is returned. Copies are converted once: the rows after the
/// first copy its value.
#[derive(Clone)]
pub struct LazyJsonb(Rc<SharedText>);

struct SharedText {
    text: String,
    /// Converts the text to a jsonb in the current memory context.
    convert: fn(&str) -> pg_sys::Datum,
    /// The value, if it was needed while there were other copies.
    value: OnceCell<Vec<u8>>,
}

impl LazyJsonb {
    /// The jsonb that a function makes of a text, in the current memory context.
    pub fn new(text: String, convert: fn(&str) -> pg_sys::Datum) -> LazyJsonb {
        LazyJsonb(Rc::new(SharedText {
            text,
            convert,
            value: OnceCell::new(),
        }))
    }
}

impl IntoDatum for LazyJsonb {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        if let Some(value) = self.0.value.get() {
            return Some(allocated(value));
        }
        let value = (self.0.convert)(&self.0.text);
        if Rc::strong_count(&self.0) > 1 {
            // SAFETY: a jsonb that was just made, whose length stands in its header.
            let bytes = unsafe { executor::bytes(value, -1) };
            self.0.value.get_or_init(|| bytes.to_vec());
        }
        Some(value)
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::JSONBOID
    }
}

// SAFETY: the datum is of type jsonb.
unsafe impl SqlTranslatable for LazyJsonb {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(LazyJsonb);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("jsonb"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("jsonb")));
}

// SAFETY: the datum is of type jsonb, as SQL declares.
unsafe impl BoxRet for LazyJsonb {
    unsafe fn box_into<'fcx>(self, call: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        match self.into_datum() {
            // SAFETY: the datum is of the call's result type.
            Some(value) => unsafe { call.return_raw_datum(value) },
            None => call.return_null(),
        }
    }
}
