//! Label sets to a run.

use std::collections::HashMap;

use super::directory::{Directory, RunWriter};
use super::postings::Postings;
use crate::METRIC_NAME;
use crate::label_set::Label;

/// The postings of a label.
#[derive(Default)]
struct LabelPostings {
    presence: Postings,
    values: HashMap<String, Postings>,
}

/// Collects label sets for a run.
#[derive(Default)]
pub struct Builder {
    labels: HashMap<String, LabelPostings>,
    all: Postings,
}

impl Builder {
    /// Adds the label set of a series whose id is larger than all before.
    pub fn add(&mut self, id: u32, metric: &str, labels: &[Label]) {
        self.add_label(id, METRIC_NAME, metric);
        for (name, value) in labels {
            // Canonical label sets have neither; an index that took them would take them for
            // something else.
            if !name.is_empty() && !value.is_empty() {
                self.add_label(id, name, value);
            }
        }
        self.all.push(id..=id);
    }

    fn add_label(&mut self, id: u32, name: &str, value: &str) {
        if !self.labels.contains_key(name) {
            self.labels
                .insert(name.to_owned(), LabelPostings::default());
        }
        let Some(label) = self.labels.get_mut(name) else {
            return;
        };
        label.presence.push(id..=id);
        match label.values.get_mut(value) {
            Some(postings) => postings.push(id..=id),
            None => {
                let mut postings = Postings::default();
                postings.push(id..=id);
                label.values.insert(value.to_owned(), postings);
            }
        }
    }

    /// Series so far.
    pub fn series(&self) -> u64 {
        self.all.count()
    }

    /// Ends the run, whose blocks `put` stores, and returns its directory. `known` counts how many
    /// of some sorted values of a label earlier runs have.
    ///
    /// # Errors
    /// If a block cannot be stored, or `known` fails.
    pub fn finish<E>(
        self,
        put: impl FnMut(usize, Vec<u8>) -> Result<(), E>,
        mut known: impl FnMut(&str, &[&str]) -> Result<u64, E>,
    ) -> Result<Directory, E> {
        let mut writer = RunWriter::new(put);
        writer.name("", &self.all, 0)?;
        let mut labels: Vec<(String, LabelPostings)> = self.labels.into_iter().collect();
        labels.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (name, label) in labels {
            let mut values: Vec<(String, Postings)> = label.values.into_iter().collect();
            values.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            let texts: Vec<&str> = values.iter().map(|(value, _)| value.as_str()).collect();
            let new_values = texts.len() as u64 - known(&name, &texts)?;
            writer.name(&name, &label.presence, new_values)?;
            for (value, postings) in &values {
                writer.value(value, postings)?;
            }
        }
        writer.finish()
    }
}
