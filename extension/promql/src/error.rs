//! Why a query has no answer.

use crate::parser::ParseError;

/// Why a query has no answer.
#[derive(thiserror::Error, Debug, Clone, PartialEq)]
pub enum Error {
    /// The text is no query.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The query cannot be planned or evaluated; Prometheus's words.
    #[error("{0}")]
    Execution(String),
    /// The query exceeds a limit.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The query needs samples that are native histograms.
    #[error("native histograms are not supported: series {0} has some")]
    NativeHistogram(String),
    /// The query was canceled.
    #[error("query was canceled in expression evaluation")]
    Canceled,
    /// The query took too long.
    #[error("query timed out in expression evaluation")]
    Timeout,
    /// The source of the series failed.
    #[error("{0}")]
    Source(String),
}

/// The limit that a query exceeds.
#[derive(thiserror::Error, Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitError {
    /// More samples are read than a query may read.
    #[error(
        "query processing would load too many samples into memory in query execution: \
         it may read {0} samples"
    )]
    Samples(u64),
    /// More series are read than a query may read.
    #[error("query selects too many series: it may read {0} series")]
    Series(u64),
    /// A query or subquery has more steps than one may have.
    #[error("query has too many steps: it may have {0} steps")]
    Steps(usize),
    /// Intermediate results take more memory than a query may hold.
    #[error("query needs too much memory: it may hold {0} bytes")]
    Memory(usize),
}

/// An error of the evaluation.
pub(crate) fn execution<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Execution(message.into()))
}
