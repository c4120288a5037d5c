//! The SQL functions of PromQL.

use lanes_promql::batches::OneThread;
use lanes_promql::error::Error;
use lanes_promql::json::{self, BodyOptions, BodyPieces};
use lanes_promql::prepared::Prepared;
use lanes_promql::{Answer, Engine, Labels, Limits, Options, QueryTime, Value, pipeline};
use pgrx::prelude::*;

use super::columns::SAMPLE_BYTES;
use super::source::DatabaseSource;
use super::times;
use crate::error;
use crate::gucs;
use crate::labels::jsonb;
use crate::pg::malloc;
use crate::pg::signals::SignalsBlocked;
use crate::pg::text::{self, LazyJsonb, ServerText};

/// The age up to which a sample counts if the caller does not say.
const LOOKBACK_MILLIS: i64 = 300_000;
/// The number of samples from which on a second thread evaluates what the backend reads. Reading and evaluating so many
/// takes some milliseconds. Below, a thread and the exchange of batches would cost more than they save.
const SAMPLES_FOR_TWO_THREADS: u64 = 150_000;

type SampleRows = TableIterator<
    'static,
    (
        name!(labels, LazyJsonb),
        name!(ts, TimestampWithTimeZone),
        name!(value, f64),
    ),
>;

/// Evaluates a query at one time.
#[pg_extern(sql = false)]
fn promql(query: &[u8], at: TimestampWithTimeZone, lookback: Interval) -> SampleRows {
    let at = times::millis_of_argument(at, "the time of a query");
    let lookback = times::length_of(lookback, "lookback");
    let answer = evaluate(query, QueryTime::At(at), lookback);
    rows_of(answer.value, at)
}

/// Evaluates a query at each step of a range.
#[pg_extern(sql = false)]
fn promql_range(
    query: &[u8],
    start: TimestampWithTimeZone,
    stop: TimestampWithTimeZone,
    step: Interval,
    lookback: Interval,
) -> SampleRows {
    let time = steps(start, stop, step);
    let lookback = times::length_of(lookback, "lookback");
    rows_of(evaluate(query, time, lookback).value, 0)
}

/// Evaluates a query and returns the body of Prometheus's HTTP API, in pieces.
#[pg_extern(sql = false)]
fn promql_api(
    query: Option<&[u8]>,
    start: Option<TimestampWithTimeZone>,
    stop: Option<TimestampWithTimeZone>,
    step: Option<Interval>,
    lookback: Option<Interval>,
    series_limit: Option<i32>,
    stats: Option<bool>,
) -> SetOfIterator<'static, ServerText> {
    let (Some(query), Some(start)) = (query, start) else {
        refuse_null("lanes.promql() evaluates a query at now() by default.");
    };
    let lookback = lookback_of(lookback);
    let time = match step {
        None => QueryTime::At(times::millis_of_argument(start, "start")),
        Some(step) => steps(start, stop.unwrap_or(start), step),
    };
    let answer = evaluate(query, time, lookback);
    let at = match time {
        QueryTime::At(at) => at,
        QueryTime::Steps { start, .. } => start,
    };
    let options = BodyOptions {
        series_limit: series_limit.unwrap_or(0).max(0) as usize,
        has_statistics: stats.unwrap_or(false),
    };
    // Each piece is written when its row is returned.
    let pieces = BodyPieces::new(answer, at, options);
    SetOfIterator::new(pieces.map(|piece| {
        pgrx::check_for_interrupts!();
        ServerText::of_utf8(piece.as_bytes())
    }))
}

/// Evaluates a query, and returns its plan with what each part of it did, line by line.
#[pg_extern(sql = false)]
fn promql_explain(
    query: Option<&[u8]>,
    start: Option<TimestampWithTimeZone>,
    stop: Option<TimestampWithTimeZone>,
    step: Option<Interval>,
    lookback: Option<Interval>,
) -> SetOfIterator<'static, ServerText> {
    let (Some(query), Some(start)) = (query, start) else {
        refuse_null("lanes.promql_explain() explains a query at now() by default.");
    };
    let time = match (stop, step) {
        (None, None) => QueryTime::At(times::millis_of_argument(start, "start")),
        (Some(stop), Some(step)) => steps(start, stop, step),
        _ => error::raise(
            PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
            "only one of stop and step is NULL",
            "Give both to explain a query at each step of a range, or none to explain it at start only.",
        ),
    };
    // On one thread, so that the time of each part is its own.
    let text = with_source(query, lookback_of(lookback), |source, query, options| {
        let source = OneThread(source);
        let engine = Engine::new(&source, options).with_interrupt(&interrupt);
        engine.explain(query, time)
    });
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let lines = lines.into_iter();
    SetOfIterator::new(lines.map(|line| ServerText::of_utf8(line.as_bytes())))
}

/// Raises the error of a query or a start that is NULL.
fn refuse_null(hint: &str) -> ! {
    error::raise(
        PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
        "the query and its start must not be NULL",
        hint,
    )
}

/// The age up to which a sample counts, in milliseconds.
fn lookback_of(argument: Option<Interval>) -> i64 {
    argument.map_or(LOOKBACK_MILLIS, |lookback| {
        times::length_of(lookback, "lookback")
    })
}

fn steps(start: TimestampWithTimeZone, stop: TimestampWithTimeZone, step: Interval) -> QueryTime {
    QueryTime::Steps {
        start: times::millis_of_argument(start, "start"),
        end: times::millis_of_argument(stop, "stop"),
        step: times::length_of(step, "step"),
    }
}

/// The answer to a query.
fn evaluate(query: &[u8], time: QueryTime, lookback: i64) -> Answer {
    with_source(query, lookback, |source, query, options| {
        let prepared = Prepared::new(query, time, &options)?;
        if !gucs::promql_overlap() || !reads_many_samples(source, &prepared)? {
            let source = OneThread(source);
            let engine = Engine::new(&source, options).with_interrupt(&interrupt);
            return engine.evaluate(&prepared);
        }
        let blocked = SignalsBlocked::new();
        pipeline::evaluate(source, &prepared, options, &interrupt, || drop(blocked))
    })
}

/// Whether a query reads so many samples that a second thread helps.
fn reads_many_samples(source: &DatabaseSource, prepared: &Prepared) -> Result<bool, Error> {
    let mut samples = 0;
    // The source keeps what it has selected for an estimate, so the sum is not made longer than it has to be.
    for selection in prepared.selections() {
        samples += source.estimate(&selection)?;
        if samples >= SAMPLES_FOR_TWO_THREADS {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Calls `work` with this database, a query and options. An error of the query is raised.
fn with_source<T>(
    query: &[u8],
    lookback: i64,
    work: impl FnOnce(&DatabaseSource, &str, Options) -> Result<T, Error>,
) -> T {
    let query = text::utf8_text(query);
    let query = String::from_utf8_lossy(&query);
    let limits = Limits {
        samples_max: gucs::promql_max_samples(),
        series_max: gucs::promql_max_series(),
        held_bytes_max: gucs::promql_memory_bytes(),
        ..Limits::default()
    };
    let source = DatabaseSource::new(limits.series_max, limits.held_bytes_max / SAMPLE_BYTES);
    let options = Options {
        lookback_delta: lookback,
        limits,
        ..Options::default()
    };
    malloc::keep_memory_of_queries();
    work(&source, &query, options).unwrap_or_else(|failure| refuse(failure))
}

/// Ends a query that was cancelled.
fn interrupt() -> Result<(), Error> {
    pgrx::check_for_interrupts!();
    Ok(())
}

/// Raises the error of a query that has no answer.
fn refuse(failure: Error) -> ! {
    let (code, hint) = match failure {
        Error::Parse(_) => (
            PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
            "Write a query as for Prometheus: sum by (job) (rate(requests_total[5m])).",
        ),
        Error::Execution(_) => (
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "Prometheus refuses the query too.",
        ),
        Error::Limit(_) => (
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            "Select fewer series or a shorter time, or raise lanes.promql_max_samples, lanes.promql_max_series or lanes.promql_memory.",
        ),
        Error::NativeHistogram(_) => (
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "Use classic histograms, whose buckets are series.",
        ),
        Error::Canceled | Error::Timeout => (
            PgSqlErrorCode::ERRCODE_QUERY_CANCELED,
            "Ask again, or raise statement_timeout.",
        ),
        Error::Source(_) => (
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            "The server's log may say more.",
        ),
    };
    error::raise(code, failure.to_string(), hint)
}

/// The rows of a value at a time, in milliseconds since 1970.
fn rows_of(value: Value, at: i64) -> SampleRows {
    let series: Vec<(Labels, Vec<i64>, Vec<f64>)> = match value {
        Value::Scalar(value) => vec![(Labels::empty(), vec![at], vec![value])],
        Value::String(_) => error::raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "the query is a string, which has no value of type float8",
            "lanes.promql_api() returns strings.",
        ),
        Value::Vector(samples) => samples
            .into_iter()
            .map(|sample| (sample.labels, vec![at], vec![sample.value]))
            .collect(),
        Value::Matrix(series) => series
            .into_iter()
            .map(|series| (series.labels, series.timestamps, series.values))
            .collect(),
    };
    let rows = series.into_iter().flat_map(|(labels, timestamps, values)| {
        let labels = LazyJsonb::new(json::labels_json(&labels), jsonb::of_label_set);
        let samples = timestamps.into_iter().zip(values);
        samples.map(move |(time, value)| (labels.clone(), times::timestamp_of(time), value))
    });
    TableIterator::new(rows)
}
