//! `count_values`: how many series of a group have each value.

use super::aggregate::Grouping;
use super::{Evaluator, Matrix, Sink, text};
use crate::error::{Error, execution};
use crate::grid::Grid;
use crate::labels::LabelsBuilder;
use crate::number::format_plain;
use crate::plan::AggregateNode;
use crate::sample::{ABSENT, is_absent};
use hashbrown::HashMap;

impl Evaluator<'_> {
    /// Evaluates `count_values`.
    pub(super) fn count_values(
        &self,
        aggregate: &AggregateNode,
        grid: Grid,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        let label = aggregate.param.as_ref().map_or("", text);
        if label.is_empty() {
            return execution("invalid label name \"\"");
        }
        let grouping = Grouping::of(aggregate);
        let drops_label = grouping.is_without() && grouping.names(label);
        let mut places: HashMap<(crate::labels::Labels, u64), usize> = HashMap::new();
        let mut counts = Matrix::new(self, grid.count);
        let empty = vec![ABSENT; grid.count];
        self.stream(&aggregate.inner, grid, &mut |row| {
            let group = row
                .labels
                .filtered(|name| name != label && grouping.keeps(name));
            for (step, value) in row
                .values
                .iter()
                .enumerate()
                .filter(|(_, v)| !is_absent(**v))
            {
                self.work(16)?;
                let bits = match (drops_label, value.is_nan()) {
                    (true, _) => 0,
                    (false, true) => f64::NAN.to_bits(),
                    (false, false) => value.to_bits(),
                };
                let key = (group.clone(), bits);
                let place = match places.get(&key) {
                    Some(place) => *place,
                    None => {
                        let mut builder = LabelsBuilder::of(&group);
                        if !drops_label {
                            builder.set(label, &format_plain(*value));
                        }
                        counts.push(&builder.build(), false, &empty)?;
                        places.insert(key, counts.len() - 1);
                        counts.len() - 1
                    }
                };
                let count = &mut counts.row_mut(place)[step];
                *count = if is_absent(*count) { 1.0 } else { *count + 1.0 };
            }
            Ok(())
        })?;
        counts.stream(sink)
    }
}
