//! Views of the executor's structures: nodes, slots, expressions, memory contexts.
//!
//! ```text
//! callback ── ExecNode (this call's node) ──► CustomPlan: what the plan contains
//!                  │                      ──► QueryTable: an open table and the query's snapshot
//!                  ├──► Child: a plan below the node, row by row
//!                  ├──► RowContext + RowExpression, RowQual: evaluation of PostgreSQL's expressions
//!                  ├──► Slot, SlotWriter: rows in and out
//!                  ├──► RunningNode: expressions without columns, evaluated once
//!                  │       └──► ConditionTest, FunctionCall, FunctionTest: conditions and functions, for many values
//!                  └──► Memory: the place of what is allocated
//! ```
//! A callback makes an [`ExecNode`](node::ExecNode) once; everything else comes from it. The code
//! behind the callback is safe.
//!
//! | module | contents |
//! |---|---|
//! | | **Nodes** |
//! | [`node`], [`child`] | a custom scan node and its plan; a plan below it |
//! | [`parallel`] | memory that the participants of a parallel query share |
//! | [`index_scans`] | PostgreSQL's own index scans on lanes tables, adjusted as they begin |
//! | | **Rows** |
//! | [`slot`], [`table`] | slots; tables that a query reads |
//! | [`row_store`] | rows put aside: first in, first out, or sorted |
//! | [`memory`] | memory contexts as values |
//! | | **Evaluation for rows** |
//! | [`expression`] | PostgreSQL's expressions |
//! | [`scalar`] | expressions without columns, and their values until the node starts again |
//! | [`row_evaluator`], [`pair_evaluator`] | expressions for the selected rows of a vector; conditions over them and rows of another relation |
//! | [`transition`] | aggregates, by PostgreSQL's own transition functions |
//! | [`decimal_aggregate`] | aggregates of `numeric`, with integers where the values fit |
//! | [`distinct_aggregate`], [`ordered_aggregate`] | aggregates with `DISTINCT`; aggregates with `ORDER BY` |
//! | `aggregate_functions` | the functions of an aggregate |
//! | | **Evaluation for values** |
//! | `callable` | calls of functions, also of those of aggregates |
//! | [`condition_test`] | conditions on one column |
//! | [`function_call`] | calls of functions |
//! | [`equality`], [`hashed_type`] | equality and hashes of values of any type |
//! | [`value_codes`], [`value_order`] | codes and order of values of any type |
//!
//! Invariants:
//! - An `ExecNode` does not outlive its callback. All other handles may be kept in the node's state.
//!   They stay valid until the node ends, because PostgreSQL allocates what they refer to in the
//!   query's memory.
//! - A `Datum` is made by PostgreSQL or by this folder, and code outside only moves it. So functions
//!   here that read a `Datum` of a known type are safe.
//! - Functions that run once a row are inlined and call PostgreSQL through function pointers, without
//!   an error boundary. An ERROR passes them as PostgreSQL's own jump, so their callers own nothing
//!   that needs dropping. Functions whose names end in `_guarded` have a boundary, which turns the
//!   ERROR into a panic.

mod aggregate_functions;
pub(in crate::pg) mod callable;
pub mod child;
pub mod condition_test;
pub mod decimal_aggregate;
pub mod distinct_aggregate;
pub mod equality;
pub mod expression;
pub mod function_call;
pub mod hashed_type;
pub mod index_scans;
pub mod memory;
pub mod node;
pub mod ordered_aggregate;
pub mod pair_evaluator;
pub mod parallel;
pub mod row_evaluator;
pub mod row_store;
pub mod scalar;
pub mod slot;
pub mod table;
pub mod transition;
pub mod value_codes;
pub mod value_order;
