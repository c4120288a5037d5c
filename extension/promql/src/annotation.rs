//! Annotations: warnings and infos that come with an answer, in Prometheus's words.

use crate::number::{format_general, format_two_digits};
use crate::quote::quote;
use crate::span::Span;
use std::collections::BTreeMap;

/// How much an annotation matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Warning,
    Info,
}

#[derive(Debug, Clone)]
struct Annotation {
    level: Level,
    span: Span,
    monotonicity: Option<Monotonicity>,
}

/// Where buckets of classic histograms had to be made monotonic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Monotonicity {
    pub(crate) first_time: i64,
    pub(crate) last_time: i64,
    pub(crate) least_bucket: f64,
    pub(crate) greatest_bucket: f64,
    pub(crate) difference: f64,
    pub(crate) count: u64,
}

/// The annotations of one query, by their words: each is kept once.
#[derive(Debug, Default)]
pub(crate) struct Annotations(BTreeMap<String, Annotation>);

fn with_metric(text: String, metric: &str) -> String {
    match metric {
        "" => text,
        metric => format!("{text} for metric name {}", quote(metric)),
    }
}

impl Annotations {
    fn add(&mut self, level: Level, text: String, span: Span) {
        let annotation = Annotation {
            level,
            span,
            monotonicity: None,
        };
        self.0.insert(text, annotation);
    }

    fn warn(&mut self, text: String, span: Span) {
        self.add(Level::Warning, format!("PromQL warning: {text}"), span);
    }

    pub(crate) fn invalid_quantile(&mut self, quantile: f64, span: Span) {
        let shown = format_general(quantile);
        self.warn(
            format!("quantile value should be between 0 and 1, got {shown}"),
            span,
        );
    }

    pub(crate) fn invalid_ratio(&mut self, ratio: f64, capped: f64, span: Span) {
        let (ratio, capped) = (format_general(ratio), format_general(capped));
        let text = "ratio value should be between -1 and 1";
        self.warn(format!("{text}, got {ratio}, capping to {capped}"), span);
    }

    pub(crate) fn invalid_integral_strategy(&mut self, strategy: f64, span: Span) {
        let strategy = format_general(strategy);
        let text = "strategy should be 0, 1, or 2 (default), using 2";
        self.warn(format!("{text}, got {strategy}"), span);
    }

    pub(crate) fn bad_bucket_label(&mut self, metric: &str, label: &str, span: Span) {
        let text = "bucket label \"le\" is missing or has a malformed value of";
        self.warn(
            with_metric(format!("{text} {}", quote(label)), metric),
            span,
        );
    }

    pub(crate) fn sort_in_range_query(&mut self, span: Span) {
        let text = "sort is ineffective for range queries since results are always ordered by \
                    labels";
        self.warn(text.to_owned(), span);
    }

    pub(crate) fn possible_non_counter(&mut self, metric: &str, span: Span) {
        let text = "metric might not be a counter, name does not end in \
                    _total/_sum/_count/_bucket:";
        let text = format!("PromQL info: {text} {}", quote(metric));
        self.add(Level::Info, text, span);
    }

    pub(crate) fn incompatible_types(&mut self, operator: &str, span: Span) {
        let text = "incompatible sample types encountered for binary operator";
        let operands = format!("float {operator} float");
        let text = format!("PromQL info: {text} {}: {operands}", quote(operator));
        self.add(Level::Info, text, span);
    }

    pub(crate) fn forced_monotonicity(&mut self, metric: &str, span: Span, what: Monotonicity) {
        let text = "PromQL info: input to histogram_quantile needed to be fixed for monotonicity \
                    (see https://prometheus.io/docs/prometheus/latest/querying/functions/\
                    #histogram_quantile)";
        let entry = self.0.entry(with_metric(text.to_owned(), metric));
        let annotation = entry.or_insert(Annotation {
            level: Level::Info,
            span,
            monotonicity: None,
        });
        annotation.monotonicity = Some(match annotation.monotonicity {
            None => what,
            Some(held) => Monotonicity {
                first_time: held.first_time.min(what.first_time),
                last_time: held.last_time.max(what.last_time),
                least_bucket: held.least_bucket.min(what.least_bucket),
                greatest_bucket: held.greatest_bucket.max(what.greatest_bucket),
                difference: held.difference.max(what.difference),
                count: held.count + what.count,
            },
        });
    }

    /// The texts of the warnings and of the infos, each with its place in the query.
    pub(crate) fn texts(&self, query: &str) -> (Vec<String>, Vec<String>) {
        let of = |level| {
            let those = self
                .0
                .iter()
                .filter(move |(_, annotation)| annotation.level == level);
            those
                .map(|(text, annotation)| annotation.shown(text, query))
                .collect()
        };
        (of(Level::Warning), of(Level::Info))
    }
}

impl Annotation {
    fn shown(&self, text: &str, query: &str) -> String {
        let position = self.span.position(query);
        let Some(what) = self.monotonicity else {
            return format!("{text} ({position})");
        };
        format!(
            "{text}, from buckets {} to {}, with a max diff of {}, over {} samples from {} to {} \
             ({position})",
            format_general(what.least_bucket),
            format_general(what.greatest_bucket),
            format_two_digits(what.difference),
            what.count,
            crate::eval::date::rfc3339(what.first_time),
            crate::eval::date::rfc3339(what.last_time),
        )
    }
}
