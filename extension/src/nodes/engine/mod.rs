//! The common parts of aggregations and joins, which the engine executes alone, from the table to the result.
//!
//! | module | content |
//! |---|---|
//! | [`plan`] | what their plans store |
//! | [`early_groups`] | groups that a node returns before it has read all of its rows |
//! | [`group_limit`] | the groups that ORDER BY and LIMIT can return |
//! | [`group_order`] | groups in the order of one of their keys |
//! | [`results`] | finished groups as rows |
//! | [`row_limit`] | the joined rows that ORDER BY and LIMIT can return |
//! | [`waiting_rows`] | rows in temporary files, whose groups do not fit into memory |

pub mod early_groups;
pub mod group_limit;
pub mod group_order;
pub mod plan;
pub mod results;
pub mod row_limit;
pub mod waiting_rows;
