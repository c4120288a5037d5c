//! Remote write 1.0 requests for tests. Protobuf and snappy are encoded by hand, so that the tests
//! do not depend on the gateway's own code.
//!
//! ```text
//! WriteRequest { repeated TimeSeries timeseries = 1; }
//! TimeSeries   { repeated Label labels = 1; repeated Sample samples = 2; }
//! Label        { string name = 1; string value = 2; }
//! Sample       { double value = 1; int64 timestamp = 2 /* milliseconds since 1970 */; }
//! ```
//! Snappy's block format is the length as a varint followed, here, by literals only.

/// A series with its samples `(milliseconds since 1970, value)`. Labels are sent in the given order
/// and include `__name__`.
#[derive(Debug, Clone)]
pub struct Series {
    /// The name and the value of each label.
    pub labels: Vec<(String, String)>,
    /// The time in milliseconds since 1970, and the value.
    pub samples: Vec<(i64, f64)>,
}

impl Series {
    /// Creates a series of a metric with more labels, sorted by name after `__name__`.
    pub fn new(metric: &str, labels: &[(&str, &str)], samples: Vec<(i64, f64)>) -> Series {
        let mut all = vec![("__name__".to_owned(), metric.to_owned())];
        all.extend(
            labels
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        Series {
            labels: all,
            samples,
        }
    }
}

/// Returns the body of a request, encoded and compressed.
pub fn body(series: &[Series]) -> Vec<u8> {
    compress(&message(series))
}

/// Returns the protobuf message.
pub fn message(series: &[Series]) -> Vec<u8> {
    let mut request = Vec::new();
    for one in series {
        let mut message = Vec::new();
        for (name, value) in &one.labels {
            delimited(&mut message, 1, &label(name.as_bytes(), value.as_bytes()));
        }
        for (time, value) in &one.samples {
            delimited(&mut message, 2, &sample(*time, *value));
        }
        delimited(&mut request, 1, &message);
    }
    request
}

/// Returns a `Label` message of arbitrary bytes.
pub fn label(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    delimited(&mut message, 1, name);
    delimited(&mut message, 2, value);
    message
}

/// Returns a `Sample` message.
pub fn sample(time: i64, value: f64) -> Vec<u8> {
    let mut message = vec![0x09];
    message.extend_from_slice(&value.to_bits().to_le_bytes());
    message.push(0x10);
    varint(&mut message, time as u64);
    message
}

/// Appends a length-delimited field.
pub fn delimited(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a base-128 varint.
pub fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Returns a snappy block of literals.
pub fn compress(bytes: &[u8]) -> Vec<u8> {
    /// The greatest length of a literal with a two-byte length.
    const LITERAL_BYTES_MAX: usize = 1 << 16;
    let mut out = Vec::with_capacity(bytes.len() + 16);
    varint(&mut out, bytes.len() as u64);
    for literal in bytes.chunks(LITERAL_BYTES_MAX) {
        // Tag 61 is a literal whose length minus one follows in two bytes.
        out.push(61 << 2);
        out.extend_from_slice(&((literal.len() - 1) as u16).to_le_bytes());
        out.extend_from_slice(literal);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_requests_follow_the_formats() {
        let series = [Series::new("up", &[], vec![(300, 1.0)])];
        let expected = b"\x0a\x1f\x0a\x0e\x0a\x08__name__\x12\x02up\x12\x0c\x09\0\0\0\0\0\0\xf0\x3f\x10\xac\x02";
        let message = message(&series);
        // The expectation contains the lengths of the nested messages; the outer length is checked
        // by arithmetic.
        assert_eq!(&message[2..], &expected[2..]);
        assert_eq!(usize::from(message[1]), message.len() - 2);
        assert_eq!(compress(b"ab"), [2, 61 << 2, 1, 0, b'a', b'b']);
        assert_eq!(compress(b""), [0]);
    }
}
