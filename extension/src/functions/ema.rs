//! `lanes.ema(x, alpha)` and `lanes.ema(x, span)`: the exponential moving average in the order in which rows arrive.
//!
//! ```text
//! ema = first x that is not NULL;  then ema = alpha * x + (1 - alpha) * ema        alpha = 2 / (span + 1)
//! ```
//! This form is convex, so finite input never overflows. With alpha = 1 the average is x, even after an infinity, which
//! times zero would be NaN. A NULL x leaves the average unchanged. NaN and infinities stay in it.

use lanes_columnar::aggregate::ema::step;
use lanes_columnar::vector::Weight;
use pgrx::pg_sys;

use crate::error::ema::{null_parameter, refuse_alpha, refuse_change, refuse_span};
use crate::pg::call::{Call, float8_datum};

crate::sql_callables! {
    lanes_ema_transition_alpha, pg_finfo_lanes_ema_transition_alpha => transition_alpha;
    lanes_ema_transition_span, pg_finfo_lanes_ema_transition_span => transition_span;
    lanes_ema_final, pg_finfo_lanes_ema_final => finish;
}

/// The average so far, and its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ema {
    /// The argument, alpha or span. It must not change within a group.
    parameter: f64,
    alpha: f64,
    value: Option<f64>,
}

impl Ema {
    /// An average with weight `alpha`; `None` unless it is in (0, 1].
    pub fn with_alpha(alpha: f64) -> Option<Ema> {
        Ema::with(Weight::Alpha, alpha)
    }

    /// An average with alpha = 2 / (span + 1); `None` unless span is at least 1.
    pub fn with_span(span: i32) -> Option<Ema> {
        Ema::with(Weight::Span, span as f64)
    }

    fn with(weight: Weight, parameter: f64) -> Option<Ema> {
        let alpha = weight.alpha(parameter)?;
        Some(Ema {
            parameter,
            alpha,
            value: None,
        })
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, x: Option<f64>) {
        if let Some(x) = x {
            self.value = Some(match self.value {
                Some(before) => step(self.alpha, before, x),
                None => x,
            });
        }
    }

    /// The average; `None` before the first value.
    #[inline]
    pub fn value(&self) -> Option<f64> {
        self.value
    }
}

fn transition_alpha(call: &Call) -> Option<pg_sys::Datum> {
    let alpha = call.float8(2).unwrap_or_else(|| null_parameter("alpha"));
    transition(call, "alpha", alpha, || {
        Ema::with_alpha(alpha).unwrap_or_else(|| refuse_alpha(alpha))
    })
}

fn transition_span(call: &Call) -> Option<pg_sys::Datum> {
    let span = call.int4(2).unwrap_or_else(|| null_parameter("span"));
    transition(call, "span", span as f64, || {
        Ema::with_span(span).unwrap_or_else(|| refuse_span(span))
    })
}

#[inline]
fn transition(
    call: &Call,
    name: &str,
    parameter: f64,
    begin: impl FnOnce() -> Ema,
) -> Option<pg_sys::Datum> {
    let ema = match call.state::<Ema>(0) {
        Some(ema) => ema,
        None => call.new_state(super::aggregate_memory(call), begin()),
    };
    if ema.parameter != parameter {
        refuse_change(name);
    }
    ema.push(call.float8(1));
    Some(pg_sys::Datum::from(&raw mut *ema))
}

fn finish(call: &Call) -> Option<pg_sys::Datum> {
    call.state::<Ema>(0)?.value().map(float8_datum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeded_by_the_first_value_and_carried_over_nulls() {
        let mut ema = Ema::with_span(3).expect("legal");
        ema.push(None);
        assert_eq!(ema.value(), None);
        for (x, expected) in [(Some(8.0), 8.0), (None, 8.0), (Some(4.0), 6.0)] {
            ema.push(x);
            assert_eq!(ema.value(), Some(expected));
        }
    }

    #[test]
    fn weights_out_of_range_are_rejected() {
        for alpha in [0.0, -0.5, 1.0 + f64::EPSILON, f64::NAN, f64::INFINITY] {
            assert_eq!(Ema::with_alpha(alpha), None);
        }
        assert_eq!(Ema::with_span(0), None);
    }

    #[test]
    fn extremes_stay_finite_and_alpha_1_forgets() {
        let mut ema = Ema::with_alpha(0.5).expect("legal");
        ema.push(Some(f64::MAX));
        ema.push(Some(-f64::MAX));
        assert_eq!(ema.value(), Some(0.0));
        let mut last = Ema::with_alpha(1.0).expect("legal");
        last.push(Some(f64::INFINITY));
        last.push(Some(2.0));
        assert_eq!(last.value(), Some(2.0));
    }
}
