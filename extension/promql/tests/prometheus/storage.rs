//! The series that a script has loaded.

use crate::script::Load;
use crate::series_notation::Item;
use lanes_promql::labels::LabelsBuilder;
use lanes_promql::source::{Samples, Selection, SeriesSink, Source};
use lanes_promql::{Error, Labels};
use std::collections::BTreeMap;

/// The samples of a series; `None` is a native histogram.
type Stored = BTreeMap<i64, Option<f64>>;

/// The series that a script has loaded, in the order of their labels.
#[derive(Default)]
pub struct Storage {
    series: BTreeMap<Labels, Stored>,
}

impl Storage {
    pub fn load(&mut self, load: &Load) {
        for (labels, items) in &load.series {
            let stored = self.series.entry(labels.clone()).or_default();
            for (place, item) in items.iter().enumerate() {
                let value = match item {
                    Item::Omitted => continue,
                    Item::Float(value) => Some(*value),
                    Item::Histogram => None,
                };
                stored.insert(load.gap * place as i64, value);
            }
            if load.with_native {
                self.load_native(labels, load.gap, items);
            }
        }
    }

    /// Stores that the native histogram of a classic one exists.
    fn load_native(&mut self, labels: &Labels, gap: i64, items: &[Item]) {
        let suffixes = ["_bucket", "_count", "_sum"];
        let name = labels.metric_name();
        let Some(base) = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)) else {
            return;
        };
        let mut builder = LabelsBuilder::of(labels);
        builder.set("__name__", base);
        builder.set("le", "");
        let stored = self.series.entry(builder.build()).or_default();
        for (place, _) in items
            .iter()
            .enumerate()
            .filter(|(_, item)| **item != Item::Omitted)
        {
            stored.insert(gap * place as i64, None);
        }
    }
}

impl Source for Storage {
    fn read(&self, selection: &Selection<'_>, each: SeriesSink<'_>) -> Result<(), Error> {
        if selection.start > selection.end {
            return Ok(());
        }
        for (labels, stored) in self
            .series
            .iter()
            .filter(|(labels, _)| selection.matches(labels))
        {
            let (mut timestamps, mut values) = (Vec::new(), Vec::new());
            for (time, value) in stored.range(selection.start..=selection.end) {
                let Some(value) = value else {
                    return Err(Error::NativeHistogram(labels.to_string()));
                };
                timestamps.push(*time);
                values.push(*value);
            }
            if !values.is_empty() {
                let samples = Samples {
                    timestamps: &timestamps,
                    values: &values,
                };
                each(labels, samples)?;
            }
        }
        Ok(())
    }
}
