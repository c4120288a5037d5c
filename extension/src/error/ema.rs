//! Errors of `lanes.ema()`.

use lanes_columnar::vector::number::Number;
use lanes_columnar::vector::{Weight, WeightFault};
use pgrx::PgSqlErrorCode;

use super::raise;

/// Raises the ERROR of an alpha that is out of range.
pub fn refuse_alpha(alpha: f64) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("alpha of lanes.ema must be greater than 0 and at most 1, not {alpha}"),
        "A number of rows is given as an integer: lanes.ema(x, 100).",
    )
}

/// Raises the ERROR of a span that is out of range.
pub fn refuse_span(span: i32) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("span of lanes.ema must be at least 1, not {span}"),
        "The span is a number of rows: alpha = 2 / (span + 1).",
    )
}

/// Raises the ERROR of a parameter, alpha or span, that differs between rows of a group.
pub fn refuse_change(name: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("{name} of lanes.ema changed within a group"),
        format!("Give a constant, or group by the column that gives {name}."),
    )
}

/// Raises the ERROR of a weight that a vectorised average rejected.
pub fn refuse(weight: Weight, fault: WeightFault) -> ! {
    let name = match weight {
        Weight::Alpha => "alpha",
        Weight::Span => "span",
    };
    match (weight, fault) {
        (_, WeightFault::Null) => null_parameter(name),
        (_, WeightFault::Changed) => refuse_change(name),
        (Weight::Alpha, WeightFault::Illegal(alpha)) => refuse_alpha(f64::of_scalar(alpha)),
        (Weight::Span, WeightFault::Illegal(span)) => refuse_span(f64::of_scalar(span) as i32),
    }
}

/// Raises the ERROR of a parameter, alpha or span, that is NULL.
pub fn null_parameter(name: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
        format!("{name} of lanes.ema must not be NULL"),
        "Give alpha in (0, 1], or a span of at least 1.",
    )
}
