//! Settings, from their sources to typed values.
//!
//! | module | contents |
//! |---|---|
//! | [`setting`] | the table of all settings: TOML key, flag, environment variable, default and help |
//! | [`source`] | the values as text: from the flag, the environment, the file, or the default, in this order |
//! | [`value`] | parsing of sizes and durations |
//! | [`settings`] | the typed settings, checked individually and against each other |
//! | `database` | the settings of connections to PostgreSQL |

mod database;
pub mod setting;
pub mod settings;
pub mod source;
pub mod value;

pub use settings::Settings;
pub use source::{Origin, Sources};
