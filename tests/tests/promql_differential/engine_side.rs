//! The engine over the samples in memory, without a database. Where it differs from the database,
//! reading the samples is at fault.

use crate::query::{Query, Times};
use crate::sides::{Class, Reply};
use lanes_promql::json::{self, BodyOptions};
use lanes_promql::memory::{MemorySeries, MemorySource};
use lanes_promql::{Engine, Error, Labels, Options};
use lanes_support::remote_write::Series;

/// The engine and the series, in the order in which they were created.
pub struct EngineSide(MemorySource);

impl EngineSide {
    /// Takes over series in the order in which they are created.
    pub fn new<'s>(series: impl Iterator<Item = &'s Series>) -> EngineSide {
        let columns = |series: &Series| {
            let labels = series.labels.iter();
            let labels = labels.map(|(name, value)| (name.as_str(), value.as_str()));
            let (timestamps, values) = series.samples.iter().copied().unzip();
            MemorySeries {
                labels: Labels::from_pairs(labels),
                timestamps,
                values,
            }
        };
        EngineSide(MemorySource {
            series: series.map(columns).collect(),
        })
    }

    /// Asks a query.
    pub fn ask(&self, query: &Query) -> Reply {
        let mut options = Options::default();
        options.lookback_delta = query.lookback.unwrap_or(options.lookback_delta);
        let engine = Engine::new(&self.0, options);
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
