//! The queries that are not compared, and why. A query is skipped if it uses the name of an entry.
//!
//! What no Prometheus defines, or what is an error of Prometheus, is compared with none: see
//! [`OF_ALL`]. What Prometheus 2.42 lacks or evaluates in another way than Prometheus 3 is compared
//! with the newest one only: see [`OF_DEBIAN`].

use crate::query::Query;

/// A form that an older Prometheus does not know or evaluates in another way.
struct Difference {
    /// The name that the writer of queries notes.
    name: &'static str,
    /// Why answers differ.
    reason: &'static str,
}

/// The differences between Prometheus 2.42, which Debian has, and Prometheus 3.
const OF_DEBIAN: [Difference; 21] = [
    Difference {
        name: "avg_over_time",
        reason: "2.42 rounds in another way",
    },
    Difference {
        name: "count_values",
        reason: "2.42 mixes up groups by labels that follow the new one",
    },
    Difference {
        name: "first_over_time",
        reason: "2.42 has no such function",
    },
    Difference {
        name: "histogram_fraction",
        reason: "2.42 ignores classic histograms in it",
    },
    Difference {
        name: "look-back",
        reason: "2.42 ignores the parameter lookback_delta",
    },
    Difference {
        name: "nested subquery",
        reason: "2.42 counts a sample at the left edge of a range, where those of nested subqueries are",
    },
    Difference {
        name: "damaged",
        reason: "2.42 reads other texts: numbers are no durations, and durations no numbers",
    },
    Difference {
        name: "rate",
        reason: "2.42 extrapolates counters near zero further",
    },
    Difference {
        name: "increase",
        reason: "2.42 extrapolates counters near zero further",
    },
    Difference {
        name: "avg",
        reason: "2.42 rounds in another way",
    },
    Difference {
        name: "sum",
        reason: "2.42 rounds in another way",
    },
    Difference {
        name: "atan2",
        reason: "2.42 keeps the name of a metric",
    },
    Difference {
        name: "stddev",
        reason: "2.42 ignores infinities and NaN in them",
    },
    Difference {
        name: "stdvar",
        reason: "2.42 ignores infinities and NaN in them",
    },
    Difference {
        name: "stddev_over_time",
        reason: "2.42 ignores infinities and NaN in them",
    },
    Difference {
        name: "stdvar_over_time",
        reason: "2.42 ignores infinities and NaN in them",
    },
    Difference {
        name: "quantile",
        reason: "2.42 multiplies an infinity by 0 between two values",
    },
    Difference {
        name: "quantile_over_time",
        reason: "2.42 multiplies an infinity by 0 between two values",
    },
    Difference {
        name: "topk",
        reason: "2.42 keeps other ones of equal values, and brings groups in any order",
    },
    Difference {
        name: "bottomk",
        reason: "2.42 keeps other ones of equal values, and brings groups in any order",
    },
    Difference {
        name: "predict_linear",
        reason: "2.42 takes the samples of the last step at @",
    },
];

/// What no Prometheus defines, or evaluates in a way that is an error.
const OF_ALL: [Difference; 4] = [
    Difference {
        name: "absent of a label twice",
        reason: "Prometheus takes matchers of one label in another order if it has stored samples",
    },
    Difference {
        name: "@ in a parameter",
        reason: "Prometheus moves the time of @ with the steps in topk(scalar(up @ 0), up)",
    },
    Difference {
        name: "any tie",
        reason: "of equal values topk keeps those of any series",
    },
    Difference {
        name: "timestamp of @ and offset",
        reason: "Prometheus ignores the offset in timestamp(up @ 0 offset 1m)",
    },
];

/// Why a query is not compared with the newest Prometheus, if it is not.
pub fn with_newest(query: &Query) -> Option<&'static str> {
    reason(query, &OF_ALL)
}

/// Why a query is not compared with Debian's Prometheus, if it is not.
pub fn with_debian(query: &Query) -> Option<&'static str> {
    reason(query, &OF_ALL).or_else(|| reason(query, &OF_DEBIAN))
}

fn reason(query: &Query, differences: &[Difference]) -> Option<&'static str> {
    let mut entries = differences.iter();
    let entry = entries.find(|entry| query.uses.contains(entry.name))?;
    Some(entry.reason)
}
