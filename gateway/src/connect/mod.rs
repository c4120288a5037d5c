//! How sessions with PostgreSQL are opened and statements cancelled: address, role, password, TLS.
//! All parts of the gateway use this module, so they agree on what a connection string means.
//!
//! ```text
//! connection string ─► ssl_keys ─► tls ─┬─► connector ─► deliver, objects, query, restore
//!                      password ────────┘       └─► reason: why it failed, with the remedy
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`ssl_keys`] | libpq's keys of TLS, taken out of a connection string |
//! | [`tls`] | what these keys demand for a server: which modes are tried, and what is verified |
//! | [`tls_files`] | certificates and keys as the settings of a TLS client, read again when they change |
//! | [`verifier`] | the check of a server's certificate |
//! | [`password`] | the sources of a password |
//! | [`connector`] | sessions and cancel requests |
//! | [`reason`] | the words for a failed connection |
//!
//! # Invariants
//! - A server that is not on this machine is verified, unless the connection asks for less by its
//!   `sslmode`.
//! - Cancel requests use TLS as their session does.
//! - No message has a connection string, a password or a private key.

pub mod connector;
pub mod password;
pub mod reason;
pub mod ssl_keys;
pub mod tls;
pub mod tls_files;
pub mod verifier;

#[cfg(test)]
mod test_certificates;

pub use connector::{Connector, Driver};
