//! Conversion of text between encodings, and values of types that hold text.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;

use lanes_columnar::vector::text_length::TextUnit;
use pgrx::{IntoDatum, pg_sys};

use super::call::returned_as;
use super::datum;
use super::functions::{encoding, values};

/// Converts text from one encoding to another. It is an error if the other cannot express it.
fn transcode(text: &[u8], from: i32, to: i32) -> Cow<'_, [u8]> {
    if from == to || to == pg_sys::pg_enc::PG_SQL_ASCII as i32 || text.is_ascii() {
        return Cow::Borrowed(text);
    }
    match encoding::pg_do_encoding_conversion(text, from, to) {
        Some(converted) => Cow::Owned(converted),
        None => Cow::Borrowed(text),
    }
}

/// Whether bytes are valid text in the server's encoding, without a NUL.
pub fn is_server_text(text: &[u8]) -> bool {
    encoding::pg_verify_mbstr(encoding::GetDatabaseEncoding(), text)
}

/// Whether the server's encoding is UTF-8.
pub fn is_server_in_utf8() -> bool {
    encoding::GetDatabaseEncoding() == UTF8
}

const UTF8: i32 = pg_sys::pg_enc::PG_UTF8 as i32;

/// The unit in which `length` measures texts of the server's encoding; `None` if characters have several bytes that are
/// not those of UTF-8.
pub fn length_unit() -> Option<TextUnit> {
    let longest = encoding::pg_database_encoding_max_length();
    match (longest, is_server_in_utf8()) {
        (1, _) => Some(TextUnit::Bytes),
        (_, true) => Some(TextUnit::Utf8),
        (_, false) => None,
    }
}

/// Converts text of the server's encoding to UTF-8.
pub fn utf8_text(text: &[u8]) -> Cow<'_, [u8]> {
    transcode(text, encoding::GetDatabaseEncoding(), UTF8)
}

/// Converts UTF-8 to the server's encoding.
pub fn server_text(text: &[u8]) -> Cow<'_, [u8]> {
    transcode(text, UTF8, encoding::GetDatabaseEncoding())
}

/// Whether a text in UTF-8 is the same in the server's encoding.
pub fn is_server_utf8(text: &str) -> bool {
    text.is_ascii() || encoding::GetDatabaseEncoding() == UTF8
}

/// Converts UTF-8 to the client's encoding, from which binary input functions convert to the server's.
pub fn client_text(text: &[u8]) -> Cow<'_, [u8]> {
    transcode(text, UTF8, encoding::pg_get_client_encoding())
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

returned_as!(ServerText, "text");

pub use super::datum::allocated;

/// The jsonb that a text spells, which is in the server's encoding. It is an error if the text is not JSON.
pub fn jsonb_of_text(text: &[u8]) -> pg_sys::Datum {
    let text = std::ffi::CString::new(text).unwrap_or_default();
    values::jsonb_in(&text)
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
            let bytes = || datum::bytes_of(value, -1).to_vec();
            self.0.value.get_or_init(bytes);
        }
        Some(value)
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::JSONBOID
    }
}

returned_as!(LazyJsonb, "jsonb");
