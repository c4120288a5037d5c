//! Values as text and as bytes of the protocol, by the functions of their types.

use std::ffi::CString;

use pgrx::datum::Interval;
use pgrx::memcxt::PgMemoryContexts;
use pgrx::{IntoDatum, pg_sys};

use super::descriptor::Attribute;
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
        // SAFETY: catalogue look-ups of the attribute's type.
        unsafe {
            pg_sys::getTypeInputInfo(attribute.atttypid, &mut input, &mut parameter);
            pg_sys::getTypeBinaryOutputInfo(attribute.atttypid, &mut send, &mut is_varlena);
        }
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
        // SAFETY: input functions take a NUL-terminated string, send functions return a bytea. Both are read before the
        // memory context that holds them is reset.
        unsafe {
            scratch.switch_to(|_| {
                let string = pg_sys::pnstrdup(text.as_ptr().cast(), text.len());
                let value =
                    pg_sys::OidInputFunctionCall(self.input, string, self.parameter, self.modifier);
                let sent = pg_sys::OidSendFunctionCall(self.send, value);
                take(pgrx::varlena::varlena_to_byte_slice(sent.cast()));
            });
            scratch.reset();
        }
    }
}

/// A timestamp, with or without time zone, as its type prints it.
pub fn timestamp_text(is_zoned: bool, time: i64) -> String {
    TypedDatum::of_timestamp(is_zoned, time).to_text()
}

/// The timestamp with time zone that a timestamp without one is in the session's time zone.
pub fn timestamp_to_utc(time: i64) -> Option<i64> {
    let argument = pg_sys::Datum::from(time);
    // SAFETY: the function of the cast takes a timestamp and returns a timestamptz.
    let converted = unsafe {
        pgrx::direct_function_call_as_datum(pg_sys::timestamp_timestamptz, &[Some(argument)])
    }?;
    Some(converted.value() as i64)
}

/// An interval from text; text that is none is an ERROR. `None`: the text contains a NUL.
pub fn parse_interval(text: &str) -> Option<Interval> {
    let text = CString::new(text).ok()?;
    // SAFETY: the type's input function takes a C string, an OID that it ignores, and a type modifier.
    unsafe {
        pgrx::direct_function_call(
            pg_sys::interval_in,
            &[
                Some(text.as_ptr().into()),
                Some(pg_sys::InvalidOid.into()),
                Some((-1_i32).into()),
            ],
        )
    }
}

/// A number of bytes from text, with a unit or without; text that is none is an ERROR.
pub fn parse_size(text: &str) -> Option<i64> {
    // SAFETY: the function takes a text.
    unsafe { pgrx::direct_function_call(pg_sys::pg_size_bytes, &[text.into_datum()]) }
}
