//! Who may do what: the file of users and certificates (`listen.web_config`), the credentials of a
//! request, and the PostgreSQL role behind them.
//!
//! ```text
//! web_config ─► settings ─► guard ─┬─► user ─► writers ─► PostgreSQL: has_table_privilege
//!      tls ──┘                watch│              └► the query API: SET LOCAL ROLE
//!                                  └─► TLS of new connections
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`web_config`] | the file: users, tokens, roles, certificates |
//! | [`tls`] | the certificates as the settings of a TLS server |
//! | [`settings`] | the file loaded, and what an address wants of it |
//! | [`user`] | a user and its PostgreSQL role |
//! | [`header`] | `Authorization`: Basic and Bearer |
//! | [`accounts`] | users and tokens; credentials that were checked before |
//! | [`hashing`] | bcrypt, a few at a time, away from the threads of requests |
//! | [`guard`] | the current users and certificates, and the check of a request |
//! | [`watch`] | reading the file again when it changes |
//! | [`writers`] | whether a user's role may insert into a table |
//! | [`metrics`] | what is counted |
//!
//! # Invariants
//! - With users or tokens in the file, every route but `/-/healthy` and `/-/ready` wants credentials,
//!   and they are checked before the body is read.
//! - No message, log line or metric has a password, a token, a hash or a header of a request.
//! - A file that cannot be used never replaces one that could.
//! - What was learnt about credentials is forgotten when the file changes.

pub mod accounts;
pub mod guard;
pub mod hashing;
pub mod header;
pub mod metrics;
pub mod settings;
pub mod tls;
pub mod user;
pub mod watch;
pub mod web_config;
pub mod writers;

pub use guard::Guard;
pub use metrics::AccessMetrics;
pub use settings::AccessSettings;
pub use user::{Caller, User};
pub use writers::Writers;
