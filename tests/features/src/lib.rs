//! No code: a list of features.
//!
//! Cargo builds a crate once for each set of its features that is asked for, and what is asked for differs between the product, the
//! tests and the developer tool: some wanted one feature more of a crate on which half of the tree stands. All of our programs depend on
//! this crate, which asks for what any of them does, so they share what is built. A crate belongs into the list when `make test` builds
//! it although `make run` had built it.
