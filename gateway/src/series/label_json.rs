//! Canonical labels as JSON text, which is how the database stores them: an object whose names are
//! sorted, without white space, with only the escapes that JSON requires, in their short form if
//! there is one. Equal label sets have equal text.

use std::collections::BTreeMap;

use super::label_set::{METRIC_LABEL, canonical_bytes};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Returns the object of `labels`, which are sorted by name, without the metric.
pub fn labels_json(labels: &[(&str, &str)]) -> String {
    let others = || labels.iter().filter(|(name, _)| *name != METRIC_LABEL);
    // The capacity is exact because the text is kept until the series is registered.
    let bytes: usize = others()
        .map(|(name, value)| string_bytes(name) + string_bytes(value) + 2)
        .sum();
    let mut json = String::with_capacity(bytes.max(1) + 1);
    json.push('{');
    for (nth, (name, value)) in others().enumerate() {
        if nth > 0 {
            json.push(',');
        }
        put_string(&mut json, name);
        json.push(':');
        put_string(&mut json, value);
    }
    json.push('}');
    json
}

/// Returns the canonical label bytes of a series as stored in the database; `None` if `json` is not
/// an object of strings.
pub fn bytes_of_stored(metric: &str, json: &str) -> Option<Vec<u8>> {
    let mut labels: BTreeMap<String, String> = serde_json::from_str(json).ok()?;
    labels.insert(METRIC_LABEL.to_owned(), metric.to_owned());
    let labels: Vec<(&str, &str)> = labels
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    Some(canonical_bytes(&labels))
}

fn escape(byte: u8) -> Option<u8> {
    Some(match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => return None,
    })
}

fn must_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Inspects all bytes whatever it finds, so that the compiler vectorizes it.
fn has_escapes(text: &str) -> bool {
    text.bytes()
        .fold(false, |any, byte| any | must_escape(byte))
}

fn string_bytes(text: &str) -> usize {
    if !has_escapes(text) {
        return 2 + text.len();
    }
    let bytes = |byte: u8| match escape(byte) {
        Some(_) => 2,
        None if byte < 0x20 => 6,
        None => 1,
    };
    2 + text.bytes().map(bytes).sum::<usize>()
}

fn put_string(json: &mut String, text: &str) {
    json.push('"');
    if has_escapes(text) {
        for character in text.chars() {
            put_character(json, character);
        }
    } else {
        json.push_str(text);
    }
    json.push('"');
}

fn put_character(json: &mut String, character: char) {
    match u8::try_from(character) {
        Ok(byte) if must_escape(byte) => match escape(byte) {
            Some(short) => {
                json.push('\\');
                json.push(char::from(short));
            }
            None => {
                json.push_str("\\u00");
                json.push(char::from(HEX[usize::from(byte >> 4)]));
                json.push(char::from(HEX[usize::from(byte & 15)]));
            }
        },
        _ => json.push(character),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_metric_is_not_among_the_labels() {
        assert_eq!(labels_json(&[(METRIC_LABEL, "up")]), "{}");
        let labels = [("A", "1"), (METRIC_LABEL, "up"), ("job", "x")];
        assert_eq!(labels_json(&labels), r#"{"A":"1","job":"x"}"#);
    }

    #[test]
    fn text_that_is_not_an_object_of_strings_is_rejected() {
        for json in ["", "[]", "{\"a\":1}", "{", "null"] {
            assert_eq!(bytes_of_stored("up", json), None, "{json}");
        }
    }

    proptest! {
        #[test]
        fn text_is_minimal_and_round_trips(
            labels in prop::collection::btree_map("\\PC{1,4}|[a-z]{1,3}", "[\\x01-\\x7f]{1,6}|\\PC{1,9}", 0..5)
        ) {
            let mut labels: BTreeMap<String, String> = labels;
            labels.remove(METRIC_LABEL);
            let json = serde_json::to_string(&labels).unwrap();
            labels.insert(METRIC_LABEL.to_owned(), "up".to_owned());
            let borrowed: Vec<(&str, &str)> =
                labels.iter().map(|(name, value)| (&**name, &**value)).collect();
            let written = labels_json(&borrowed);
            prop_assert_eq!(written.capacity(), written.len());
            prop_assert_eq!(bytes_of_stored("up", &written), Some(canonical_bytes(&borrowed)));
            prop_assert_eq!(written, json);
        }
    }
}
