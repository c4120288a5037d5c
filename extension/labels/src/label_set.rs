//! The JSON text of a label set: an object whose values are texts.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use crate::Malformed;

/// A text of JSON, borrowed where it has no escapes.
struct Text<'t>(Cow<'t, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// A label's name and its value.
pub type Label<'t> = (Cow<'t, str>, Cow<'t, str>);

/// The labels of a label set, in its order.
struct Labels<'t>(Vec<Label<'t>>);

impl<'de> Deserialize<'de> for Labels<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LabelsVisitor;
        impl<'de> Visitor<'de> for LabelsVisitor {
            type Value = Labels<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object of labels")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels<'de>, A::Error> {
                let mut labels = Vec::with_capacity(8);
                while let Some((Text(name), Text(value))) = map.next_entry()? {
                    labels.push((name, value));
                }
                Ok(Labels(labels))
            }
        }
        deserializer.deserialize_map(LabelsVisitor)
    }
}

/// Names and values of a label set, in its order.
///
/// # Errors
/// If the text is no JSON object of texts.
pub fn parse(json: &str) -> Result<Vec<Label<'_>>, Malformed> {
    serde_json::from_str::<Labels>(json)
        .map(|labels| labels.0)
        .map_err(|_| Malformed("a label set is no JSON object of texts"))
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn pairs(json: &str) -> Vec<(String, String)> {
        let labels = parse(json).unwrap();
        let owned = |(name, value): (_, _)| -> (String, String) {
            (
                std::borrow::Cow::into_owned(name),
                std::borrow::Cow::into_owned(value),
            )
        };
        labels.into_iter().map(owned).collect()
    }

    #[test]
    fn escapes_and_order_are_kept() {
        let read = pairs(r#"{"a":"1","b\"x":"line\nbreak","ü":"é"}"#);
        let expected = [("a", "1"), ("b\"x", "line\nbreak"), ("ü", "é")];
        assert_eq!(
            read,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert!(pairs("{}").is_empty());
    }

    #[test]
    fn anything_else_is_refused() {
        for json in ["", "[]", r#"{"a":1}"#, r#"{"a":"1""#, r#"{"a":null}"#] {
            assert!(parse(json).is_err(), "{json}");
        }
    }
}
