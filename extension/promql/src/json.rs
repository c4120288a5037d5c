//! Answers as bodies of Prometheus's HTTP API.

use crate::engine::{Answer, Statistics, Value};
use crate::labels::Labels;
use crate::number::format_plain;

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

    /// Writes `[time,"value"]`.
    fn sample(&mut self, time: i64, value: &str) {
        self.push("[");
        self.push(&seconds(time));
        self.push(",");
        self.push(&quoted(value));
        self.push("]");
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
            body.list(shown, |body, text| body.push(&quoted(text)));
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
            body.sample(at, &number(*value));
        }
        Value::String(text) => {
            body.push(r#""string","result":"#);
            body.sample(at, text);
        }
        Value::Vector(samples) => {
            body.push(r#""vector","result":"#);
            body.list(samples.iter().take(limit), |body, sample| {
                body.push(r#"{"metric":"#);
                body.push(&labels_json(&sample.labels));
                body.push(r#","value":"#);
                body.sample(at, &number(sample.value));
                body.push("}");
            });
        }
        Value::Matrix(series) => {
            body.push(r#""matrix","result":"#);
            body.list(series.iter().take(limit), |body, series| {
                body.push(r#"{"metric":"#);
                body.push(&labels_json(&series.labels));
                body.push(r#","values":"#);
                let samples = series.timestamps.iter().zip(&series.values);
                body.list(samples, |body, (time, value)| {
                    body.sample(*time, &number(*value));
                });
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
    let mut object = String::from("{");
    for (place, (name, value)) in labels.iter().enumerate() {
        object.push_str(if place > 0 { "," } else { "" });
        object.push_str(&quoted(name));
        object.push(':');
        object.push_str(&quoted(value));
    }
    object.push('}');
    object
}

/// A text as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A time in seconds, with three decimals if it is not whole.
fn seconds(time: i64) -> String {
    let sign = if time < 0 { "-" } else { "" };
    let (whole, rest) = (time.unsigned_abs() / 1000, time.unsigned_abs() % 1000);
    match rest {
        0 => format!("{sign}{whole}"),
        rest => format!("{sign}{whole}.{rest:03}"),
    }
}

/// A value as Prometheus's API writes it: an exponent below 1e-6 and from 1e21 on.
fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() || size == 0.0 || (1e-6..1e21).contains(&size) {
        return format_plain(value);
    }
    let text = format!("{value:e}");
    match text.contains("e-") {
        true => text,
        false => text.replace('e', "e+"),
    }
}

#[cfg(test)]
mod tests {
    use super::{BodyOptions, number, seconds, write_body};
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
            assert_eq!(number(value), text);
        }
        assert_eq!(
            (seconds(-1), seconds(1_010), seconds(2_000)),
            ("-0.001".to_owned(), "1.010".to_owned(), "2".to_owned())
        );
    }
}
