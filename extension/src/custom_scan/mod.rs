//! The vectorised executor, as custom scan nodes that the planner may choose.
//!
//! ```text
//! planner:   offer ── translate (can it be done? if not, why not) ──► LanesScan │ LanesTopN │ LanesLatest │
//!            LanesAggregate │ LanesWindow, with cost
//! executor:  vector_source ── quals ──► selection ── scan_state: a slot a row
//!                                                ├── top_n_state: the first rows of an order ──► kept_rows: a slot a row
//!                                                ├── latest_state: the first row of each group ──► kept_rows
//!                                                ├── aggregate_state: states a group ──► a slot a group
//!                                                └── window_state: in the order of time, a state a partition ──► a slot a row
//! ```
//!
//! The cast, in that order:
//! - [`settings`]: `lanes.vectorize`. [`require`]: what `require` demands, and reasons for not vectorising.
//! - [`node`]: what every node is: PostgreSQL's callbacks, once, and the methods behind them. [`remembered`]: what plans keep.
//! - [`offer`]: the planner's hooks: which paths are offered; [`aggregate_offer`]: aggregations; [`read_share`]: of how many rows.
//!   [`plan`]: their plans.
//! - [`translate`], [`number_functions`], [`text_quals`], [`text_test`], [`uuid_quals`], [`buckets`],
//!   [`epoch_bucket`], [`aggregate_call`], [`own_aggregate`], [`percentile`]: PostgreSQL's expressions as the engine's.
//! - [`value_quals`], [`value_test`]: conditions on one column that are not the engine's: PostgreSQL evaluates them,
//!   once a value.
//! - [`scalar`]: expressions without columns, evaluated once a scan. [`call_memory`]: memory of functions called value by value.
//! - [`sort_key`]: what rows are ordered by. [`top_n_plan`]: the path that gives rows in order; [`latest_plan`]: the one
//!   that gives the first row of each group; [`row_plan`]: what their plans remember.
//! - [`time_join`], [`join_plan`], [`join_stage`], [`right_side`]: an ASOF or window join, found, remembered and executed,
//!   below an aggregation or by itself ([`time_join_offer`], [`time_join_state`]).
//! - [`window_plan`]: this extension's window functions; [`window_input`], [`window_values`], [`window_rows`]: what they
//!   read, what they say, and rows that wait for it; [`window_run`], [`window_state`]: the node under execution.
//! - [`shared_scan`]: what the participants of a parallel scan share.
//! - [`vector_source`], [`prune`]: visible rows as vectors; zone maps that rule vectors out.
//! - [`scan_state`], [`top_n_state`], [`latest_state`], [`aggregate_state`]: the nodes under execution. [`kept_rows`]:
//!   rows fetched by number. [`time_sort`]: rows that did not come in the order that an aggregate needs. [`results`]:
//!   groups as rows; [`group_order`]: in which order; [`answers`]: results as datums.
//! - [`stand_in`]: PostgreSQL's own plan, which takes over from a node whose memory is not enough.
//! - [`privilege`]: whether the user may execute what the engine computes. [`explain`]: what EXPLAIN says of them.
//!
//! *Plan and state are two things.* A plan holds PostgreSQL's own expressions and lists only, so it can be copied and
//! cached. The engine's expressions are made from them when the first row is asked for: by then parameters have values.
//!
//! *Whose order.* Quals are evaluated by security level, then as written; each sees only rows that those before it
//! passed. So a leaky qual never sees a row that a security barrier hides, and errors arise where they would.
//! [`scan_state`] pushes a qual past one that stays with PostgreSQL only if it is leakproof or of no higher level.
//!
//! *Failures.* An ERROR unwinds through the engine as a panic that the callbacks' guards turn back into the ERROR; what
//! a state owns is dropped with the query's memory context, or when the node ends, whichever is first.

pub mod names;
pub mod node;
pub mod private_data;
pub mod privilege;
pub mod stand_in;
