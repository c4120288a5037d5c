//! Encodings of text.

use super::functions;

pub use super::special::{pg_do_encoding_conversion, pg_verify_mbstr};

functions! {
    /// The encoding of the database.
    fn GetDatabaseEncoding() -> i32;
    /// The most bytes of a character in the database's encoding.
    fn pg_database_encoding_max_length() -> i32;
    /// The encoding of the client.
    fn pg_get_client_encoding() -> i32;
}
