//! What the formats of events share.
//!
//! | module | contents |
//! |---|---|
//! | [`content_type`] | the format of a body, by its `Content-Type` |
//! | [`malformed`] | what is wrong with a body, as the text of a 400 |
//! | [`time_text`] | timestamps and dates written as text |

pub mod content_type;
pub mod malformed;
#[cfg(test)]
pub(crate) mod test_support;
pub mod time_text;

pub use content_type::Format;
pub use malformed::Malformed;
