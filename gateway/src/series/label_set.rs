//! One label set, looked into: checked against Prometheus's data model and the configured limits, and brought into its canonical bytes.
//!
//! Canonical form: Label messages sorted by name, names distinct, no empty values (to Prometheus, an empty value and no label are the
//! same), shortest varints, name before value. It is what Prometheus sends, so there the sent bytes are the canonical ones.

use thiserror::Error;

use super::label_json::labels_json;
use super::protobuf::{DELIMITED, ProtobufError, Reader, put_delimited, put_varint, varint_bytes};

/// The label that names the metric.
pub const METRIC_LABEL: &str = "__name__";
/// Longest metric name in bytes: PostgreSQL indexes it, and an index row holds some 2,700 bytes.
pub const METRIC_NAME_BYTES_MAX: usize = 1024;

/// What to do with labels that do not come sorted by name, as the remote write specification asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelOrder {
    /// Refuse the series.
    Refuse,
    /// Sort them; for senders like vmagent, which sorts only when told to.
    Sort,
}

/// Bounds of one label set.
#[derive(Debug, Clone, Copy)]
pub struct LabelLimits {
    /// Labels, `__name__` included.
    pub labels_max: usize,
    /// Bytes of a label's name.
    pub name_bytes_max: usize,
    /// Bytes of a label's value.
    pub value_bytes_max: usize,
    /// Unsorted labels.
    pub order: LabelOrder,
}

/// Why label bytes give no label set.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LabelError {
    /// The request is broken: nothing of it is taken.
    #[error("labels are malformed: {0}")]
    Protobuf(#[from] ProtobufError),
    /// The request is broken: protobuf strings are UTF-8.
    #[error("a label {part} is not UTF-8")]
    NotUtf8 {
        /// `name` or `value`.
        part: &'static str,
    },
    /// The series is not taken; others of the request are.
    #[error(transparent)]
    Refused(#[from] LabelFault),
}

/// Why one series is refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LabelFault {
    /// No `__name__`, or an empty one.
    #[error("the metric name (label __name__) is missing")]
    NoMetric,
    /// A label without a name.
    #[error("series {metric} has a label with an empty name")]
    EmptyName {
        /// Metric, shortened.
        metric: String,
    },
    /// Names not ascending.
    #[error(
        "labels of series {metric} are not sorted by name: {name} comes too late (receive.label_order = \"sort\" accepts them)"
    )]
    Unsorted {
        /// Metric, shortened.
        metric: String,
        /// The name out of place, shortened.
        name: String,
    },
    /// A name twice.
    #[error("series {metric} has label {name} more than once")]
    Duplicate {
        /// Metric, shortened.
        metric: String,
        /// The name, shortened.
        name: String,
    },
    /// Too many labels.
    #[error("series {metric} has {labels} labels, {labels_max} are allowed (receive.labels_max)")]
    TooMany {
        /// Metric, shortened.
        metric: String,
        /// Labels sent.
        labels: usize,
        /// The bound.
        labels_max: usize,
    },
    /// A name or value over its bound.
    #[error(
        "series {metric}: the {part} of label {name} has {bytes} bytes, {bytes_max} are allowed"
    )]
    TooLong {
        /// Metric, shortened.
        metric: String,
        /// The label's name, shortened.
        name: String,
        /// `name` or `value`.
        part: &'static str,
        /// Bytes sent.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// PostgreSQL's text cannot hold U+0000.
    #[error(
        "series {metric}: label {name} contains the character U+0000, which PostgreSQL cannot store"
    )]
    Nul {
        /// Metric, shortened.
        metric: String,
        /// The label's name, shortened.
        name: String,
    },
}

/// A label set ready to be registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSet {
    /// Value of `__name__`.
    pub metric: String,
    /// The other labels, canonical, as a JSON object; with the metric it says what `bytes` says.
    pub labels_json: String,
    /// The whole set, canonical; two series are one if these are equal.
    pub bytes: Box<[u8]>,
}

impl LabelSet {
    /// Looks into raw Label messages.
    ///
    /// # Errors
    /// [`LabelError`]: a malformed request, or a refused series.
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

    /// Bytes on the heap, roughly; for the memory budget.
    pub fn heap_bytes(&self) -> usize {
        self.metric.len() + self.labels_json.capacity() + self.bytes.len() + size_of::<Self>()
    }
}

/// Label messages in canonical encoding, in the order given.
pub fn canonical_bytes(labels: &[(&str, &str)]) -> Vec<u8> {
    let bytes = labels.iter().map(|(name, value)| label_bytes(name, value));
    let mut bytes = Vec::with_capacity(bytes.sum());
    for (name, value) in labels {
        put_label(&mut bytes, 1, name, value);
    }
    bytes
}

/// Bytes that [`put_label`] appends, for a field of one byte.
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

/// Label messages, read.
struct Labels<'a> {
    /// At most as many as are allowed: an empty message has two bytes, a place here has 32.
    labels: Vec<(&'a str, &'a str)>,
    /// All that came.
    count: usize,
    /// The first value of `__name__`.
    metric: Option<&'a str>,
}

impl<'a> Labels<'a> {
    fn read(raw: &'a [u8], labels_max: usize) -> Result<Self, LabelError> {
        let mut read = Self {
            // Most series have fewer, so this is the only allocation.
            labels: Vec::with_capacity(labels_max.min(16)),
            count: 0,
            metric: None,
        };
        let mut reader = Reader::new(raw);
        while let Some(key) = reader.key()? {
            // `raw` holds what the decoder took for labels, nothing else.
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

/// Text for a message: a sender must not be able to fill logs and answers.
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
        // Value before name, a long varint, an unknown field and an empty label.
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
    fn order_is_refused_or_mended() {
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
    fn faults_are_told_apart() {
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
    fn bytes_that_are_not_text_break_the_request() {
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
