//! The frame of all custom scan nodes.
//!
//! ```text
//! planner:   nodes/*/offer ── callbacks::path ──► path + private_data ── node::Planned ──► plan
//! executor:  PostgreSQL ── callbacks ──► Node: begin, start, next, rewind, end, explain ──► nodes/*/state
//!                              └── stand_in: PostgreSQL's own plan, if a node would use too much memory
//! ```
//! | module | content |
//! |---|---|
//! | [`node`] | the trait that each node implements |
//! | [`callbacks`] | PostgreSQL's callbacks, generic over the node |
//! | [`names`] | names by which code below the nodes recognises their paths |
//! | [`private_data`] | the lists in which plans store data |
//! | [`privilege`] | EXECUTE privileges on what the engine computes |
//! | [`stand_in`] | the plan that takes over from a node |
//!
//! Invariants:
//! - A plan contains PostgreSQL's own expressions and lists only, so it can be copied and cached.
//!   The engine's expressions are made from them before the first row is returned, when parameters
//!   have their values.
//! - Conditions are evaluated by security level, then in the order of the query. Each condition
//!   sees only rows that passed the conditions before it. So a leaky condition never sees a row
//!   that a security barrier hides, and errors are raised where PostgreSQL would raise them.
//! - An ERROR unwinds through the engine as a panic, which the callbacks' guards turn back into the
//!   ERROR. What a node owns is dropped when the node ends, or with the query's memory context.

pub mod callbacks;
pub mod names;
pub mod node;
pub mod private_data;
pub mod privilege;
pub mod stand_in;
