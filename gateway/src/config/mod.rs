//! Settings, from their sources to typed values.
//!
//! [`setting`] is the one table of all settings: each row is a TOML key, a flag, an environment variable, a default and a help text.
//! [`source`] gathers their values (flag, then environment, then file, then default), [`value`] reads sizes and durations, and
//! [`settings`] makes the typed whole, checking how values relate.

pub mod setting;
pub mod settings;
pub mod source;
pub mod value;

pub use settings::Settings;
pub use source::{Origin, Sources};
