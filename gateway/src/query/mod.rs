//! Prometheus's HTTP query API: PromQL, labels and remote read, answered by PostgreSQL.
//!
//! ```text
//! request ─► form ─► evaluate, labels ─► sessions ─► running ─► answer ─► body, gzip
//!         │  └─ parameters ─┘   status, storage, syntax ────────┘
//!         ├► remote_read ─► sessions ─► running ─► answer
//!         └► deletion ─► a connection of its own
//! ```
//! | module | contents |
//! |---|---|
//! | [`settings`] | the settings of section `query` |
//! | [`form`] | the parameters of a request, from its URL and its body |
//! | [`parameters`] | times, durations and limits, as Prometheus reads them |
//! | [`failure`] | why a request has no answer; status codes, kinds and texts |
//! | [`pool`] | sessions that are kept open, each on the runtime of a worker |
//! | [`sessions`] | a bounded number of sessions that only read, shared by all workers |
//! | [`running`] | a statement that runs: its rows, its timeout, its cancellation |
//! | [`answer`] | rows as the pieces of a body |
//! | [`evaluate`] | `query` and `query_range` |
//! | [`selectors`], [`labels`] | `match[]`; `series`, `labels` and the values of a label |
//! | [`federate`] | the latest samples, in the text format that Prometheus scrapes |
//! | [`remote_read`] | raw samples, for a Prometheus that reads from the gateway |
//! | [`deletion`] | `admin/tsdb`: samples deleted in connections of their own |
//! | [`syntax`], [`tree`] | what needs the text of a query only: `format_query`, `parse_query`, `query_exemplars` |
//! | [`status`] | what clients ask about the server: versions, flags, cardinality; empty lists of rules and targets |
//! | [`storage`] | the arena, and segments by state |
//! | [`fuzz`] | the entries for fuzzing |
//! | [`metrics`] | what is counted |
//! | [`routes`] | all routes, and the path of a request through the modules above |
//!
//! # Invariants
//! - Queries have sessions of their own. They never take a session of the writers, and their number
//!   is `query.sessions` at most. Beside the requests that have a session, `query.queue` wait.
//! - The sessions log in as the role of `query.connection` and are read-only. Only a deletion writes,
//!   in a connection of its own, one at a time. The statement of a user runs as the user's role.
//!   GRANT and row-level security decide what it may read.
//! - An answer is passed on as its rows arrive, so the gateway holds a few pieces of it, never the
//!   whole; a remote read of type `SAMPLES` is the exception, whose memory has a bound of its own.
//!   The status code is decided by the first row or error.
//! - After a cancel request, a session is used again only once it has confirmed that it is idle. So
//!   the request never meets the next query.
//! - A text that is no query, and wrong parameters, are refused before a session is taken.
//!
//! # Failure cases
//! | case | answer |
//! |---|---|
//! | `query.connection` is empty | 503 `unavailable`, which names the setting |
//! | more requests than `query.sessions` and `query.queue`, or no session within `query.queue_wait` | 503 `unavailable` with Retry-After |
//! | the role of the user does not exist, is not granted to the login, or may not read this | 403 `forbidden` |
//! | PostgreSQL is unavailable, or refuses the login | 503 `unavailable` with Retry-After |
//! | the query takes longer than `timeout` or `query.timeout` | 503 `timeout` |
//! | the client goes away | the statement is cancelled |
//! | an error after the first row | the connection ends before the body does; the error is logged |

pub mod answer;
pub mod deletion;
pub mod evaluate;
pub mod failure;
pub mod federate;
pub mod form;
pub mod fuzz;
pub mod labels;
pub mod metrics;
pub mod parameters;
pub mod pool;
pub mod remote_read;
pub mod routes;
pub mod running;
pub mod selectors;
pub mod sessions;
pub mod settings;
pub mod status;
pub mod storage;
pub mod syntax;
pub mod tree;

pub use metrics::QueryMetrics;
pub use routes::QueryApi;
pub use settings::QuerySettings;
