//! Answers as bodies of Prometheus's HTTP API.

use crate::engine::{Answer, Statistics, Value};
use crate::labels::Labels;
use crate::number::push_plain;
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

/// A body that is being written.
struct BodyWriter<'p> {
    piece: String,
    put: &'p mut dyn FnMut(String),
}

impl BodyWriter<'_> {
    fn push(&mut self, text: &str) {
        self.piece.push_str(text);
    }

    /// Hands the piece on if it is large enough.
    fn end_item(&mut self) {
        if self.piece.len() >= PIECE_BYTES {
            (self.put)(std::mem::take(&mut self.piece));
        }
    }

    /// Writes `[time,"value"]`, of a number.
    fn sample(&mut self, time: i64, value: f64) {
        self.push("[");
        push_seconds(&mut self.piece, time);
        self.push(",\"");
        push_number(&mut self.piece, value);
        self.push("\"]");
    }

    /// Writes a list of items, with commas between them.
    fn list<T>(&mut self, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        self.push("[");
        for (place, item) in items.into_iter().enumerate() {
            self.push(if place > 0 { "," } else { "" });
            write(self, item);
            self.end_item();
        }
        self.push("]");
    }
}

/// Writes an answer of a query at a time, in milliseconds since 1970, and passes the body on in
/// pieces.
pub fn write_body(answer: &Answer, at: i64, options: BodyOptions, put: &mut dyn FnMut(String)) {
    let piece = String::with_capacity(PIECE_BYTES);
    let mut body = BodyWriter { piece, put };
    let limit = match options.series_limit {
        0 => usize::MAX,
        limit => limit,
    };
    let mut warnings = answer.warnings.clone();
    if series_count(&answer.value) > limit {
        warnings.push("results truncated due to limit".to_owned());
    }
    body.push(r#"{"status":"success","data":{"resultType":"#);
    write_value(&mut body, &answer.value, at, limit);
    if options.has_statistics {
        write_statistics(&mut body, &answer.statistics);
    }
    body.push("}");
    let notes = [
        ("warnings", "warning", &warnings),
        ("infos", "info", &answer.infos),
    ];
    for (name, kind, texts) in notes {
        if !texts.is_empty() {
            body.push(&format!(",\"{name}\":"));
            let omitted = texts.len().saturating_sub(NOTES_MAX);
            let rest = format!("{omitted} more {kind} annotations omitted");
            let shown = texts.iter().take(NOTES_MAX);
            let shown = shown.chain((omitted > 0).then_some(&rest));
            body.list(shown, |body, text| push_quoted(&mut body.piece, text));
        }
    }
    body.push("}");
    (body.put)(body.piece);
}

fn series_count(value: &Value) -> usize {
    match value {
        Value::Vector(samples) => samples.len(),
        Value::Matrix(series) => series.len(),
        Value::Scalar(_) | Value::String(_) => 0,
    }
}

fn write_value(body: &mut BodyWriter<'_>, value: &Value, at: i64, limit: usize) {
    match value {
        Value::Scalar(value) => {
            body.push(r#""scalar","result":"#);
            body.sample(at, *value);
        }
        Value::String(text) => {
            body.push(r#""string","result":"#);
            body.push("[");
            push_seconds(&mut body.piece, at);
            body.push(",");
            push_quoted(&mut body.piece, text);
            body.push("]");
        }
        Value::Vector(samples) => {
            body.push(r#""vector","result":"#);
            body.list(samples.iter().take(limit), |body, sample| {
                body.push(r#"{"metric":"#);
                push_labels(&mut body.piece, &sample.labels);
                body.push(r#","value":"#);
                body.sample(at, sample.value);
                body.push("}");
            });
        }
        Value::Matrix(series) => {
            body.push(r#""matrix","result":"#);
            body.list(series.iter().take(limit), |body, series| {
                body.push(r#"{"metric":"#);
                push_labels(&mut body.piece, &series.labels);
                body.push(r#","values":"#);
                let samples = series.timestamps.iter().zip(&series.values);
                body.list(samples, |body, (time, value)| body.sample(*time, *value));
                body.push("}");
            });
        }
    }
}

fn write_statistics(body: &mut BodyWriter<'_>, statistics: &Statistics) {
    // Prometheus counts samples; this engine counts bytes, and a sample takes 16.
    let peak = statistics.held_bytes_peak / 16;
    let samples = statistics.samples;
    body.push(&format!(
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
