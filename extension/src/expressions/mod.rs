//! Translates PostgreSQL's expressions into expressions of the engine, and the engine's results into datums.
//!
//! ```text
//! Expr ──► translate ──► numbers: translate, number_functions
//!              │         conditions: predicate, text_quals, uuid_quals, value_quals
//!              ▼
//!          aggregate_call ──► lanes_aggregate, over_time, percentile; keys of groups: buckets, epoch_bucket
//!                                                    │
//!                            datums ◄── result_datum ◄── (engine)
//! ```
//! | module | contents |
//! |---|---|
//! | [`translate`] | the translator, its columns and scalars, and expressions that are numbers |
//! | [`predicate`] | conditions that the engine evaluates |
//! | [`text_quals`], [`uuid_quals`] | conditions on columns of text and of uuid |
//! | [`like_test`], [`regex_test`] | `LIKE`, `ILIKE` and regular expressions without a function call for each text |
//! | [`value_quals`] | conditions that PostgreSQL evaluates, once for each value |
//! | [`number_functions`] | PostgreSQL's functions of numbers, by OID |
//! | [`scalar`] | expressions without columns, which PostgreSQL evaluates once a scan |
//! | [`shared_state`] | aggregates that are computed from one state |
//! | [`aggregate_call`] | calls of aggregates, and keys of groups |
//! | [`lanes_aggregate`], [`over_time`], [`percentile`] | calls of this extension's aggregates, and of percentiles |
//! | [`regression`], [`variance_call`] | calls of aggregates of pairs, and of variances |
//! | [`bit_call`], [`text_extreme`] | calls of aggregates of bits, and of `min` and `max` of texts |
//! | [`bucket_call`], [`buckets`], [`epoch_bucket`] | time buckets as keys of groups |
//! | [`choices`] | `CASE` and `COALESCE` |
//! | [`decimals`] | expressions of `numeric`, computed with integers |
//! | [`row_function`], [`date_parts`] | expressions and aggregates that PostgreSQL evaluates for rows; fields of times |
//! | [`ordered_call`], [`row_order`] | aggregates with ORDER BY that PostgreSQL computes; aggregates that ignore it |
//! | [`sort_key`], [`time_sort`] | keys that rows are sorted by; PostgreSQL's sort for rows of a group |
//! | [`result_datum`], [`transition_state`] | datums of results, and of the states that workers hand over |
//! | [`joined_columns`], [`joined_codes`], [`condition_code`], [`coded_count`] | columns and codes that a join adds; counts of codes |
//! | [`distinct_count`] | counts of distinct rows of several values, and of distinct values that PostgreSQL computes |
//!
//! Invariants:
//! - What is translated has exactly the result that PostgreSQL computes, errors included.
//! - Translating an expression never changes it. Planner and executor translate the same expressions in the same order,
//!   so they find the same scalars and attributes.

pub mod aggregate_call;
pub mod bit_call;
pub mod bucket_call;
pub mod buckets;
pub mod choices;
pub mod coded_count;
pub mod condition_code;
pub mod constant_case;
pub mod date_parts;
pub mod decimals;
pub mod distinct_count;
pub mod epoch_bucket;
pub mod joined_codes;
pub mod joined_columns;
pub mod lanes_aggregate;
pub mod like_test;
pub mod number_functions;
pub mod ordered_call;
pub mod over_time;
pub mod percentile;
pub mod predicate;
pub mod regex_test;
pub mod regression;
pub mod result_datum;
pub mod row_function;
pub mod row_order;
pub mod scalar;
pub mod shared_state;
pub mod sort_key;
pub mod text_extreme;
pub mod text_quals;
pub mod time_sort;
pub mod transition_state;
pub mod translate;
pub mod uuid_quals;
pub mod value_quals;
pub mod variance_call;
