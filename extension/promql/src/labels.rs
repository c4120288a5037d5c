//! Label sets: sorted names and values in one text, shared by reference count.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The label that holds the name of a metric.
pub const METRIC_NAME: &str = "__name__";

/// The label that holds the upper bound of a bucket of a classic histogram.
pub const BUCKET: &str = "le";

/// Labels that describe what a series measures; functions that change its meaning drop them.
const METADATA: [&str; 3] = [METRIC_NAME, "__type__", "__unit__"];

/// Whether a label describes what a series measures: its name, type or unit.
pub fn is_metadata(name: &str) -> bool {
    METADATA.contains(&name)
}

/// Whether a name of a label may be written without quotes.
pub fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A label set: names and values, sorted by name, without empty values.
///
/// Copies share one allocation. Names and values lie in one text; `ends` holds where each of them
/// ends, a name and its value alternating.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Labels(Arc<LabelText>);

#[derive(PartialEq, Eq, Hash, Default)]
struct LabelText {
    text: String,
    ends: Vec<u32>,
}

impl Labels {
    /// The label set without labels.
    pub fn empty() -> Labels {
        Labels(Arc::default())
    }

    /// A label set of pairs in any order. Pairs with an empty value are left out; of two pairs
    /// with one name the last counts.
    pub fn from_pairs<N: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Labels {
        let mut builder = LabelsBuilder::default();
        for (name, value) in pairs {
            builder.set(name.as_ref(), value.as_ref());
        }
        builder.build()
    }

    /// The number of labels.
    pub fn len(&self) -> usize {
        self.0.ends.len() / 2
    }

    /// About how many bytes of memory the set takes.
    pub fn bytes(&self) -> usize {
        const OVERHEAD: usize = size_of::<LabelText>() + 2 * size_of::<usize>();
        OVERHEAD + self.0.text.len() + size_of_val(&self.0.ends[..])
    }

    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.0.ends.is_empty()
    }

    fn text(&self, place: usize) -> &str {
        let ends = &self.0.ends;
        let start = if place == 0 { 0 } else { ends[place - 1] };
        &self.0.text[start as usize..ends[place] as usize]
    }

    /// Names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        (0..self.len()).map(|label| (self.text(2 * label), self.text(2 * label + 1)))
    }

    /// The value of a label; empty if the set does not have it.
    pub fn get(&self, name: &str) -> &str {
        self.iter()
            .find(|(held, _)| *held == name)
            .map_or("", |(_, value)| value)
    }

    /// The name of the metric; empty if there is none.
    pub fn metric_name(&self) -> &str {
        self.get(METRIC_NAME)
    }

    /// The labels that a function of the name keeps.
    pub fn filtered(&self, keep: impl Fn(&str) -> bool) -> Labels {
        if self.iter().all(|(name, _)| keep(name)) {
            return self.clone();
        }
        let mut kept = LabelText::default();
        for (name, value) in self.iter().filter(|(name, _)| keep(name)) {
            kept.push(name, value);
        }
        Labels(Arc::new(kept))
    }

    /// The labels without the name, type and unit of the metric.
    pub fn without_metadata(&self) -> Labels {
        self.filtered(|name| !is_metadata(name))
    }

    /// Whether the labels name a type or unit of the metric.
    pub fn has_type_or_unit(&self) -> bool {
        self.iter()
            .any(|(name, _)| is_metadata(name) && name != METRIC_NAME)
    }

    /// The hash by which Prometheus samples series in `limit_ratio`: XXH64 over each name and value
    /// behind its length.
    pub fn sampling_hash(&self) -> u64 {
        let mut bytes = Vec::with_capacity(self.0.text.len() + 2 * self.0.ends.len());
        for (name, value) in self.iter() {
            for text in [name, value] {
                match u8::try_from(text.len()) {
                    Ok(len) if len < 255 => bytes.push(len),
                    _ => {
                        bytes.push(255);
                        bytes.extend_from_slice(&(text.len() as u32).to_le_bytes()[..3]);
                    }
                }
                bytes.extend_from_slice(text.as_bytes());
            }
        }
        xxhash_rust::xxh64::xxh64(&bytes, 0)
    }
}

impl LabelText {
    fn push(&mut self, name: &str, value: &str) {
        for text in [name, value] {
            self.text.push_str(text);
            self.ends.push(self.text.len() as u32);
        }
    }
}

/// Label sets are ordered by their first different label, by name and then by value.
impl Ord for Labels {
    fn cmp(&self, other: &Labels) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl PartialOrd for Labels {
    fn partial_cmp(&self, other: &Labels) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (place, (name, value)) in self.iter().enumerate() {
            f.write_str(if place > 0 { ", " } else { "" })?;
            match is_plain_name(name) {
                true => f.write_str(name)?,
                false => f.write_str(&crate::quote::quote(name))?,
            }
            write!(f, "={}", crate::quote::quote(value))?;
        }
        f.write_str("}")
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A label set that is being changed.
#[derive(Debug, Default, Clone)]
pub struct LabelsBuilder(BTreeMap<String, String>);

impl LabelsBuilder {
    /// A builder that begins with the labels of a set.
    pub fn of(labels: &Labels) -> LabelsBuilder {
        let pairs = labels
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        LabelsBuilder(pairs.collect())
    }

    /// Sets a label; an empty value removes it.
    pub fn set(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            self.0.remove(name);
        } else {
            self.0.insert(name.to_owned(), value.to_owned());
        }
    }

    /// The value of a label; empty if it is not set.
    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The label set.
    pub fn build(&self) -> Labels {
        let mut text = LabelText::default();
        for (name, value) in &self.0 {
            text.push(name, value);
        }
        Labels(Arc::new(text))
    }
}

#[cfg(test)]
mod tests {
    use super::{Labels, LabelsBuilder};

    #[test]
    fn labels_are_sorted_and_empty_values_left_out() {
        let labels = Labels::from_pairs([("b", "2"), ("a", ""), ("__name__", "up"), ("b", "3")]);
        assert_eq!(labels.to_string(), r#"{__name__="up", b="3"}"#);
        assert_eq!(
            (labels.get("b"), labels.get("a"), labels.len()),
            ("3", "", 2)
        );
        assert_eq!(labels.without_metadata().to_string(), r#"{b="3"}"#);
        let mut builder = LabelsBuilder::of(&labels);
        builder.set("b", "");
        builder.set("odd name", "x");
        assert_eq!(
            builder.build().to_string(),
            r#"{__name__="up", "odd name"="x"}"#
        );
    }

    #[test]
    fn sets_are_compared_label_by_label() {
        let of = |pairs: &[(&str, &str)]| Labels::from_pairs(pairs.iter().copied());
        assert!(of(&[("a", "1")]) < of(&[("a", "1"), ("b", "1")]));
        assert!(of(&[("a", "2")]) < of(&[("b", "1")]));
        assert_eq!(of(&[("a", "1"), ("b", "2")]), of(&[("b", "2"), ("a", "1")]));
        assert_ne!(of(&[("a", "bc")]), of(&[("ab", "c")]));
    }
}
