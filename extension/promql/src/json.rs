//! Answers as bodies of Prometheus's HTTP API.

use crate::engine::{Answer, Sample, Series, Statistics, Value};
use crate::labels::Labels;
use crate::number::push_plain;
use std::borrow::Borrow;
use std::fmt::Write;

/// What a body contains beside the answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct BodyOptions {
    /// The largest number of series; 0 for no limit. A warning says that series were left out.
    pub series_limit: usize,
    /// Whether the statistics of the query are included.
    pub has_statistics: bool,
}

/// The size from which a piece of a body is handed on, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// The largest number of warnings, and of infos; a last one tells how many were left out.
const NOTES_MAX: usize = 10;

/// Writes an answer of a query at a time, in milliseconds since 1970, and passes the body on in
/// pieces.
pub fn write_body(answer: &Answer, at: i64, options: BodyOptions, put: &mut dyn FnMut(String)) {
    BodyPieces::new(answer, at, options).for_each(put);
}

/// The body of an answer, piece by piece. One piece is in memory at a time.
///
/// ```text
/// Head ─► Items ─► Tail ─► Done
/// ```
pub struct BodyPieces<A> {
    answer: A,
    at: i64,
    options: BodyOptions,
    part: Part,
    piece: String,
}

/// The part of a body that is written next.
#[derive(Clone, Copy)]
enum Part {
    /// Everything before the samples.
    Head,
    /// A sample, by the place of its series and by its place in the series.
    Items(usize, usize),
    /// Everything after the samples.
    Tail,
    /// Nothing.
    Done,
}

impl<A: Borrow<Answer>> BodyPieces<A> {
    /// The body of an answer of a query at a time, in milliseconds since 1970.
    pub fn new(answer: A, at: i64, options: BodyOptions) -> BodyPieces<A> {
        BodyPieces {
            answer,
            at,
            options,
            part: Part::Head,
            piece: String::new(),
        }
    }

    /// Writes the next part, and returns the one after it.
    fn write_part(&mut self) -> Part {
        let (out, answer) = (&mut self.piece, self.answer.borrow());
        match self.part {
            Part::Head => {
                out.push_str(r#"{"status":"success","data":{"resultType":"#);
                self.write_head()
            }
            Part::Items(series, sample) => match &answer.value {
                Value::Vector(samples) if series < self.options.count(samples.len()) => {
                    let Sample { labels, value } = &samples[series];
                    out.push_str(if series > 0 { "," } else { "" });
                    push_metric(out, labels, "value");
                    push_sample(out, self.at, *value);
                    out.push('}');
                    Part::Items(series + 1, 0)
                }
                Value::Matrix(all) if series < self.options.count(all.len()) => {
                    push_point(out, &all[series], series, sample)
                }
                _ => {
                    out.push(']');
                    Part::Tail
                }
            },
            Part::Tail => {
                self.write_tail();
                Part::Done
            }
            Part::Done => Part::Done,
        }
    }

    fn write_head(&mut self) -> Part {
        let out = &mut self.piece;
        match &self.answer.borrow().value {
            Value::Scalar(value) => {
                out.push_str(r#""scalar","result":"#);
                push_sample(out, self.at, *value);
                Part::Tail
            }
            Value::String(text) => {
                out.push_str(r#""string","result":["#);
                push_seconds(out, self.at);
                out.push(',');
                push_quoted(out, text);
                out.push(']');
                Part::Tail
            }
            Value::Vector(_) => {
                out.push_str(r#""vector","result":["#);
                Part::Items(0, 0)
            }
            Value::Matrix(_) => {
                out.push_str(r#""matrix","result":["#);
                Part::Items(0, 0)
            }
        }
    }

    fn write_tail(&mut self) {
        let (out, answer) = (&mut self.piece, self.answer.borrow());
        if self.options.has_statistics {
            push_statistics(out, &answer.statistics);
        }
        out.push('}');
        let mut warnings = answer.warnings.clone();
        let series = series_count(&answer.value);
        if self.options.count(series) < series {
            warnings.push("results truncated due to limit".to_owned());
        }
        push_notes(out, "warnings", "warning", &warnings);
        push_notes(out, "infos", "info", &answer.infos);
        out.push('}');
    }
}

impl<A: Borrow<Answer>> Iterator for BodyPieces<A> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        while !matches!(self.part, Part::Done) {
            self.part = self.write_part();
            if self.piece.len() >= PIECE_BYTES || matches!(self.part, Part::Done) {
                return Some(std::mem::take(&mut self.piece));
            }
        }
        None
    }
}

impl BodyOptions {
    /// How many of these series are written.
    fn count(&self, series: usize) -> usize {
        match self.series_limit {
            0 => series,
            limit => series.min(limit),
        }
    }
}

fn series_count(value: &Value) -> usize {
    match value {
        Value::Vector(samples) => samples.len(),
        Value::Matrix(series) => series.len(),
        Value::Scalar(_) | Value::String(_) => 0,
    }
}

/// Appends a sample of a series, with what begins or ends the series if the sample is the first or the last.
fn push_point(out: &mut String, series: &Series, place: usize, sample: usize) -> Part {
    if sample == 0 {
        out.push_str(if place > 0 { "," } else { "" });
        push_metric(out, &series.labels, "values");
        out.push('[');
    }
    let times = series.timestamps.get(sample);
    if let (Some(time), Some(value)) = (times, series.values.get(sample)) {
        out.push_str(if sample > 0 { "," } else { "" });
        push_sample(out, *time, *value);
    }
    if sample + 1 < series.values.len() {
        return Part::Items(place, sample + 1);
    }
    out.push_str("]}");
    Part::Items(place + 1, 0)
}

/// Appends the beginning of a series, up to the name of its samples.
fn push_metric(out: &mut String, labels: &Labels, samples: &str) {
    out.push_str(r#"{"metric":"#);
    push_labels(out, labels);
    out.push_str(",\"");
    out.push_str(samples);
    out.push_str("\":");
}

/// Appends `[time,"value"]`, of a number.
fn push_sample(out: &mut String, time: i64, value: f64) {
    out.push('[');
    push_seconds(out, time);
    out.push_str(",\"");
    push_number(out, value);
    out.push_str("\"]");
}

/// Appends a list of warnings or infos, unless it is empty.
fn push_notes(out: &mut String, name: &str, kind: &str, texts: &[String]) {
    if texts.is_empty() {
        return;
    }
    let omitted = texts.len().saturating_sub(NOTES_MAX);
    let rest = format!("{omitted} more {kind} annotations omitted");
    let shown = texts.iter().take(NOTES_MAX);
    out.push(',');
    push_quoted(out, name);
    out.push_str(":[");
    for (place, text) in shown.chain((omitted > 0).then_some(&rest)).enumerate() {
        out.push_str(if place > 0 { "," } else { "" });
        push_quoted(out, text);
    }
    out.push(']');
}

fn push_statistics(out: &mut String, statistics: &Statistics) {
    // Prometheus counts samples; this engine counts bytes, and a sample takes 16.
    let peak = statistics.held_bytes_peak / 16;
    let samples = statistics.samples;
    out.push_str(&format!(
        r#","stats":{{"samples":{{"totalQueryableSamples":{samples},"peakSamples":{peak}}}}}"#
    ));
}

/// A label set as a JSON object, in the order of the names.
pub fn labels_json(labels: &Labels) -> String {
    let mut object = String::new();
    push_labels(&mut object, labels);
    object
}

fn push_labels(out: &mut String, labels: &Labels) {
    out.push('{');
    for (place, (name, value)) in labels.iter().enumerate() {
        out.push_str(if place > 0 { "," } else { "" });
        push_quoted(out, name);
        out.push(':');
        push_quoted(out, value);
    }
    out.push('}');
}

/// Appends a text as a JSON string.
fn push_quoted(out: &mut String, text: &str) {
    let is_plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&serde_json::Value::from(text).to_string());
    }
}

/// Appends a time in seconds, with three decimals if it is not whole.
fn push_seconds(out: &mut String, time: i64) {
    let sign = if time < 0 { "-" } else { "" };
    let (whole, rest) = (time.unsigned_abs() / 1000, time.unsigned_abs() % 1000);
    // Writing to a string cannot fail.
    let _ = match rest {
        0 => write!(out, "{sign}{whole}"),
        rest => write!(out, "{sign}{whole}.{rest:03}"),
    };
}

/// Appends a value as Prometheus's API writes it: an exponent below 1e-6 and from 1e21 on.
fn push_number(out: &mut String, value: f64) {
    let size = value.abs();
    if !value.is_finite() || size == 0.0 || (1e-6..1e21).contains(&size) {
        return push_plain(out, value);
    }
    let text = format!("{value:e}");
    match text.contains("e-") {
        true => out.push_str(&text),
        false => out.push_str(&text.replace('e', "e+")),
    }
}

#[cfg(test)]
mod tests {
    use super::{BodyOptions, push_number, push_seconds, write_body};
    use crate::engine::{Answer, Sample, Series, Statistics, Value};
    use crate::labels::Labels;

    fn body_of(value: Value, options: BodyOptions) -> String {
        let answer = Answer {
            value,
            warnings: Vec::new(),
            infos: vec!["an \"info\"".to_owned()],
            statistics: Statistics::default(),
        };
        let mut body = String::new();
        write_body(&answer, 1500, options, &mut |piece| body.push_str(&piece));
        body
    }

    #[test]
    fn bodies_are_those_of_the_api() {
        let labels = Labels::from_pairs([("__name__", "up"), ("path", "C:\\\"\n")]);
        let vector = Value::Vector(vec![Sample {
            labels: labels.clone(),
            value: 0.5,
        }]);
        assert_eq!(
            body_of(vector, BodyOptions::default()),
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up","path":"C:\\\"\n"},"value":[1.500,"0.5"]}]},"infos":["an \"info\""]}"#
        );
        let series = Series {
            labels: Labels::empty(),
            timestamps: vec![0, 60_000],
            values: vec![f64::NAN, f64::INFINITY],
        };
        let options = BodyOptions {
            series_limit: 1,
            has_statistics: true,
        };
        assert_eq!(
            body_of(Value::Matrix(vec![series.clone(), series]), options),
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[0,"NaN"],[60,"+Inf"]]}],"stats":{"samples":{"totalQueryableSamples":0,"peakSamples":0}}},"warnings":["results truncated due to limit"],"infos":["an \"info\""]}"#
        );
        assert!(body_of(Value::Scalar(1.0), options).contains(r#""scalar","result":[1.500,"1"]"#));
        assert!(
            body_of(Value::String("a".to_owned()), options).contains(r#""result":[1.500,"a"]"#)
        );
    }

    #[test]
    fn warnings_beyond_the_tenth_are_counted_only() {
        let body_of = |warnings: usize| {
            let answer = Answer {
                value: Value::Scalar(1.0),
                warnings: (0..warnings).map(|number| number.to_string()).collect(),
                infos: Vec::new(),
                statistics: Statistics::default(),
            };
            let mut body = String::new();
            let options = BodyOptions::default();
            write_body(&answer, 0, options, &mut |piece| body.push_str(&piece));
            body
        };
        assert!(body_of(10).ends_with(r#""8","9"]}"#));
        assert!(body_of(13).ends_with(r#""8","9","3 more warning annotations omitted"]}"#));
    }

    #[test]
    fn a_long_body_comes_in_pieces() {
        let series = Series {
            labels: Labels::empty(),
            timestamps: (0..20_000).collect(),
            values: vec![0.1; 20_000],
        };
        let answer = Answer {
            value: Value::Matrix(vec![series]),
            warnings: Vec::new(),
            infos: Vec::new(),
            statistics: Statistics::default(),
        };
        let mut pieces = Vec::new();
        write_body(&answer, 0, BodyOptions::default(), &mut |piece| {
            pieces.push(piece);
        });
        assert!(pieces.len() > 4);
        assert!(pieces.iter().all(|piece| piece.len() < 66_000));
        let body: serde_json::Value = serde_json::from_str(&pieces.concat()).unwrap();
        let values = body["data"]["result"][0]["values"].as_array().unwrap();
        assert_eq!(values.len(), 20_000);
    }

    #[test]
    fn numbers_and_times_are_written_as_in_go() {
        let cases = [
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (1e-6, "0.000001"),
            (-2.5e-7, "-2.5e-7"),
            (-0.0, "-0"),
            (0.1 + 0.2, "0.30000000000000004"),
        ];
        for (value, text) in cases {
            let mut written = String::new();
            push_number(&mut written, value);
            assert_eq!(written, text);
        }
        for (time, text) in [(-1, "-0.001"), (1_010, "1.010"), (2_000, "2")] {
            let mut written = String::new();
            push_seconds(&mut written, time);
            assert_eq!(written, text);
        }
    }
}
