//! Values as text and as bytes of the protocol, by the functions of their types.

use std::ffi::CString;

use pgrx::datum::Interval;
use pgrx::memcxt::PgMemoryContexts;
use pgrx::pg_sys;

use super::descriptor::Attribute;
use super::executor;
use super::functions::{Place, catalog, values};
use super::typed_datum::TypedDatum;

/// The functions that read values of an attribute from text and send them.
pub struct TextType {
    input: pg_sys::Oid,
    parameter: pg_sys::Oid,
    modifier: i32,
    send: pg_sys::Oid,
}

impl TextType {
    /// The functions of an attribute's type; an ERROR if it lacks one.
    pub fn of(attribute: &Attribute) -> TextType {
        let (mut input, mut parameter, mut send) =
            (pg_sys::InvalidOid, pg_sys::InvalidOid, pg_sys::InvalidOid);
        let mut is_varlena = false;
        let type_of = attribute.atttypid;
        catalog::getTypeInputInfo(type_of, Place(&mut input), Place(&mut parameter));
        catalog::getTypeBinaryOutputInfo(type_of, Place(&mut send), Place(&mut is_varlena));
        TextType {
            input,
            parameter,
            modifier: attribute.atttypmod,
            send,
        }
    }

    /// Reads a value from text without a NUL and calls `take` with the bytes that the type sends
    /// for it. `scratch` holds what the functions allocate and is empty afterwards.
    pub fn resend(&self, text: &[u8], scratch: &mut PgMemoryContexts, take: impl FnOnce(&[u8])) {
        let input = (self.input, self.parameter, self.modifier);
        executor::in_memory(scratch, || values::resend(text, input, self.send, take));
    }
}

/// A timestamp, with or without time zone, as its type prints it.
pub fn timestamp_text(is_zoned: bool, time: i64) -> String {
    TypedDatum::of_timestamp(is_zoned, time).to_text()
}

/// The timestamp with time zone that a timestamp without one is in the session's time zone.
pub fn timestamp_to_utc(time: i64) -> i64 {
    values::timestamp_timestamptz(time)
}

/// An interval from text; text that is none is an ERROR. `None`: the text contains a NUL.
pub fn parse_interval(text: &str) -> Option<Interval> {
    let text = CString::new(text).ok()?;
    Some(values::interval_in(&text, pg_sys::InvalidOid, -1))
}

/// A number of bytes from text, with a unit or without; text that is none is an ERROR.
pub fn parse_size(text: &str) -> i64 {
    values::pg_size_bytes(text)
}
