//! Rewrites queries that group by `lanes.time_bucket_gapfill`, which returns a row for each bucket, also where
//! there is no data.
//!
//! ```text
//! SELECT time_bucket_gapfill('1 h', ts) AS hour, sym, locf(avg(x)) + 1
//!   FROM t WHERE ts >= … AND ts < … GROUP BY hour, sym HAVING … ORDER BY hour LIMIT 5
//!      │
//!      ▼
//! SELECT g.hour, g.sym, g.filled + 1
//!   FROM (SELECT time_bucket('1 h', ts) AS hour, sym, avg(x) AS filled, gapfill(…)
//!           FROM t WHERE ts >= … AND ts < … GROUP BY hour, sym HAVING … ORDER BY sym, hour OFFSET 0) g
//!   ORDER BY hour LIMIT 5
//! ```
//! The sub-select is an ordinary aggregation, so every plan of one is open to it, `LanesAggregate` included. It returns
//! its groups in the order of the other keys and then of the bucket. The planner puts the node
//! [`gapfill`](crate::nodes::gapfill) above it, which adds the missing rows. The outer query computes everything that
//! stands around `locf`, `interpolate` and aggregates, with window functions, DISTINCT, ORDER BY and LIMIT.
//!
//! | module | contents |
//! |---|---|
//! | [`functions`] | the SQL functions, and their OIDs |
//! | [`rewrite`] | finds such queries and divides each into two |
//! | [`columns`] | the columns of the sub-select |
//! | [`range`] | where the buckets begin and end: arguments, and conditions of WHERE |
//! | [`spec`] | what the sub-select tells the node |
//!
//! Invariants:
//! - The last column of the sub-select is a call of `lanes.gapfill`, which nobody evaluates: its arguments are what the
//!   node has to know.
//! - Both queries have an OFFSET of zero, if no other. So PostgreSQL neither merges them nor moves conditions of an
//!   outer query into them: a condition on buckets must see the rows that were added.
//! - A rewritten query calls none of the functions; a call that is left over is an error.

mod columns;
pub mod functions;
mod range;
pub mod rewrite;
pub mod spec;
