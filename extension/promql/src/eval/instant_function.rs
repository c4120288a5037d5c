//! Functions of one value.

/// The function of a value that PromQL has under a name.
pub(super) fn of(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "abs" => f64::abs,
        "acos" => f64::acos,
        "acosh" => f64::acosh,
        "asin" => f64::asin,
        "asinh" => f64::asinh,
        "atan" => f64::atan,
        "atanh" => f64::atanh,
        "ceil" => f64::ceil,
        "cos" => f64::cos,
        "cosh" => cosh,
        "deg" => |value| value * (180.0 / std::f64::consts::PI),
        "exp" => f64::exp,
        "floor" => f64::floor,
        "ln" => f64::ln,
        "log10" => f64::log10,
        "log2" => f64::log2,
        "rad" => |value| value * (std::f64::consts::PI / 180.0),
        "sgn" => |value| {
            if value < 0.0 {
                -1.0
            } else if value > 0.0 {
                1.0
            } else {
                value
            }
        },
        "sin" => f64::sin,
        "sinh" => sinh,
        "sqrt" => f64::sqrt,
        "tan" => f64::tan,
        "tanh" => f64::tanh,
        _ => return None,
    })
}

/// From this size on, Go takes half of the exponential function for hyperbolic ones, which becomes
/// infinite earlier than they do.
const HALF_EXPONENTIAL_FROM: f64 = 21.0;

fn cosh(value: f64) -> f64 {
    match value.abs() > HALF_EXPONENTIAL_FROM {
        true => value.abs().exp() * 0.5,
        false => value.cosh(),
    }
}

fn sinh(value: f64) -> f64 {
    match value.abs() > HALF_EXPONENTIAL_FROM {
        true => (value.abs().exp() * 0.5).copysign(value),
        false => value.sinh(),
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn hyperbolic_functions_become_infinite_where_those_of_go_do() {
        let value = |name: &str, argument| of(name).unwrap()(argument);
        assert_eq!(value("cosh", -710.0), f64::INFINITY);
        assert_eq!(value("sinh", -710.0), f64::NEG_INFINITY);
        assert!(value("cosh", 709.0).is_finite() && value("sinh", 709.0).is_finite());
        assert_eq!(value("sinh", 1.0), 1.0_f64.sinh());
        assert!(value("cosh", f64::NAN).is_nan());
    }
}
