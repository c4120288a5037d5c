//! Typed, borrowed views of PostgreSQL's query trees, expressions and planner structures.
//!
//! ```text
//! callback's raw pointer ──► View::at (unsafe, once a callback) ──► accessors (safe) ──► views of its parts
//! ```
//! | module | views |
//! |---|---|
//! | [`tag`] | nodes by their tags |
//! | [`view`] | what a view is, and the macro that declares one |
//! | `arrays` | arrays of the planner's structures |
//! | [`list`](mod@list) | lists of nodes, of integers and of OIDs |
//! | [`expression`] | an expression, its kind, and what PostgreSQL computes about it |
//! | [`operands`] | the kinds of expressions |
//! | [`query`] | a query and its clauses |
//! | [`window`] | windows and calls of their functions |
//! | [`planner`], [`path`] | the planner's state, relations, conditions and path keys; paths |
//! | [`partial`] | aggregation of parts of a relation: transition states, and children |
//! | [`plan`], [`statement`] | finished plans, statements that need none |
//! | [`walk`] | visiting every node of a tree |
//! | [`make`](mod@make), [`parse`] | new nodes; expressions as the parser makes them of others |
//! | [`relation_memo`] | what was computed about a relation's quals, until the planner's memory is freed |
//!
//! Invariants:
//! - A view is a pointer with a lifetime: [`Copy`], one word, and it never owns memory. Its lifetime is at most that of
//!   the callback that made it. No memory context that is current during a callback is reset before the callback
//!   returns, so the nodes that a safe function allocates live as long as the views.
//! - Accessors copy fields out and never return a Rust reference into a node. PostgreSQL may therefore change a node
//!   between two reads.
//! - A setter changes the node for all who see it. A list that grows may move, so it is set again in the node that it
//!   belongs to.
//! - A node becomes one of its kind only by its tag ([`Node::downcast`]).
//! - An ERROR of a function called here arrives as a panic, which the callback's guard turns back into the ERROR.

mod arrays;
pub mod expression;
pub mod list;
pub mod make;
pub mod operands;
pub mod parse;
pub mod partial;
pub mod path;
pub mod plan;
pub mod planner;
pub mod query;
pub mod relation_memo;
pub mod statement;
pub mod tag;
pub mod view;
pub mod walk;
pub mod window;

pub use expression::{AGGREGATES_WHOLE, Expr, Expression, call_of};
pub use list::{Integers, List, Oids};
pub use operands::*;
pub use path::*;
pub use plan::*;
pub use planner::*;
pub use query::*;
pub use statement::*;
pub use tag::{JoinKind, Kind, Node};
pub use view::{View, plan_field, plan_node};
pub use window::*;
