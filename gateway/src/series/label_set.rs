//! A label set, checked against Prometheus's data model and the configured limits, and converted to
//! canonical bytes.
//!
//! The canonical form is a sequence of Label messages sorted by name, with distinct names, no empty
//! values, shortest varints, and the name before the value. To Prometheus, an empty value and a
//! missing label are the same. Prometheus sends the canonical form, so its bytes are canonical as
//! sent.

use thiserror::Error;

use super::label_json::labels_json;
use super::protobuf::{DELIMITED, ProtobufError, Reader, put_delimited, put_varint, varint_bytes};

/// The label that holds the name of the metric.
pub const METRIC_LABEL: &str = "__name__";
/// The maximum bytes of a metric name. PostgreSQL indexes it, and an index row holds about 2,700
/// bytes.
pub const METRIC_NAME_BYTES_MAX: usize = 1024;

/// What to do with labels that are not sorted by name, as the remote write specification requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelOrder {
    /// Refuse the series.
    Refuse,
    /// Sort the labels. Senders like vmagent sort only if configured to.
    Sort,
}

/// Limits of one label set.
#[derive(Debug, Clone, Copy)]
pub struct LabelLimits {
    /// The maximum number of labels, including `__name__`.
    pub labels_max: usize,
    /// The maximum bytes of a label's name.
    pub name_bytes_max: usize,
    /// The maximum bytes of a label's value.
    pub value_bytes_max: usize,
    /// What to do with unsorted labels.
    pub order: LabelOrder,
}

/// Why label bytes are not a label set.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LabelError {
    /// The request is malformed. Nothing of it is stored.
    #[error("labels are malformed: {0}")]
    Protobuf(#[from] ProtobufError),
    /// The request is malformed: protobuf strings are UTF-8.
    #[error("a label {part} is not UTF-8")]
    NotUtf8 {
        /// `name` or `value`.
        part: &'static str,
    },
    /// The series is refused. Other series of the request are stored.
    #[error(transparent)]
    Refused(#[from] LabelFault),
}

/// Why one series is refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LabelFault {
    /// `__name__` is missing or empty.
    #[error("the metric name (label __name__) is missing")]
    NoMetric,
    /// A label has no name.
    #[error("series {metric} has a label with an empty name")]
    EmptyName {
        /// The metric, shortened.
        metric: String,
    },
    /// The names are not ascending.
    #[error(
        "labels of series {metric} are not sorted by name: {name} is out of order (receive.label_order = \"sort\" accepts them)"
    )]
    Unsorted {
        /// The metric, shortened.
        metric: String,
        /// The name out of place, shortened.
        name: String,
    },
    /// A name occurs twice.
    #[error("series {metric} has label {name} more than once")]
    Duplicate {
        /// The metric, shortened.
        metric: String,
        /// The name, shortened.
        name: String,
    },
    /// There are too many labels.
    #[error(
        "series {metric} has {labels} labels, but only {labels_max} are allowed (receive.labels_max)"
    )]
    TooMany {
        /// The metric, shortened.
        metric: String,
        /// The number of labels sent.
        labels: usize,
        /// The limit.
        labels_max: usize,
    },
    /// A name or value is too long.
    #[error(
        "series {metric}: the {part} of label {name} has {bytes} bytes, but only {bytes_max} are allowed"
    )]
    TooLong {
        /// The metric, shortened.
        metric: String,
        /// The name of the label, shortened.
        name: String,
        /// `name` or `value`.
        part: &'static str,
        /// The number of bytes sent.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// PostgreSQL's text cannot contain U+0000.
    #[error(
        "series {metric}: label {name} contains the character U+0000, which PostgreSQL cannot store"
    )]
    Nul {
        /// The metric, shortened.
        metric: String,
        /// The name of the label, shortened.
        name: String,
    },
}

/// A label set that is ready to be registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSet {
    /// The value of `__name__`.
    pub metric: String,
    /// The other labels, canonical, as a JSON object. Together with the metric it has the content
    /// of `bytes`.
    pub labels_json: String,
    /// The whole set in canonical form. Two series are equal if and only if these bytes are.
    pub bytes: Box<[u8]>,
}

impl LabelSet {
    /// Parses raw Label messages.
    ///
    /// # Errors
    /// Returns a [`LabelError`] if the request is malformed or the series is refused.
    pub fn parse(raw: &[u8], limits: &LabelLimits) -> Result<Self, LabelError> {
        let Labels {
            mut labels,
            count,
            metric,
        } = Labels::read(raw, limits.labels_max)?;
        let metric = match metric {
            Some(metric) if !metric.is_empty() => metric,
            _ => return Err(LabelFault::NoMetric.into()),
        };
        if count > limits.labels_max {
            let (labels, labels_max) = (count, limits.labels_max);
            return Err(LabelFault::TooMany {
                metric: shortened(metric),
                labels,
                labels_max,
            }
            .into());
        }
        for (name, value) in &labels {
            check_label(metric, name, value, limits)?;
        }
        order(metric, &mut labels, limits.order)?;
        labels.retain(|(_, value)| !value.is_empty());
        Ok(Self::of_sorted(metric, &labels))
    }

    fn of_sorted(metric: &str, labels: &[(&str, &str)]) -> Self {
        let bytes = canonical_bytes(labels).into_boxed_slice();
        Self {
            metric: metric.to_owned(),
            labels_json: labels_json(labels),
            bytes,
        }
    }

    /// The approximate bytes on the heap, for the memory budget.
    pub fn heap_bytes(&self) -> usize {
        self.metric.len() + self.labels_json.capacity() + self.bytes.len() + size_of::<Self>()
    }
}

/// Encodes Label messages canonically, in the order of `labels`.
pub fn canonical_bytes(labels: &[(&str, &str)]) -> Vec<u8> {
    let bytes = labels.iter().map(|(name, value)| label_bytes(name, value));
    let mut bytes = Vec::with_capacity(bytes.sum());
    for (name, value) in labels {
        put_label(&mut bytes, 1, name, value);
    }
    bytes
}

/// The number of bytes that [`put_label`] appends for a field number of one byte.
fn label_bytes(name: &str, value: &str) -> usize {
    let message = part_bytes(name) + part_bytes(value);
    1 + varint_bytes(message as u64) + message
}

fn part_bytes(text: &str) -> usize {
    1 + varint_bytes(text.len() as u64) + text.len()
}

/// Appends one Label message as `field`.
pub fn put_label(out: &mut Vec<u8>, field: u32, name: &str, value: &str) {
    put_varint(out, u64::from(field << 3 | u32::from(DELIMITED)));
    put_varint(out, (part_bytes(name) + part_bytes(value)) as u64);
    put_delimited(out, 1, name.as_bytes());
    put_delimited(out, 2, value.as_bytes());
}

/// Parsed Label messages.
struct Labels<'a> {
    /// No more labels than allowed: an empty message has 2 bytes, an element of this vector 32.
    labels: Vec<(&'a str, &'a str)>,
    /// The number of labels sent.
    count: usize,
    /// The first value of `__name__`.
    metric: Option<&'a str>,
}

impl<'a> Labels<'a> {
    fn read(raw: &'a [u8], labels_max: usize) -> Result<Self, LabelError> {
        let mut read = Self {
            // Most series have fewer labels, so this is the only allocation.
            labels: Vec::with_capacity(labels_max.min(16)),
            count: 0,
            metric: None,
        };
        let mut reader = Reader::new(raw);
        while let Some(key) = reader.key()? {
            // `raw` contains only what the decoder recognised as labels.
            if (key.field, key.wire_type) != (1, DELIMITED) {
                return Err(key.mismatch().into());
            }
            let (name, value) = label(reader.delimited()?)?;
            read.count += 1;
            if read.metric.is_none() && name == METRIC_LABEL {
                read.metric = Some(value);
            }
            if read.count <= labels_max {
                read.labels.push((name, value));
            }
        }
        Ok(read)
    }
}

fn label(message: &[u8]) -> Result<(&str, &str), LabelError> {
    let (mut name, mut value) = ("", "");
    let mut reader = Reader::new(message);
    while let Some(key) = reader.key()? {
        match (key.field, key.wire_type) {
            (1, DELIMITED) => name = text(reader.delimited()?, "name")?,
            (2, DELIMITED) => value = text(reader.delimited()?, "value")?,
            (1 | 2, _) => return Err(key.mismatch().into()),
            (_, wire_type) => reader.skip(wire_type)?,
        }
    }
    Ok((name, value))
}

fn text<'a>(bytes: &'a [u8], part: &'static str) -> Result<&'a str, LabelError> {
    str::from_utf8(bytes).map_err(|_| LabelError::NotUtf8 { part })
}

fn check_label(
    metric: &str,
    name: &str,
    value: &str,
    limits: &LabelLimits,
) -> Result<(), LabelFault> {
    let metric_short = || shortened(metric);
    if name.is_empty() {
        return Err(LabelFault::EmptyName {
            metric: metric_short(),
        });
    }
    let value_bytes_max = if name == METRIC_LABEL {
        limits.value_bytes_max.min(METRIC_NAME_BYTES_MAX)
    } else {
        limits.value_bytes_max
    };
    for (part, text, bytes_max) in [
        ("name", name, limits.name_bytes_max),
        ("value", value, value_bytes_max),
    ] {
        if text.len() > bytes_max {
            let (metric, name) = (metric_short(), shortened(name));
            return Err(LabelFault::TooLong {
                metric,
                name,
                part,
                bytes: text.len(),
                bytes_max,
            });
        }
        if text.contains('\0') {
            return Err(LabelFault::Nul {
                metric: metric_short(),
                name: shortened(name),
            });
        }
    }
    Ok(())
}

fn order(metric: &str, labels: &mut [(&str, &str)], order: LabelOrder) -> Result<(), LabelFault> {
    if let Some(pair) = labels.windows(2).find(|pair| pair[0].0 > pair[1].0) {
        match order {
            LabelOrder::Refuse => {
                return Err(LabelFault::Unsorted {
                    metric: shortened(metric),
                    name: shortened(pair[1].0),
                });
            }
            LabelOrder::Sort => labels.sort_unstable_by_key(|(name, _)| *name),
        }
    }
    match labels.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(LabelFault::Duplicate {
            metric: shortened(metric),
            name: shortened(pair[0].0),
        }),
        None => Ok(()),
    }
}

/// Returns a shortened, escaped text for a message, so that a sender cannot fill logs and answers.
fn shortened(text: &str) -> String {
    const CHARACTERS_MAX: usize = 64;
    let mut short: String = text
        .chars()
        .take(CHARACTERS_MAX)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(CHARACTERS_MAX).is_some() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LabelLimits = LabelLimits {
        labels_max: 4,
        name_bytes_max: 8,
        value_bytes_max: 16,
        order: LabelOrder::Refuse,
    };

    fn parse(labels: &[(&str, &str)]) -> Result<LabelSet, LabelError> {
        LabelSet::parse(&canonical_bytes(labels), &LIMITS)
    }

    fn refused(labels: &[(&str, &str)]) -> LabelFault {
        match parse(labels) {
            Err(LabelError::Refused(fault)) => fault,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sorted_labels_are_canonical_as_sent() {
        let labels = [("__name__", "up"), ("job", "a"), ("été", "ü")];
        let set = parse(&labels).unwrap();
        assert_eq!(set.metric, "up");
        assert_eq!(set.labels_json, r#"{"job":"a","été":"ü"}"#);
        assert_eq!(&*set.bytes, canonical_bytes(&labels));
    }

    #[test]
    fn other_encodings_of_one_set_are_one() {
        // The value comes before the name; there is a long varint, an unknown field and an empty
        // label.
        let mut raw = Vec::new();
        put_delimited(
            &mut raw,
            1,
            b"\x12\x02up\x0a\x08__name__\x1d\x00\x00\x00\x00",
        );
        put_delimited(&mut raw, 1, b"\x0a\x01a\x12\x00");
        raw.extend_from_slice(b"\x0a\x89\x00\x0a\x03job\x12\x02xy");
        let limits = LabelLimits {
            order: LabelOrder::Sort,
            ..LIMITS
        };
        assert_eq!(
            LabelSet::parse(&raw, &limits),
            parse(&[("__name__", "up"), ("job", "xy")])
        );
    }

    #[test]
    fn unsorted_labels_are_refused_or_sorted() {
        let unsorted = [("job", "a"), ("__name__", "up")];
        assert!(
            matches!(refused(&unsorted), LabelFault::Unsorted { name, .. } if name == "__name__")
        );
        let limits = LabelLimits {
            order: LabelOrder::Sort,
            ..LIMITS
        };
        assert_eq!(
            LabelSet::parse(&canonical_bytes(&unsorted), &limits),
            parse(&[("__name__", "up"), ("job", "a")])
        );
        let twice = [("job", "a"), ("__name__", "up"), ("job", "b")];
        assert!(matches!(
            LabelSet::parse(&canonical_bytes(&twice), &limits),
            Err(LabelError::Refused(LabelFault::Duplicate { .. }))
        ));
    }

    #[test]
    fn faults_are_distinguished() {
        assert_eq!(refused(&[("job", "a")]), LabelFault::NoMetric);
        assert_eq!(
            refused(&[("__name__", ""), ("job", "a")]),
            LabelFault::NoMetric
        );
        assert_eq!(refused(&[]), LabelFault::NoMetric);
        assert!(matches!(
            refused(&[("", "x"), ("__name__", "up")]),
            LabelFault::EmptyName { .. }
        ));
        assert!(matches!(
            refused(&[("__name__", "up"), ("a", "1"), ("a", "1")]),
            LabelFault::Duplicate { .. }
        ));
        let five = [
            ("__name__", "up"),
            ("a", "1"),
            ("b", "1"),
            ("c", "1"),
            ("d", "1"),
        ];
        assert!(matches!(
            refused(&five),
            LabelFault::TooMany {
                labels: 5,
                labels_max: 4,
                ..
            }
        ));
        assert!(matches!(
            refused(&[("__name__", "up"), ("a", "01234567890123456")]),
            LabelFault::TooLong { part: "value", .. }
        ));
        assert!(matches!(
            refused(&[("__name__", "up"), ("a12345678", "0")]),
            LabelFault::TooLong { part: "name", .. }
        ));
        assert!(matches!(
            refused(&[("__name__", "up"), ("a", "\0")]),
            LabelFault::Nul { .. }
        ));
    }

    #[test]
    fn bytes_that_are_not_text_make_the_request_malformed() {
        let mut raw = canonical_bytes(&[("__name__", "up")]);
        put_delimited(&mut raw, 1, b"\x0a\x01a\x12\x02\xff\xfe");
        assert_eq!(
            LabelSet::parse(&raw, &LIMITS),
            Err(LabelError::NotUtf8 { part: "value" })
        );
        assert!(matches!(
            LabelSet::parse(b"\x0a\x05\x0a", &LIMITS),
            Err(LabelError::Protobuf(ProtobufError::Truncated))
        ));
    }

    #[test]
    fn messages_stay_short() {
        let metric = "m".repeat(500);
        let limits = LabelLimits {
            value_bytes_max: 400,
            ..LIMITS
        };
        let error =
            LabelSet::parse(&canonical_bytes(&[("__name__", &metric)]), &limits).unwrap_err();
        assert!(error.to_string().len() < 250, "{error}");
    }
}
