//! The functions of PromQL: their names, arguments and results.

use crate::ast::ValueType;

/// How many arguments a function takes beside those that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// Exactly the named ones.
    None,
    /// The last named one may be left out; up to so many take its place.
    UpTo(usize),
    /// The last named one may be left out or stand any number of times.
    AnyNumber,
}

/// A function.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// The name.
    pub name: &'static str,
    /// The types of the named arguments.
    pub args: &'static [ValueType],
    /// The arguments beside the named ones.
    pub extra: Extra,
    /// The type of the result.
    pub returns: ValueType,
    /// Whether a query may use the function only if experimental functions are enabled.
    pub is_experimental: bool,
}

impl Function {
    /// The function of a name.
    pub fn named(name: &str) -> Option<&'static Function> {
        let place = FUNCTIONS
            .binary_search_by(|function| function.name.cmp(name))
            .ok()?;
        Some(&FUNCTIONS[place])
    }

    /// All functions, by name.
    pub fn all() -> &'static [Function] {
        &FUNCTIONS
    }

    /// The type of the argument at a place; `None` behind the last one.
    pub fn arg_type(&self, place: usize) -> Option<ValueType> {
        match self.extra {
            Extra::None => self.args.get(place).copied(),
            _ => self.args.get(place).or(self.args.last()).copied(),
        }
    }

    /// Whether the result differs by the time of the evaluation even if the arguments do not.
    pub fn depends_on_time(&self) -> bool {
        TIME_DEPENDENT.contains(&self.name)
    }
}

/// Functions whose results follow the time of the evaluation.
const TIME_DEPENDENT: [&str; 15] = [
    "day_of_month",
    "day_of_week",
    "day_of_year",
    "days_in_month",
    "end",
    "hour",
    "minute",
    "month",
    "predict_linear",
    "range",
    "start",
    "step",
    "time",
    "timestamp",
    "year",
];

const M: ValueType = ValueType::Matrix;
const S: ValueType = ValueType::Scalar;
const T: ValueType = ValueType::String;
const V: ValueType = ValueType::Vector;

const fn stable(
    name: &'static str,
    args: &'static [ValueType],
    extra: Extra,
    returns: ValueType,
) -> Function {
    Function {
        name,
        args,
        extra,
        returns,
        is_experimental: false,
    }
}

const fn experimental(
    name: &'static str,
    args: &'static [ValueType],
    extra: Extra,
    returns: ValueType,
) -> Function {
    Function {
        is_experimental: true,
        ..stable(name, args, extra, returns)
    }
}

static FUNCTIONS: [Function; 92] = [
    stable("abs", &[V], Extra::None, V),
    stable("absent", &[V], Extra::None, V),
    stable("absent_over_time", &[M], Extra::None, V),
    stable("acos", &[V], Extra::None, V),
    stable("acosh", &[V], Extra::None, V),
    stable("asin", &[V], Extra::None, V),
    stable("asinh", &[V], Extra::None, V),
    stable("atan", &[V], Extra::None, V),
    stable("atanh", &[V], Extra::None, V),
    stable("avg_over_time", &[M], Extra::None, V),
    stable("ceil", &[V], Extra::None, V),
    stable("changes", &[M], Extra::None, V),
    stable("clamp", &[V, S, S], Extra::None, V),
    stable("clamp_max", &[V, S], Extra::None, V),
    stable("clamp_min", &[V, S], Extra::None, V),
    stable("cos", &[V], Extra::None, V),
    stable("cosh", &[V], Extra::None, V),
    stable("count_over_time", &[M], Extra::None, V),
    stable("day_of_month", &[V], Extra::UpTo(1), V),
    stable("day_of_week", &[V], Extra::UpTo(1), V),
    stable("day_of_year", &[V], Extra::UpTo(1), V),
    stable("days_in_month", &[V], Extra::UpTo(1), V),
    // The only function that Prometheus lacks: vmalert restores the state of its alerts with it.
    stable("default_rollup", &[M], Extra::None, V),
    stable("deg", &[V], Extra::None, V),
    stable("delta", &[M], Extra::None, V),
    stable("deriv", &[M], Extra::None, V),
    experimental("double_exponential_smoothing", &[M, S, S], Extra::None, V),
    experimental("end", &[], Extra::None, S),
    stable("exp", &[V], Extra::None, V),
    stable("first_over_time", &[M], Extra::None, V),
    stable("floor", &[V], Extra::None, V),
    stable("histogram_avg", &[V], Extra::None, V),
    stable("histogram_count", &[V], Extra::None, V),
    stable("histogram_fraction", &[S, S, V], Extra::None, V),
    stable("histogram_quantile", &[S, V], Extra::None, V),
    experimental("histogram_quantiles", &[V, T, S, S], Extra::UpTo(9), V),
    stable("histogram_stddev", &[V], Extra::None, V),
    stable("histogram_stdvar", &[V], Extra::None, V),
    stable("histogram_sum", &[V], Extra::None, V),
    stable("hour", &[V], Extra::UpTo(1), V),
    stable("idelta", &[M], Extra::None, V),
    stable("increase", &[M], Extra::None, V),
    experimental("info", &[V, V], Extra::UpTo(1), V),
    experimental("integral", &[M, S], Extra::UpTo(1), V),
    stable("irate", &[M], Extra::None, V),
    stable("label_join", &[V, T, T, T], Extra::AnyNumber, V),
    stable("label_replace", &[V, T, T, T, T], Extra::None, V),
    stable("last_over_time", &[M], Extra::None, V),
    stable("ln", &[V], Extra::None, V),
    stable("log10", &[V], Extra::None, V),
    stable("log2", &[V], Extra::None, V),
    experimental("mad_over_time", &[M], Extra::None, V),
    experimental("max_of", &[S, S], Extra::None, S),
    stable("max_over_time", &[M], Extra::None, V),
    experimental("min_of", &[S, S], Extra::None, S),
    stable("min_over_time", &[M], Extra::None, V),
    stable("minute", &[V], Extra::UpTo(1), V),
    stable("month", &[V], Extra::UpTo(1), V),
    stable("pi", &[], Extra::None, S),
    stable("predict_linear", &[M, S], Extra::None, V),
    stable("present_over_time", &[M], Extra::None, V),
    stable("quantile_over_time", &[S, M], Extra::None, V),
    stable("rad", &[V], Extra::None, V),
    experimental("range", &[], Extra::None, S),
    stable("rate", &[M], Extra::None, V),
    stable("resets", &[M], Extra::None, V),
    stable("round", &[V, S], Extra::UpTo(1), V),
    stable("scalar", &[V], Extra::None, S),
    stable("sgn", &[V], Extra::None, V),
    stable("sin", &[V], Extra::None, V),
    stable("sinh", &[V], Extra::None, V),
    stable("sort", &[V], Extra::None, V),
    experimental("sort_by_label", &[V, T], Extra::AnyNumber, V),
    experimental("sort_by_label_desc", &[V, T], Extra::AnyNumber, V),
    stable("sort_desc", &[V], Extra::None, V),
    stable("sqrt", &[V], Extra::None, V),
    experimental("start", &[], Extra::None, S),
    experimental("start_timestamp", &[V], Extra::None, V),
    stable("stddev_over_time", &[M], Extra::None, V),
    stable("stdvar_over_time", &[M], Extra::None, V),
    experimental("step", &[], Extra::None, S),
    stable("sum_over_time", &[M], Extra::None, V),
    stable("tan", &[V], Extra::None, V),
    stable("tanh", &[V], Extra::None, V),
    stable("time", &[], Extra::None, S),
    stable("timestamp", &[V], Extra::None, V),
    experimental("ts_of_first_over_time", &[M], Extra::None, V),
    experimental("ts_of_last_over_time", &[M], Extra::None, V),
    experimental("ts_of_max_over_time", &[M], Extra::None, V),
    experimental("ts_of_min_over_time", &[M], Extra::None, V),
    stable("vector", &[S], Extra::None, V),
    stable("year", &[V], Extra::UpTo(1), V),
];

#[cfg(test)]
mod tests {
    use super::Function;

    #[test]
    fn functions_are_found_by_name() {
        assert!(Function::all().is_sorted_by(|a, b| a.name < b.name));
        for function in Function::all() {
            assert_eq!(Function::named(function.name), Some(function));
        }
        assert_eq!(Function::named("nope"), None);
    }
}
