//! A plan and what its parts did, as text.
//!
//! ```text
//! sum by (job) (rate(requests_total[5m])) (rows=2 time=0.110 ms)
//!   -> rate(requests_total[5m]) (rows=40 time=1.204 ms)
//!     -> requests_total[5m] (series=40 samples=2400 time=2.020 ms vectors=12 bytes=491520)
//! Steps: 61
//! Peak Memory: 34 kB
//! Execution Time: 3.412 ms
//! ```
//! A node's time is that of the node alone, without the nodes below it.

use crate::engine::Statistics;
use crate::plan::{Node, NodeKind, Plan};
use crate::profile::{Figures, Part, Parts};
use crate::span::Span;
use std::fmt::Write;
use std::time::Duration;

/// The text of a plan that was evaluated.
pub(crate) fn text(query: &str, plan: &Plan, parts: &Parts, statistics: &Statistics) -> String {
    let mut writer = Writer {
        query,
        parts,
        text: String::new(),
        reads_seen: vec![false; plan.reads.len()],
    };
    writer.node(&plan.root, 0);
    let total: Duration = parts.values().map(|figures| figures.time).sum();
    let kilobytes = statistics.held_bytes_peak.div_ceil(1024);
    let _ = write!(
        writer.text,
        "Steps: {}\nPeak Memory: {kilobytes} kB\nExecution Time: {}",
        plan.grid.count,
        milliseconds(total)
    );
    writer.text
}

struct Writer<'w> {
    query: &'w str,
    parts: &'w Parts,
    text: String,
    /// Which reads were described: later users of a read share its samples.
    reads_seen: Vec<bool>,
}

impl Writer<'_> {
    /// Describes a node and those below it.
    fn node(&mut self, node: &Node, depth: usize) {
        match &node.kind {
            NodeKind::Number(_) | NodeKind::Text(_) => {}
            NodeKind::Selector(selector) | NodeKind::Range(selector, _) => {
                self.read(node.span, selector.read, depth);
            }
            NodeKind::Subquery(subquery) => {
                self.line(depth, node.span, &format!("steps={}", subquery.grid.count));
                self.node(&subquery.inner, depth + 1);
            }
            NodeKind::Call(_, args) => {
                self.rows(node, depth);
                args.iter().for_each(|arg| self.node(arg, depth + 1));
            }
            NodeKind::Aggregate(aggregate) => {
                self.rows(node, depth);
                self.node(&aggregate.inner, depth + 1);
                if let Some(param) = &aggregate.param {
                    self.node(param, depth + 1);
                }
            }
            NodeKind::Binary(binary) => {
                self.rows(node, depth);
                self.node(&binary.left, depth + 1);
                self.node(&binary.right, depth + 1);
            }
            NodeKind::Negate(inner) | NodeKind::Plus(inner) => {
                self.rows(node, depth);
                self.node(inner, depth + 1);
            }
        }
    }

    /// Describes a node that makes rows.
    fn rows(&mut self, node: &Node, depth: usize) {
        let figures = self.figures(Part::Node(node.span));
        let time = milliseconds(figures.time);
        self.line(
            depth,
            node.span,
            &format!("rows={} time={time}", figures.rows),
        );
    }

    /// Describes a selector and its read.
    fn read(&mut self, span: Span, place: usize, depth: usize) {
        if std::mem::replace(&mut self.reads_seen[place], true) {
            self.line(depth, span, "shares the samples above");
            return;
        }
        let figures = self.figures(Part::Read(place));
        // The node of a selector looks at its samples at each step.
        let time = figures.time + self.figures(Part::Node(span)).time;
        let mut words = format!(
            "series={} samples={} time={}",
            figures.rows,
            figures.samples,
            milliseconds(time)
        );
        let counters = figures.source.into_iter().filter(|(_, count)| *count > 0);
        for (name, count) in counters {
            let _ = write!(words, " {name}={count}");
        }
        self.line(depth, span, &words);
    }

    fn figures(&self, part: Part) -> Figures {
        self.parts.get(&part).cloned().unwrap_or_default()
    }

    /// Writes the query's text of a part, in one line, and words about it.
    fn line(&mut self, depth: usize, span: Span, words: &str) {
        let text = self.query.get(span.start..span.end).unwrap_or_default();
        let text: Vec<&str> = text.split_whitespace().collect();
        let arrow = if depth > 0 { "-> " } else { "" };
        let indent = 2 * depth;
        let text = text.join(" ");
        let _ = writeln!(self.text, "{:indent$}{arrow}{text} ({words})", "");
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use crate::labels::Labels;
    use crate::memory::{MemorySeries, MemorySource};
    use crate::{Engine, Options, QueryTime};

    /// The explanation of a query, with each time replaced by `T`.
    fn explained(query: &str) -> Vec<String> {
        let series = ["a", "b"].map(|job| MemorySeries {
            labels: Labels::from_pairs([("__name__", "m"), ("job", job)]),
            timestamps: (0..20).map(|step| step * 10_000).collect(),
            values: (0..20).map(f64::from).collect(),
        });
        let source = MemorySource {
            series: series.to_vec(),
        };
        let time = QueryTime::Steps {
            start: 60_000,
            end: 180_000,
            step: 60_000,
        };
        let engine = Engine::new(&source, Options::default());
        let text = engine.explain(query, time).unwrap();
        let without_times = |line: &str| match (line.find("time="), line.find(" ms")) {
            (Some(from), Some(to)) => format!("{}T{}", &line[..from], &line[to + 3..]),
            _ => line.to_owned(),
        };
        text.lines().map(without_times).collect()
    }

    #[test]
    fn each_part_of_a_plan_has_a_line() {
        let lines = explained("sum(rate(m[1m]))\n + on () count(m)");
        assert_eq!(
            lines[..6],
            [
                "sum(rate(m[1m])) + on () count(m) (rows=1 T)",
                "  -> sum(rate(m[1m])) (rows=1 T)",
                "    -> rate(m[1m]) (rows=2 T)",
                "      -> m[1m] (series=2 samples=38 T)",
                "  -> count(m) (rows=1 T)",
                "    -> m (shares the samples above)",
            ]
        );
        assert_eq!(lines[6], "Steps: 3");
        assert!(lines[7].starts_with("Peak Memory: "));
        assert!(lines[8].starts_with("Execution Time: "));
    }

    #[test]
    fn subqueries_and_parameters_are_parts_too() {
        let lines = explained("topk(scalar(sum(m)), max_over_time(m[2m:30s]))");
        let starts = [
            "topk(scalar(sum(m)), max_over_time(m[2m:30s])) (rows=",
            "  -> max_over_time(m[2m:30s]) (rows=2",
            "    -> m[2m:30s] (steps=",
            "      -> m (series=2",
            "  -> scalar(sum(m)) (rows=1",
        ];
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{line}");
        }
    }
}
