//! `query` and `query_range`: PromQL at one time, and at each step of a range.

use std::time::SystemTime;

use lanes_promql::ast::ValueType;
use lanes_promql::quote::quote;

use super::answer::Answer;
use super::failure::Failure;
use super::form::Form;
use super::parameters::{self, Time};
use super::routes::Served;
use super::sessions::Statement;
use super::syntax;
use crate::clock;

/// The number of points of a series from which on a range is refused.
const POINTS_MAX: i128 = 11_000;

/// Nanoseconds of a millisecond.
const NANOS_PER_MILLI: i128 = 1_000_000;

/// The last argument says whether statistics are part of the body. Functions among the results
/// return their rows one by one; in FROM they would be collected first.
const EVALUATE: &str = "SELECT lanes.promql_api($1, $2, $3, pg_catalog.make_interval(secs => $4), \
     pg_catalog.make_interval(secs => $5), $6, $7)";

/// The times of a query.
#[derive(Debug, PartialEq)]
pub(super) struct Times {
    pub(super) start: SystemTime,
    pub(super) stop: SystemTime,
    /// Seconds; `None` for a query at `start` only.
    pub(super) step: Option<f64>,
}

/// Answers `query`.
///
/// # Errors
/// Returns a failure if a parameter is wrong, or the query has no answer.
pub async fn query(served: &Served<'_>, form: &Form) -> Result<Answer, Failure> {
    let limit = parameters::limit(form)?;
    let now = Time(clock::unix_ms());
    let time = parameters::optional_time(form, "time")?.unwrap_or(now);
    let at = in_range(time, "time")?;
    let times = Times {
        start: at,
        stop: at,
        step: None,
    };
    evaluate(served, form, limit, times).await
}

/// Answers `query_range`.
///
/// # Errors
/// Returns a failure if a parameter is wrong, or the query has no answer.
pub async fn query_range(served: &Served<'_>, form: &Form) -> Result<Answer, Failure> {
    let limit = parameters::limit(form)?;
    let times = range(form)?;
    evaluate(served, form, limit, times).await
}

/// Reads the parameters `start`, `end` and `step`.
pub(super) fn range(form: &Form) -> Result<Times, Failure> {
    let time = |name: &str| {
        parameters::time(form.get(name)).map_err(|reason| Failure::invalid(name, reason))
    };
    let (start, end) = (time("start")?, time("end")?);
    if end < start {
        let reason = "end timestamp must not be before start time";
        return Err(Failure::invalid("end", reason));
    }
    let step =
        parameters::nanos(form.get("step")).map_err(|reason| Failure::invalid("step", reason))?;
    if step <= 0 {
        let reason = "zero or negative query resolution step widths are not accepted. Try a positive integer";
        return Err(Failure::invalid("step", reason));
    }
    let length = (i128::from(end.0) - i128::from(start.0)) * NANOS_PER_MILLI;
    if length / i128::from(step) > POINTS_MAX {
        return Err(Failure::bad_data(
            "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)",
        ));
    }
    Ok(Times {
        start: in_range(start, "start")?,
        stop: in_range(end, "end")?,
        step: Some(step as f64 / 1e9),
    })
}

fn in_range(time: Time, parameter: &str) -> Result<SystemTime, Failure> {
    time.system_time().ok_or_else(|| {
        Failure::invalid(
            parameter,
            "PostgreSQL has times from 4713 BC to 294276 AD only",
        )
    })
}

async fn evaluate(
    served: &Served<'_>,
    form: &Form,
    limit: usize,
    times: Times,
) -> Result<Answer, Failure> {
    let timeout = parameters::timeout(form, served.settings.timeout)?;
    let lookback = match form.get("lookback_delta") {
        "" => 0,
        text => parameters::nanos(text).map_err(|reason| {
            Failure::bad_data(format!("error parsing lookback delta duration: {reason}"))
        })?,
    };
    // As in Prometheus, only a positive age counts.
    let lookback = match lookback {
        ..=0 => served.settings.lookback_delta.as_secs_f64(),
        nanos => nanos as f64 / 1e9,
    };
    let query = form.get("query");
    let value_type = syntax::parsed(query)?.value_type();
    let has_steps = matches!(value_type, ValueType::Scalar | ValueType::Vector);
    if times.step.is_some() && !has_steps {
        let found = quote(value_type.documented());
        return Err(Failure::invalid(
            "query",
            format!(
                "invalid expression type {found} for range query, must be Scalar or instant Vector"
            ),
        ));
    }
    let rows = served.sessions.run(Statement {
        sql: EVALUATE,
        parameters: vec![
            Box::new(query.to_owned()),
            Box::new(times.start),
            Box::new(times.stop),
            Box::new(times.step),
            Box::new(lookback),
            Box::new(i32::try_from(limit).unwrap_or(i32::MAX)),
            Box::new(!form.get("stats").is_empty()),
        ],
        timeout,
    });
    Ok(Answer::Pieces(rows.await?))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn range_of(parameters: &str) -> Result<Times, String> {
        range(&Form::parse(b"", parameters)).map_err(|failure| failure.text)
    }

    #[test]
    fn ranges_have_times_in_order_and_a_positive_step() {
        let expected = Times {
            start: UNIX_EPOCH,
            stop: UNIX_EPOCH + Duration::from_secs(60),
            step: Some(15.0),
        };
        assert_eq!(range_of("start=0&end=60&step=15"), Ok(expected));
        let exact = range_of("start=0&end=11000&step=1");
        assert!(exact.is_ok(), "11,001 points are allowed: {exact:?}");
    }

    #[test]
    fn wrong_ranges_are_refused_in_the_words_of_prometheus() {
        for (parameters, expected) in [
            (
                "start=x&end=1&step=1",
                r#"invalid parameter "start": cannot parse "x" to a valid timestamp"#,
            ),
            (
                "start=1&step=1",
                r#"invalid parameter "end": cannot parse "" to a valid timestamp"#,
            ),
            (
                "start=2&end=1&step=1",
                r#"invalid parameter "end": end timestamp must not be before start time"#,
            ),
            (
                "start=1&end=2&step=x",
                r#"invalid parameter "step": cannot parse "x" to a valid duration"#,
            ),
            (
                "start=1&end=2&step=0",
                r#"invalid parameter "step": zero or negative query resolution step widths are not accepted. Try a positive integer"#,
            ),
            (
                "start=0&end=11001&step=1",
                "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)",
            ),
            (
                "start=9224318016000&end=9224318016001&step=1",
                r#"invalid parameter "start": PostgreSQL has times from 4713 BC to 294276 AD only"#,
            ),
        ] {
            assert_eq!(range_of(parameters), Err(expected.to_owned()));
        }
    }
}
