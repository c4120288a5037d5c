//! The engine over the samples in memory, without a database. Where it differs from the database,
//! reading the samples is at fault.

use crate::query::{Query, Times};
use crate::sides::{Class, Reply};
use lanes_promql::json::{self, BodyOptions};
use lanes_promql::source::{Samples, Selection, SeriesSink, Source};
use lanes_promql::{Engine, Error, Labels, Options};
use lanes_support::remote_write;

/// Series in the order in which they were created.
pub struct EngineSide {
    series: Vec<(Labels, Vec<i64>, Vec<f64>)>,
}

impl EngineSide {
    /// Takes over series in the order in which they are created.
    pub fn new<'s>(series: impl Iterator<Item = &'s remote_write::Series>) -> EngineSide {
        let columns = |series: &remote_write::Series| {
            let labels = series
                .labels
                .iter()
                .map(|(name, value)| (&**name, &**value));
            let (times, values) = series.samples.iter().copied().unzip();
            (Labels::from_pairs(labels), times, values)
        };
        EngineSide {
            series: series.map(columns).collect(),
        }
    }

    /// Asks a query.
    pub fn ask(&self, query: &Query) -> Reply {
        let mut options = Options::default();
        options.lookback_delta = query.lookback.unwrap_or(options.lookback_delta);
        let engine = Engine::new(self, options);
        let (answer, at) = match query.times {
            Times::At(at) => (engine.instant(&query.text, at), at),
            Times::Steps { start, end, step } => {
                (engine.range(&query.text, start, end, step), start)
            }
        };
        match answer {
            Ok(answer) => {
                let mut body = String::new();
                let options = BodyOptions::default();
                json::write_body(&answer, at, options, &mut |piece| body.push_str(&piece));
                Reply::Body(serde_json::from_str(&body).unwrap())
            }
            Err(error) => Reply::Refused {
                class: match error {
                    Error::Parse(_) => Class::BadData,
                    Error::Execution(_) => Class::Execution,
                    _ => Class::Fault,
                },
                text: error.to_string(),
            },
        }
    }
}

impl Source for EngineSide {
    fn read(&self, selection: &Selection<'_>, each: SeriesSink<'_>) -> Result<(), Error> {
        for (labels, times, values) in &self.series {
            let start = times.partition_point(|time| *time < selection.start);
            let end = times.partition_point(|time| *time <= selection.end);
            if start < end && selection.matches(labels) {
                let samples = Samples {
                    timestamps: &times[start..end],
                    values: &values[start..end],
                };
                each(labels, samples)?;
            }
        }
        Ok(())
    }
}
