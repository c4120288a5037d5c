//! The web page at `/`: queries in PromQL, an explorer of metrics, the status. It is plain HTML, CSS
//! and JavaScript in the folder `gateway/page`, which the program contains.
//!
//! | module | contents |
//! |---|---|
//! | [`files`] | the files, with their media types and tags |
//! | [`routes`] | `/` and `/page/{file}`, and the headers of their answers |
//!
//! # Invariants
//! - The page loads nothing from elsewhere, and has no scripts in its HTML. The policy that it is
//!   sent with makes browsers enforce both.
//! - The page has no privileges: it uses the routes that any client uses.
//! - Clients that do not ask for HTML, such as curl, get the list of routes at `/`.

pub mod files;
pub mod routes;
