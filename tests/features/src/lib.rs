//! No code: a list of features.
//!
//! Cargo builds a crate once for each set of features that is requested. The product, the tests and
//! the developer tool request different sets: one additional feature of a crate on which half of
//! the tree depends would rebuild that half. All of our programs depend on this crate, which
//! requests the union of their features, so they share the builds. Add a crate to the list if `make
//! test` builds it although `make run` had built it.
